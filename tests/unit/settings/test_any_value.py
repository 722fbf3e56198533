"""Any value under any key of a service's or a space's TOML is read, or refused by our error that names the file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from rag_harness.derived.tuning.space_file import read_space
from rag_harness.errors import RagHarnessError, SettingsError
from rag_harness.pipelines.endpoint.experiment import build
from rag_harness.pipelines.parts import RunParts
from rag_harness.settings import Settings
from rag_harness.settings.endpoints import read_endpoint

SCHEMAS = Path(__file__).parents[3] / "docs/schemas"
VALUES = (
    *("0", "-1", "3.5", "nan", "inf", "9" * 400, "9" * 5000, "true", "1979-05-27", "1979-05-27T07:32:00Z", "07:32:00"),
    *('""', '"x"', '"$"', '"$["', '"("', '"{{"', '"{{query}"', '"${"', '"{}"', '"[]"', '"3"', '"NaN"', '"\\u0000"'),
    *('"http://["', '"http://h:99999"', "[]", "[1]", '["a"]', "[[]]", "[{}]", "[nan]", "[1979-05-27]", "[" * 3000),
    *("'" + "[" * depth + "]" * depth + "'" for depth in (900, 2_000, 200_000)),
    *("{}", "{a = 1}", "{a = {}}", '{a = "x"}', "{a = [1]}", "{a = nan}", "{a = 1979-05-27}", "[{contains = 1}]"),
)
SERVICES = {
    "json": ['url = "http://127.0.0.1:9/ask"'],
    "get": ['url = "http://127.0.0.1:9/ask?q={{query}}"', 'method = "GET"'],
    "sse": ['url = "http://127.0.0.1:9/ask"', 'kind = "sse"'],
    "openai": ['url = "http://127.0.0.1:9/v1"', 'kind = "openai"', 'model = "m"'],
    "mcp": ['url = "http://127.0.0.1:9/mcp"', 'kind = "mcp"', 'tool = "ask"'],
    "traces": ['url = "http://127.0.0.1:9/ask"', 'traces = "otlp"'],
    "session": [
        'url = "http://127.0.0.1:9/ask"',
        'headers.x-session = "{{session}}"',
        'session.path = "id"',
        'session.open.url = "/new"',
    ],
}
SPACE = ['objective = "evidence_recall"', "parameters.top_k = [3, 5]"]


def keys(schema: Any, before: str = "") -> Iterator[str]:
    for name, inside in schema.get("properties", {}).items():
        yield f"{before}{name}"
        yield from keys(inside, f"{before}{name}.")


def keys_of(name: str) -> list[str]:
    return [*keys(json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))), "unknown"]


def written(folder: Path, lines: list[str], key: str, value: str) -> Path:
    """Write a file in which the value takes the place of what stood under its key."""
    kept = [each for each in lines if not f"{each.partition(' = ')[0]}.".startswith(f"{key}.")]
    file = folder / "svc.toml"
    file.write_text("\n".join([*kept, f"{key} = {value}", ""]), encoding="utf-8")
    return file


def read(reader: Callable[[Path], Any], file: Path) -> Any:
    """Return what the file describes; None where it is refused."""
    try:
        return reader(file)
    except SettingsError as refused:
        said = str(refused)
    assert str(file) in said
    return None


@pytest.mark.parametrize("key", [*keys_of("endpoint"), "arguments", "headers.x", "headers.authorization"])
@pytest.mark.parametrize("service", SERVICES)
def test_a_service(service: str, key: str, tmp_path: Path) -> None:
    parts = RunParts(Settings(rootdir=str(tmp_path), mode="replay"))
    for value in VALUES:
        spec = read(read_endpoint, written(tmp_path, SERVICES[service], key, value))
        if spec is not None:
            with suppress(RagHarnessError):
                build(spec, parts)


@pytest.mark.parametrize(
    "key", [*keys_of("space"), "parameters.top_k", "parameters.top_k.values", "parameters.top_k.if"]
)
def test_a_space(key: str, tmp_path: Path) -> None:
    for value in VALUES:
        read(read_space, written(tmp_path, SPACE, key, value))


@pytest.mark.parametrize(
    ("body", "expected"),
    [("3", "3: expected an object: "), ("[1]", r"\[1\]: expected an object: "), ("true", "True: expected an object: ")],
)
def test_a_chat_endpoint_whose_body_has_no_names(body: str, expected: str, tmp_path: Path) -> None:
    file = written(tmp_path, SERVICES["openai"], "body", body)
    with pytest.raises(SettingsError, match=f"^{re.escape(str(file))}: body is {expected}"):
        read_endpoint(file)
