from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import SettingsError
from rag_harness.core.settings import Settings, masked
from rag_harness.core.settings.endpoints import EndpointSpec, read_endpoint, read_endpoints
from rag_harness.core.settings.loading import load_settings
from rag_harness.runs.distributed.ledger import share_of

URL = 'url = "http://127.0.0.1:8000/query"\n'


def read(folder: Path, text: str, name: str = "my_service") -> EndpointSpec:
    file = folder / f"{name}.toml"
    file.write_text(text, encoding="utf-8")
    return read_endpoint(file)


def test_an_address_is_enough(tmp_path: Path) -> None:
    spec = read(tmp_path, URL)
    assert (spec.name, spec.kind, spec.method) == ("my_service", "json", "POST")
    assert (json.loads(spec.body), spec.read.answer) == ({"query": "{{query}}"}, "answer")


def test_a_file_may_name_its_experiment(tmp_path: Path) -> None:
    assert read(tmp_path, f'name = "prod"\n{URL}').name == "prod"


def test_a_body_is_a_table_or_json(tmp_path: Path) -> None:
    table = read(tmp_path, URL + '[body]\nq = "{{query}}"\nk = 5\n')
    text = read(tmp_path, URL + """body = '{"q": "{{query}}", "k": 5}'\n""")
    assert json.loads(table.body) == json.loads(text.body) == {"q": "{{query}}", "k": 5}


def test_a_get_sends_nothing(tmp_path: Path) -> None:
    spec = read(tmp_path, 'url = "http://h/s?q={{query}}"\nmethod = "get"\n')
    assert (spec.method, spec.body) == ("GET", "")


def test_an_empty_body_is_none(tmp_path: Path) -> None:
    assert read(tmp_path, 'url = "http://h/s?q={{query}}"\nbody = ""\n').body == ""
    with pytest.raises(SettingsError, match="body is no JSON"):
        read(tmp_path, URL + 'kind = "openai"\nmodel = "m"\nbody = ""\n')


def test_a_chat_endpoint_is_asked_as_chat_endpoints_are(tmp_path: Path) -> None:
    spec = read(tmp_path, URL + 'kind = "openai"\nmodel = "m"\n[body]\ntemperature = 0\n')
    body = json.loads(spec.body)
    assert (body["model"], body["stream"], body["temperature"]) == ("m", True, 0)
    assert body["messages"] == "{{messages}}"
    assert spec.read.answer == "choices[0].message.content"


def test_a_body_that_speaks_of_streaming_has_the_last_word(tmp_path: Path) -> None:
    spec = read(tmp_path, URL + 'kind = "openai"\nmodel = "m"\nbody = {stream = false}\n')
    assert json.loads(spec.body).keys() == {"model", "messages", "stream"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no url"),
        ('ulr = "http://x"', "Unknown key 'ulr'. Did you mean 'url'?"),
        ('url = "ftp://x"', "expected http://"),
        ('url = "http://"', "expected http://"),
        ('url = "http://h:port/"', "url is"),
        ('url = "http://u:p@h/"', "holds a user or a password"),
        ('url = "http://h/?api_key=abc"', 'Name its variable there: "${API_KEY}"'),
        (URL + "url = 3", "is no TOML"),
        ("url = 3", "url is 3: expected a string"),
        (URL + 'kind = "grpc"', "Unknown kind 'grpc'"),
        (URL + "timeout = -1", "timeout is -1: expected a number, 0 or more"),
        (URL + "concurrency = 1.5", "expected a whole number"),
        (URL + "rpm = true", "rpm is True"),
        (URL + "usd_per_call = inf", "usd_per_call is inf"),
        (URL + "headers = 1", "headers is int"),
        (URL + "headers = {a = 1}", "header 'a' is no string"),
        (URL + "read = 1", "read is 1: expected a table"),
        (URL + '[read]\nanwser = "a"', "Unknown key 'anwser'. Did you mean 'answer'?"),
        (URL + "[read]\nanswer = 1", "answer is 1: expected a string"),
        (URL + '[stream]\ntokens = "a"', "Did you mean 'token'?"),
        (URL + "body = '{'", "body is no JSON"),
        (URL + "body = '3'", "expected an object or a list"),
        (URL + "body = {at = 2026-01-01}", "Dates stand in quotes"),
        (URL + 'body = {key = "${KEY}"}', "body holds ${KEY}"),
        (URL + 'kind = "mcp"', "has no tool"),
        (URL + 'kind = "openai"', "has no model"),
        (URL + 'arguments = {q = "{{query}}"}', "arguments is not read where kind is"),
        ('name = "a b"\n' + URL, "is no name for an experiment"),
        ('name = "golden"\n' + URL, "is no name for an experiment"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SettingsError) as error:
        read(tmp_path, text)
    assert said in str(error.value)
    assert "my_service.toml" in str(error.value)


@pytest.mark.parametrize(
    "header",
    [
        'authorization = "Bearer abcdefgh"',
        'x-api-key = "abc"',
        'x-tenant = "sk-abcdefgh12345"',
        'x-tenant = "Bearer ${KEY} sk-abcdefgh12345 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"',
        'cookie = "session=1"',
    ],
)
def test_a_secret_in_a_header_is_refused_and_not_repeated(tmp_path: Path, header: str) -> None:
    with pytest.raises(SettingsError, match="holds a secret") as error:
        read(tmp_path, f"{URL}[headers]\n{header}\n")
    assert header.partition('"')[2].rstrip('"') not in str(error.value)


def test_a_header_may_name_a_variable_or_say_what_is_no_secret(tmp_path: Path) -> None:
    spec = read(tmp_path, URL + '[headers]\nauthorization = "Bearer ${MY_KEY}"\nx-tenant = "study"\n')
    assert dict(spec.headers) == {"authorization": "Bearer ${MY_KEY}", "x-tenant": "study"}


@pytest.mark.parametrize("header", ['x-name = "Müller"', '"x name" = "a"', '"" = "a"'])
def test_what_can_be_no_header_is_refused(tmp_path: Path, header: str) -> None:
    with pytest.raises(SettingsError, match=r"no string of one line of ASCII|no name of a header"):
        read(tmp_path, f"{URL}[headers]\n{header}\n")


@pytest.mark.parametrize("name", ["skip", "xfail", "parametrize"])
def test_a_marker_that_does_something_is_no_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingsError, match="is no name for an experiment"):
        read(tmp_path, URL, name)


@pytest.mark.parametrize("name", ["missing.toml", "."])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        read_endpoints(tmp_path, [name])


def project(folder: Path, **urls: str) -> Path:
    tables = [f'[tool.rag_harness.endpoints.{name}]\nurl = "{url}"\n' for name, url in urls.items()]
    (folder / "pyproject.toml").write_text("\n".join(tables))
    return folder


def test_pyproject_and_files_together(tmp_path: Path) -> None:
    read(project(tmp_path, a="http://a/"), URL, "b")
    settings = load_settings({"endpoint": ["b.toml"]}, rootdir=tmp_path)
    assert [spec.name for spec in settings.endpoints] == ["a", "b"]
    assert hash(settings) == hash(load_settings({"endpoint": ["b.toml"]}, rootdir=tmp_path))


def test_two_of_one_name_are_refused(tmp_path: Path) -> None:
    read(project(tmp_path, b="http://a/"), URL, "b")
    with pytest.raises(SettingsError, match=r"Two endpoints are called 'b': pyproject.toml.* and .*b.toml"):
        load_settings({"endpoint": ["b.toml"]}, rootdir=tmp_path)


def test_a_table_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.rag_harness.endpoints]\nmine = 3\n")
    with pytest.raises(SettingsError, match=r"endpoints.mine\] is 3: expected a table"):
        load_settings(rootdir=tmp_path)


def test_the_settings_hold_the_name_of_a_key_and_not_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-planted-0123456789")
    read(tmp_path, URL + '[headers]\nauthorization = "Bearer ${MY_KEY}"\n')
    settings = load_settings({"endpoint": ["my_service.toml"]}, rootdir=tmp_path)
    said = f"{settings!r} {masked(settings)}"
    assert "${MY_KEY}" in said
    assert "planted" not in said


def test_each_worker_gets_its_part_of_the_caps() -> None:
    spec = EndpointSpec("a", "http://a/", concurrency=8, rpm=60.0)
    settings: Any = replace(Settings(), endpoints=(spec,))
    (share,) = share_of(settings, 4).endpoints
    assert (share.concurrency, share.rpm) == (2, 15.0)
