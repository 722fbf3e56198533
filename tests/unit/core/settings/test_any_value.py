"""Any value under any key of a service's or a space's TOML is read, or refused by our error that names the file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import RagHarnessError, SettingsError
from rag_harness.core.settings import Settings
from rag_harness.core.settings.endpoints import read_endpoint
from rag_harness.diagnosis.tuning.space import read_space
from rag_harness.pipelines.endpoint.experiment import build
from rag_harness.pipelines.parts import RunParts

SCHEMAS = Path(__file__).parents[4] / "docs/schemas"
VALUES = (
    *("0", "-1", "3.5", "nan", "inf", "9" * 400, "true", "1979-05-27", "1979-05-27T07:32:00Z", "07:32:00"),
    *('""', '"x"', '"$"', '"$["', '"("', '"{{"', '"{{query}"', '"${"', '"{}"', '"[]"', '"3"', '"NaN"', '"\\u0000"'),
    *('"http://["', '"http://h:99999"', "[]", "[1]", '["a"]', "[[]]", "[{}]", "[nan]", "[1979-05-27]"),
    *("'" + "[" * depth + "]" * depth + "'" for depth in (900, 2_000)),
    *("{}", "{a = 1}", "{a = {}}", '{a = "x"}', "{a = [1]}", "{a = nan}", "{a = 1979-05-27}", "[{contains = 1}]"),
)
DEEPEST = "'" + "[" * 200_000 + "]" * 200_000 + "'"
"""More than the stack of a parser in C bears. TOML takes 50 ms for it, most of all the others together."""
JSON_TEXTS = ("body", "arguments")
"""How keys end whose values may be JSON in a text."""
UNREADABLE = ("[" * 3000, "9" * 5000)
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
    assert str(file) in said, said
    return None


def faults(
    lines: list[str],
    keys: Iterable[str],
    read_whole: Callable[[Path], object],
    folder: Path,
    deepest: tuple[str, ...] = JSON_TEXTS,
) -> Iterator[str]:
    """Yield each key with a value that is neither read nor refused by an error that names the file."""
    for key in keys:
        for value in (*VALUES, *([DEEPEST] if key.endswith(deepest) else ())):
            file = written(folder, lines, key, value)
            try:
                read_whole(file)
            except Exception as error:
                yield f"{key} = {value[:40]}: {error!r:.200}"


def faults_of_service(
    service: str, keys: Iterable[str], folder: Path, deepest: tuple[str, ...] = JSON_TEXTS
) -> list[str]:
    parts = RunParts(Settings(rootdir=str(folder), mode="replay"))

    def built(file: Path) -> None:
        spec = read(read_endpoint, file)
        if spec is not None:
            with suppress(RagHarnessError):
                build(spec, parts)

    return [f"{service}: {fault}" for fault in faults(SERVICES[service], keys, built, folder, deepest)]


ENDPOINT = [*keys_of("endpoint"), "arguments", "headers.x", "headers.authorization"]
OWN = {
    "json": ("",),
    "get": ("url", "method", "body"),
    "sse": ("url", "kind", "stream", "body", "arguments"),
    "openai": ("url", "kind", "model", "body", "arguments"),
    "mcp": ("url", "kind", "tool", "body", "arguments"),
    "traces": ("url", "traces"),
    "session": ("url", "headers", "history", "session"),
}
"""How keys begin that one service reads otherwise than a JSON service does, which is asked for every key."""


@pytest.mark.parametrize("service", SERVICES)
def test_a_service(service: str, tmp_path: Path) -> None:
    keys = [key for key in ENDPOINT if key.startswith(OWN[service])]
    assert keys
    assert not (found := faults_of_service(service, keys, tmp_path)), "\n".join(found)


@pytest.mark.long
@pytest.mark.parametrize("service", SERVICES)
def test_every_key_of_a_service(service: str, tmp_path: Path) -> None:
    assert not (found := faults_of_service(service, ENDPOINT, tmp_path, ("",))), "\n".join(found)


def test_a_space(tmp_path: Path) -> None:
    keys = [*keys_of("space"), "parameters.top_k", "parameters.top_k.values", "parameters.top_k.if"]
    assert not (found := [*faults(SPACE, keys, lambda file: read(read_space, file), tmp_path)]), "\n".join(found)


@pytest.mark.parametrize("value", UNREADABLE, ids=["deep", "many digits"])
def test_what_toml_itself_cannot_read(value: str, tmp_path: Path) -> None:
    """Under which key it stands does not matter."""
    assert read(read_endpoint, written(tmp_path, SERVICES["json"], "name", value)) is None
    assert read(read_space, written(tmp_path, SPACE, "name", value)) is None


@pytest.mark.parametrize(
    ("body", "expected"),
    [("3", "3: expected an object: "), ("[1]", r"\[1\]: expected an object: "), ("true", "True: expected an object: ")],
)
def test_a_chat_endpoint_whose_body_has_no_names(body: str, expected: str, tmp_path: Path) -> None:
    file = written(tmp_path, SERVICES["openai"], "body", body)
    with pytest.raises(SettingsError, match=f"^{re.escape(str(file))}: body is {expected}"):
        read_endpoint(file)
