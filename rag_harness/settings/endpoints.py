"""Services as experiments: ``[tool.rag_harness.endpoints.<name>]`` in pyproject.toml, or a file for ``--rag-endpoint``.

A secret header names a variable: ``"Bearer ${MY_KEY}"``. Its value is looked up for each call. It never stands in
settings, rows, recordings or logs.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from rag_harness.errors import SettingsError, unknown
from rag_harness.settings.endpoint_checks import (
    body_text,
    check_name,
    check_no_secret,
    check_url,
    checked_headers,
    number,
    text,
)
from rag_harness.settings.endpoint_session import read_session
from rag_harness.settings.endpoint_spec import (
    AnswerPaths,
    EndpointSpec,
    HistoryLimits,
    StreamReading,
    VersionReading,
)
from rag_harness.settings.expect_tables import expect_texts
from rag_harness.settings.profiles import check_table_keys, pyproject_table, toml_file

ENDPOINT_KINDS = ("json", "sse", "openai", "mcp")
_OF_TABLES = ("openai", "mcp")
"""Kinds whose body, or whose tool's arguments, have names."""
TEXTS = ("url", "kind", "method", "model", "tool", "data", "traces")
OF_TRACES = ("traces_port", "traces_wait", "traces_late")
_NUMBERS = ("timeout", "concurrency", "rpm", "usd_per_call", *OF_TRACES)
WHOLE = ("concurrency", "traces_port")
TRACES = ("otlp",)
_MESSAGES = "{{messages}}"
_QUESTION_ALONE = [{"role": "user", "content": "{{query}}"}]
_STREAMED = {"stream": True, "stream_options": {"include_usage": True}}
_DEFAULT_READING: Mapping[str, Mapping[str, str]] = {
    "json": {},
    "sse": {"answer": "streamed"},
    "openai": {
        "answer": "choices[0].message.content",
        "model": "model?",
        "usage_prompt": "usage.prompt_tokens?",
        "usage_completion": "usage.completion_tokens?",
    },
    "mcp": {"answer": "text"},
}
"""Default paths of the answer's parts, by kind of service."""


def read_endpoints(rootdir: Path, files: Sequence[str]) -> tuple[EndpointSpec, ...]:
    """Return the services of pyproject.toml in ``rootdir`` and of ``files``, whose paths start from ``rootdir``.

    Raises:
        SettingsError: a table, a key or a value cannot be used, or two services have one name; says which.
    """
    tables = pyproject_table(rootdir, "endpoints", "one a service")
    here = "pyproject.toml, [tool.rag_harness.endpoints."
    specs = [_spec(name, table, f"{here}{name}]") for name, table in tables.items()]
    specs += [read_endpoint(rootdir / file) for file in files]
    known: dict[str, EndpointSpec] = {}
    for spec in specs:
        if spec.name in known:
            raise SettingsError(
                f"Two endpoints are called {spec.name!r}: {known[spec.name].where} and {spec.where}. "
                f'Give one of them another name: name = "…".'
            )
        known[spec.name] = spec
    return tuple(specs)


def read_endpoint(file: Path) -> EndpointSpec:
    """Return the service of one TOML file. Without a name in it, the service is named after the file.

    Raises:
        SettingsError: the file cannot be read, or has a key or a value that cannot be used.
    """
    table = dict(toml_file(file, f"--rag-endpoint {file}"))
    return _spec(table.pop("name", file.stem), table, str(file))


def _spec(name: Any, table: Any, where: str) -> EndpointSpec:
    check_name(name, where)
    if not isinstance(table, Mapping):
        raise SettingsError(f"{where} is {table!r}: expected a table with url, and maybe body and read.")
    known = {*(each.name for each in fields(EndpointSpec)), "arguments"} - {"name", "where"}
    check_table_keys(where, table, known)
    given: dict[str, Any] = {key: text(where, key, table[key]) for key in TEXTS if key in table}
    given |= {key: number(where, key, table[key], whole=key in WHOLE) for key in _NUMBERS if key in table}
    kind = given.setdefault("kind", "json")
    if kind not in ENDPOINT_KINDS:
        raise SettingsError(f"{where}: {unknown('kind', kind, ENDPOINT_KINDS)}")
    if "traces" in given and given["traces"] not in TRACES:
        raise SettingsError(f"{where}: {unknown('traces', given['traces'], TRACES)}")
    for key in OF_TRACES:
        if key in given and "traces" not in given:
            raise SettingsError(f'{where}: {key} is about spans that are received, and nothing says traces = "otlp".')
    wait, late = (given.get(key, getattr(EndpointSpec, key)) for key in ("traces_wait", "traces_late"))
    if late >= wait:
        raise SettingsError(
            f"{where}: traces_late = {late:g} is no less than traces_wait = {wait:g}, so no trace could be whole in "
            f"time: it is once nothing new has come for traces_late seconds. Raise traces_wait."
        )
    check_url(where, given.get("url", ""))
    headers, body = checked_headers(where, table.get("headers", {})), _body(table, where, given)
    return EndpointSpec(
        **{
            **given,
            "name": name,
            "method": given.get("method", "POST").upper(),
            "headers": headers,
            "body": body,
            "read": AnswerPaths(**_texts(table, "read", where, AnswerPaths, _DEFAULT_READING[kind])),
            "stream": StreamReading(**_texts(table, "stream", where, StreamReading, {})),
            "version": _version(table, where),
            "history": _history(table, where),
            "session": read_session(table, where, given["url"], [value for _, value in headers], body),
            "expect": expect_texts(where, table.get("expect", [])),
            "where": where,
        }
    )


def _version(table: Mapping[str, Any], where: str) -> VersionReading:
    found = VersionReading(**_texts(table, "version", where, VersionReading, {}))
    if bool(found.url) == bool(found.command) and vars(found) != vars(VersionReading()):
        raise SettingsError(
            f"{where}: version has {'both url and command' if found.url else 'no url'}: name one of them."
        )
    if found.path and found.header:
        raise SettingsError(f"{where}: version has both path and header: it is read in one place.")
    (check_no_secret if found.url[:1] in ("", "/") else check_url)(f"{where}, [version]", found.url)
    return found


def _history(table: Mapping[str, Any], where: str) -> HistoryLimits:
    given, here = _table(table, "history", where, HistoryLimits), f"{where}, [history]"
    return HistoryLimits(**{name: int(number(here, name, value, whole=True)) for name, value in given.items()})


def _texts(
    table: Mapping[str, Any], key: str, where: str, kind: type[Any], default: Mapping[str, str]
) -> dict[str, str]:
    given = _table(table, key, where, kind)
    return {**default, **{name: text(f"{where}, [{key}]", name, value) for name, value in given.items()}}


def _table(table: Mapping[str, Any], key: str, where: str, kind: type[Any]) -> Mapping[str, Any]:
    """Return the table ``key``, whose keys are fields of ``kind``."""
    given = table.get(key, {})
    if not isinstance(given, Mapping):
        raise SettingsError(f"{where}: {key} is {given!r}: expected a table, [{key}].")
    names: Collection[str] = {each.name for each in fields(kind)}
    check_table_keys(f"{where}, [{key}]", given, names)
    return given


def _body(table: Mapping[str, Any], where: str, given: Mapping[str, Any]) -> str:
    """Return the template as JSON."""
    kind, key = given["kind"], "arguments" if given["kind"] == "mcp" else "body"
    for other in ({"arguments", "body"} - {key}) & table.keys():
        raise SettingsError(f'{where}: {other} is not read where kind is "{kind}". Name it {key}.')
    for needed in [name for of, name in (("mcp", "tool"), ("openai", "model")) if of == kind and name not in given]:
        raise SettingsError(f'{where} has no {needed}: kind "{kind}" needs it.')
    if given.get("method", "POST").upper() == "GET" and key not in table:
        return ""
    if table.get(key) == "" and kind not in _OF_TABLES:
        return ""  # its URL has the question
    body: Any = table.get(key, {} if kind == "openai" else {"query": "{{query}}"})
    if isinstance(body, str):
        body = _parsed(body, where, key)
    if not isinstance(body, Mapping if kind in _OF_TABLES else (Mapping, list)):
        expected = "an object" if kind in _OF_TABLES else "an object or a list"
        raise SettingsError(f"{where}: {key} is {body!r}: expected {expected}: a TOML value, or JSON in quotes.")
    if kind == "openai":
        asked = {} if "stream" in body else _STREAMED
        messages = _QUESTION_ALONE if "session" in table else _MESSAGES
        body = {"model": given["model"], "messages": messages, **asked, **dict(body)}
    return body_text(where, key, body)


def _parsed(body: str, where: str, key: str) -> Any:
    try:
        return json.loads(body)
    except RecursionError:
        raise SettingsError(f"{where}: {key} is nested too deeply.") from None
    except ValueError as error:
        raise SettingsError(f"{where}: {key} is no JSON: {error}. Write a table, or JSON in quotes.") from None
