"""A key that stands in a setting, an address or a TOML file is refused, and no message repeats it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import SettingsError
from rag_harness.core.settings import Settings
from rag_harness.core.settings.endpoints import (
    AnswerPaths,
    EndpointSpec,
    HistoryLimits,
    OpenRequest,
    SessionReading,
    StreamReading,
    VersionReading,
)
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.settings.roles import address_secret, bare_address, check_no_keys, field_secret
from rag_harness.core.settings.table import env_name, masked
from tests.effort import bounded

KEY = "sk-canary0123456789abcdef"
TABLE = {each.name: each for each in fields(Settings)}
PLAIN = [name for name, each in TABLE.items() if not each.metadata.get("secret") and not each.metadata.get("derived")]
ADDRESSES = [name for name in PLAIN if TABLE[name].metadata.get("address")]
PASSWORD = "correct-horse"
"""A secret that looks like none: only its place says what it is."""


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for each in TABLE.values():
        if each.metadata.get("env") is not None:
            monkeypatch.delenv(env_name(each), raising=False)


def refusal(folder: Path, **given: Any) -> str:
    with pytest.raises(SettingsError) as caught:
        load_settings(rootdir=folder, **given)
    return str(caught.value)


@pytest.mark.parametrize("name", [name for name in PLAIN if name not in ("rootdir", "stores_of")])
def test_no_setting_takes_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    each = TABLE[name]
    value = (KEY,) if each.default == () else KEY
    said = []
    is_placed = "place" in each.metadata
    if each.metadata["flag"] or is_placed:
        said += [refusal(tmp_path, command_line={name: value}), refusal(tmp_path, ini={name: value})]
    if not is_placed:
        monkeypatch.setenv(env_name(each), KEY)
        said.append(refusal(tmp_path))
        monkeypatch.delenv(env_name(each))
        (tmp_path / ".env").write_text(f"{env_name(each)}={KEY}\n")
        said.append(refusal(tmp_path))
    for message in said:
        assert name in message
        assert KEY not in message


def test_all_addresses_are_known() -> None:
    named = {
        each.name
        for each in TABLE.values()
        if each.name.endswith(("_url", "_address")) or "http://" in each.metadata["help"]
    }
    assert named <= set(ADDRESSES)
    assert len(ADDRESSES) == 9


@pytest.mark.parametrize("name", ADDRESSES)
@pytest.mark.parametrize(
    "address",
    [
        f"http://u:{PASSWORD}@127.0.0.1:9/v1",
        f"http://{PASSWORD}@127.0.0.1:9/v1",
        f"u:{PASSWORD}@127.0.0.1:9/v1",
        f"http:\\\\u:{PASSWORD}@127.0.0.1:9/v1",
        f" http://u:{PASSWORD}@127.0.0.1:9/v1",
        f"http://127.0.0.1:9/v1?key={PASSWORD}",
        f"http://127.0.0.1:9/v1?a=b&api-key={PASSWORD}",
        f"http://127.0.0.1:9/v1#access_token={KEY}",
        f"http://127.0.0.1:9/{KEY}/v1",
        f"http://127.0.0.1:9/v1?x={KEY}",
    ],
)
def test_no_address_takes_a_key(tmp_path: Path, name: str, address: str) -> None:
    message = refusal(tmp_path, ini={name: address})
    assert message.startswith(name)
    assert not {KEY, PASSWORD} & set(re.split(r"[\s:/?=@#']", message))


@pytest.mark.parametrize("name", ["chat_base_url", "embed_base_url", "judge_base_url"])
def test_no_address_of_a_profile_takes_a_key(tmp_path: Path, name: str) -> None:
    profile = f'[tool.rag_harness.profiles.p]\n{name} = "http://127.0.0.1:9/v1?key={PASSWORD}"\n'
    (tmp_path / "pyproject.toml").write_text(profile)
    message = refusal(tmp_path, ini={"profile": "p"})
    assert name in message
    assert PASSWORD not in message


def test_keys_of_variables_are_taken_and_shown_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = [each for each in TABLE.values() if each.metadata.get("secret")]
    for each in secret:
        monkeypatch.setenv(env_name(each), KEY)
    settings = load_settings(rootdir=tmp_path)
    assert all(getattr(settings, each.name) == KEY for each in secret)
    assert KEY not in repr(settings) + str(masked(settings))


def _endpoint_fields() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each field of an endpoint's TOML with a key in it."""
    plain = {"url": "http://h/ask"}
    for each in fields(EndpointSpec):
        if each.name not in ("name", "where"):
            yield each.name, {**plain, each.name: KEY}
    parts = {"read": AnswerPaths, "stream": StreamReading, "version": VersionReading, "history": HistoryLimits,
             "session": SessionReading}  # fmt: skip
    for table, kind in parts.items():
        for each in fields(kind):
            yield f"{table}.{each.name}", {**plain, table: {each.name: KEY}}
    for each in fields(OpenRequest):
        yield f"session.open.{each.name}", {**plain, "session": {"path": "id", "open": {"url": "/s", each.name: KEY}}}
    yield "headers", {**plain, "headers": {"X-Own": KEY}}
    for body in ({"api_key": PASSWORD}, {"auth": {"password": PASSWORD}}, {"list": [{"q": KEY}]}, {KEY: 1}):
        yield f"body {body}", {**plain, "body": {"q": "{{query}}", **body}}
        yield f"arguments {body}", {**plain, "kind": "mcp", "tool": "t", "arguments": body}
        text = json.dumps({"q": "{{query}}", **body})
        yield f"body in quotes {body}", {**plain, "body": text}
    for url in (f"http://h/{KEY}/ask", f"http://h/ask?code={KEY}", f"http://h/ask?api_key={PASSWORD}",
                f"http://u:{PASSWORD}@h/", f"ftp://u:{PASSWORD}@h/", f"http://h:x/?key={PASSWORD}",
                "http://h/0123456789abcdef0123456789abcdef/ask"):  # fmt: skip
        yield url, {"url": url}
        yield f"version {url}", {**plain, "version": {"url": url}}
        sessions = {"path": "id", "open": {"url": url}}
        yield f"session {url}", {**plain, "body": {"q": "{{query}}", "s": "{{session}}"}, "session": sessions}
    yield "version path", {**plain, "version": {"url": f"/version?key={PASSWORD}"}}


@pytest.mark.parametrize(("field", "table"), [pytest.param(*each, id=each[0]) for each in _endpoint_fields()])
def test_no_field_of_an_endpoint_takes_a_key(tmp_path: Path, field: str, table: dict[str, Any]) -> None:
    (tmp_path / "shop.toml").write_text(_toml(table))
    said = refusal(tmp_path, command_line={"endpoint": (str(tmp_path / "shop.toml"),)})
    assert not [each for each in (KEY, PASSWORD, "0123456789abcdef0123456789abcdef") if each in said], field


@pytest.mark.parametrize(
    "table",
    [
        {"data": {"d": {"kb": KEY}}},
        {"data": {"d": {"kb": "kb", "gates": [f"{KEY}: recall@5 > 1"]}}},
        {"profiles": {"p": {"chat_model": KEY}}},
        {"profiles": {"p": {"chat_api_key_env": KEY}}},
        {"options": {"mine": {"default": KEY, "affects": "nothing"}}},
        {"refusals": [KEY]},
        {"reliability": {"alpha": KEY}},
        {"endpoints": {"shop": {"url": f"http://h/{KEY}"}}},
    ],
)
def test_no_table_of_pyproject_takes_a_key(tmp_path: Path, table: dict[str, Any]) -> None:
    (tmp_path / "pyproject.toml").write_text(_toml({"tool": {"rag_harness": table}}))
    assert KEY not in refusal(tmp_path, ini={"profile": "p"} if "profiles" in table else {})


@pytest.mark.parametrize("option", ["config", "prices"])
def test_no_other_file_of_toml_takes_a_key(tmp_path: Path, option: str) -> None:
    (tmp_path / "file.toml").write_text(_toml({"parameters": {"chat_model": KEY}}))
    value = str(tmp_path / "file.toml")
    assert KEY not in refusal(tmp_path, command_line={option: (value,) if option == "config" else value})


@pytest.mark.parametrize(
    "address",
    [
        "", "auto", "embedded://", "https://openrouter.ai/api/v1", "http://127.0.0.1:6333", "ray://head:10001",
        "https://host/openai/deployments/gpt-4o-mini-2024-07-18/chat?api-version=2024-02-01", "http://[::1]:8000/v1",
        "http://h/${PATH_KEY}/ask?key=${MY_KEY}", "http://h/@team/ask", "http://h/ask?q={{query}}&session={{session}}",
        "http://h/apps/3f2504e0-4f89-11d3-9a0c-0305e82c3301/ask", "http://h/retrieval-augmented-generation-service/ask",
        "http://h/assistants/asst_abc123DEF456ghi789JKLmno/ask", "${SERVICE}/ask",
    ],
)  # fmt: skip
def test_addresses_without_keys_are_taken(address: str) -> None:
    assert not address_secret(address)


@pytest.mark.parametrize(
    "body",
    [
        {"q": "{{query}}", "token": "{{inputs.token}}", "key": "title"}, {"max_tokens": 200, "session_token": 3},
        {"assistant_id": "asst_abc123DEF456ghi789JKLmno", "collection": "5f2a9c3e5f2a9c3e5f2a9c3e"},
        {"prompt": "Answer with basic knowledge of the risk-assessment-2024-documents.", "password": ""},
    ],
)  # fmt: skip
def test_bodies_without_keys_are_taken(body: dict[str, Any]) -> None:
    assert not field_secret(body)
    check_no_keys("here", body)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://u:p@h.example:8/a/b?token=x#y", "https://h.example:8/a/b"),
        ("//u:p@h/a?b", "//h/a"),
        ("/login?next=/&t=1", "/login"),
        (f"http://h/{KEY}?x", "http://h/…"),
        ("http://a@b@h/p#q?r", "http://h/p"),
        ("nowhere", "nowhere"),
    ],
)
def test_of_foreign_addresses_scheme_host_and_path_are_shown(address: str, shown: str) -> None:
    assert bare_address(address) == shown


@pytest.mark.parametrize("piece", ["sk-", "eyJaaaaaaaa.", "bearer ", "://a:", "AIza", "http://"])
def test_looking_for_keys_is_linear(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    with bounded(5):
        field_secret({"a": text})


def _toml(table: dict[str, Any], name: str = "") -> str:
    """Write a table as TOML: its plain values before its tables."""
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    lines = [f"{json.dumps(key)} = {json.dumps(value)}" for key, value in plain.items()]
    inner = [(f"{name}.{json.dumps(key)}" if name else json.dumps(key), value) for key, value in table.items()
             if isinstance(value, dict)]  # fmt: skip
    return "\n".join([*([f"[{name}]"] if name else []), *lines, *(_toml(value, key) for key, value in inner), ""])
