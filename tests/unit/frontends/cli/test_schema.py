"""The schemas say what the readers do: what a reader takes fits, and what it refuses by its form does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.__main__ import main
from rag_harness.core.errors import SettingsError
from rag_harness.core.settings.configurations import checked_value, known_parameters
from rag_harness.core.settings.endpoints import read_endpoint
from rag_harness.data.queries import lines_of
from rag_harness.diagnosis.tuning.space import read_space
from rag_harness.frontends.cli.results import schema_text
from rag_harness.records.cases import tools_of
from rag_harness.records.expectations import expectations_of, known_kinds

ROOT = Path(__file__).parents[4]
KINDS = ("queries", "endpoint", "space")
VALID = {kind: jsonschema.Draft202012Validator(json.loads(schema_text(kind))) for kind in KINDS}
_REMOVED = "(left out)"
"""Instead of the value of a key: the key is left out."""


@pytest.mark.parametrize("kind", KINDS)
def test_the_published_schema_is_that_of_the_code(kind: str) -> None:
    """Write it anew: rag-harness schema KIND -o docs/schemas/KIND.schema.json."""
    published = (ROOT / "docs" / "schemas" / f"{kind}.schema.json").read_text(encoding="utf-8")
    assert published == schema_text(kind)
    jsonschema.Draft202012Validator.check_schema(json.loads(published))


def test_the_questions_that_ship_fit() -> None:
    """Files whose first line is no question are of something else."""
    files, asked, faults = [*ROOT.glob("data/**/*.jsonl"), *ROOT.glob("rag_harness/**/queries.jsonl")], 0, list[str]()
    for file in files:
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
        if _accepts_line(lines[0]):
            asked += 1
            bad = ((n, error) for n, line in enumerate(lines, 1) for error in VALID["queries"].iter_errors(line))
            faults += [f"{file.relative_to(ROOT)}:{n}: {error.message}" for n, error in bad]
    assert not faults, "\n".join(faults)
    assert asked >= 5


def _accepts_line(line: dict[str, Any]) -> bool:
    read, problems = lines_of(json.dumps(line))
    owed = [each for one in read if one.expect != () for each in expectations_of(one.expect)[1]]
    called = [each for one in read if one.tools is not None for each in tools_of(one.tools)[1]]
    return bool(read) and not problems and not owed and not called


def _accepts_file(read: Any, table: dict[str, Any], folder: Path) -> bool:
    file = folder / "mine.toml"
    file.write_text("".join(f"{json.dumps(key)} = {_toml(value)}\n" for key, value in table.items()))
    try:
        read(file)
    except SettingsError:
        return False
    return True


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(each)}" for key, each in value.items()) + " }"
    return f"[{', '.join(map(_toml, value))}]" if isinstance(value, list) else json.dumps(value)


QUESTION = {"query_id": "q1", "query": "Why?"}
TURN = {"conversation": "c", "turn": 1, "query": "Why?"}
CONVERSATION = {"conversation": "c", "turns": [{"query": "Why?"}, {"query": "And?", "reply": "So."}]}
SCENARIO = {"conversation": "c", "scenario": {"opening": "Hello?", "max_turns": 3}}
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda each: st.lists(each, max_size=2) | st.dictionaries(st.text(max_size=3), each, max_size=2),
    max_leaves=4,
)
FITS: dict[str, list[Any]] = {
    "query_id": ["q.1-a_b", "x" * 120],
    "query": [" Why? ", "ü", "\ufeff"],
    "query_type": ["multi_hop", "negative"],
    "answerable": [True, False, None, "yes", "OFF", 1],
    "ground_truth": ["", "45", None],
    "context_reference": [None, "a.md", ["a.md", "b.md"], []],
    "qrels": [{}, {"a.md": 2, "b.md": -1}],
    "evidence": [[], [{"filename": "a.md", "quote": "45", "more": 1}]],
    "metadata": [{}, {"a": [1, None]}],
    "inputs": [{"tenant": "x"}],
    "expect": [[], [{"contains": "45"}], [{"not": {"contains": "x"}, "weight": 2, "must": True}], [{"max_words": 9}]],
    "tools": [None, [], [{"name": "price", "args": {"sku": 1}}]],
}
MISFITS: dict[str, list[Any]] = {
    "query_id": ["a b", "", "x" * 121, 3, None, "c#1x"],
    "query": ["", " \n", 3, None, ["Why?"]],
    "query_type": [" ", None, 1],
    "answerable": ["perhaps", 2, []],
    "ground_truth": [45, True, ["45"]],
    "context_reference": [[""], [1], 3, {"a.md": 1}],
    "qrels": [{"a.md": 1.5}, {"a.md": "1"}, [], {" ": 1}, {"a.md": True}],
    "evidence": [[{"filename": "a.md"}], ["45"], {}, [{"filename": " ", "quote": "x"}]],
    "metadata": [[], "x", None],
    "inputs": [[], None],
    "expect": [
        *({}, None, ["x"], [{}], [{"contians": "x"}], [{"contains": "a", "regex": "b"}], [{"contains": "a", "x": 1}]),
        *([{"contains": "a", "weight": 0}], [{"contains": "a", "must": "yes"}], [{"not": {"not": {"contains": "a"}}}]),
    ],
    "tools": [{}, ["price"], [{"args": {}}], [{"name": " "}], [{"name": "a", "args": []}], [{"name": "a", "x": 1}]],
    "querry": ["Why?"],
}  # fmt: skip


def _changes(pools: dict[str, list[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in pools.items()})


@given(_changes(FITS), st.sampled_from([QUESTION, TURN]))
def test_a_line_that_is_read_fits(changes: dict[str, Any], begun: dict[str, Any]) -> None:
    own = {name: value for name, value in changes.items() if begun is QUESTION or name != "query_id"}
    line = {**begun, **own}
    assert _accepts_line(line), line
    VALID["queries"].validate(line)


def test_a_line_that_is_refused_by_its_form_does_not_fit() -> None:
    lines = [{**QUESTION, name: value} for name, each in MISFITS.items() for value in each]
    assert [line for line in lines if _accepts_line(line)] == []
    assert [line for line in lines if VALID["queries"].is_valid(line)] == []


@given(_json, st.sampled_from(sorted(FITS)))
def test_whatever_is_read_fits(value: Any, name: str) -> None:
    line = {**QUESTION, name: value}
    if _accepts_line(line):
        VALID["queries"].validate(line)


FORMS: list[tuple[dict[str, Any], bool]] = [
    (QUESTION, True),
    (TURN, True),
    (CONVERSATION, True),
    (SCENARIO, True),
    ({**TURN, "query_id": "c#1"}, True),
    ({**TURN, "reply": "So.", "standalone": "Why is it?"}, True),
    ({**CONVERSATION, "metadata": {"topic": "a"}}, True),
    ({"conversation": "c", "scenario": {"opening": "Hello?", "asks": ["And?"], "facts": {"how many": "two"}}}, True),
    ({"conversation": "c", "scenario": {"opening": "Hi", "reached": [{"contains": "€36"}], "facts": ["two"]}}, True),
    ({"conversation": "c", "query_type": "direct", "expect": [], "scenario": SCENARIO["scenario"]}, True),
    ({"query": "Why?"}, False),
    ({"query_id": "c#1", "query": "Why?"}, False),
    ({**QUESTION, "turn": 1}, False),
    ({**QUESTION, "reply": "So."}, False),
    ({**TURN, "turn": 0}, False),
    ({**TURN, "turn": "1"}, False),
    ({**TURN, "conversation": "a b"}, False),
    ({**CONVERSATION, "query": "Why?"}, False),
    ({**CONVERSATION, "turns": []}, False),
    ({**CONVERSATION, "turns": ["Why?"]}, False),
    ({**CONVERSATION, "turns": [{"query": "Why?", "turn": 1}]}, False),
    ({**CONVERSATION, "turns": [{"query": "Why?"}] * 101}, False),
    ({**CONVERSATION, "metadata": []}, False),
    ({"conversation": "c", "scenario": {"opening": "Hello?"}}, False),
    ({"conversation": "c", "scenario": {"opening": " ", "max_turns": 3}}, False),
    ({"conversation": "c", "scenario": {"opening": "Hello?", "max_turns": 21}}, False),
    ({"conversation": "c", "scenario": {"opening": "Hello?", "asks": []}}, False),
    ({"conversation": "c", "scenario": {"opening": "x" * 2001, "max_turns": 3}}, False),
    ({"conversation": "c", "scenario": {"opening": "Hi", "max_turns": 3, "mood": "x"}}, False),
    ({**SCENARIO, "query": "Why?"}, False),
    ({**SCENARIO, "conversation": None}, False),
]


def test_each_form_of_a_line() -> None:
    assert [line for line, is_read in FORMS if _accepts_line(line) is not is_read] == []
    assert [line for line, is_read in FORMS if VALID["queries"].is_valid(line) is not is_read] == []


def test_every_kind_of_expectation_is_in_the_schema() -> None:
    schema = json.loads(schema_text("queries"))
    demands = schema["$defs"]["expectations"]["items"]["anyOf"]
    assert [each["required"][0] for each in demands] == [*known_kinds(), "not"]


def _without_removed(table: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if value is not _REMOVED}


ENDPOINT: dict[str, Any] = {"url": "http://127.0.0.1:9/ask"}
ENDPOINT_FITS: dict[str, list[Any]] = {
    "name": ["my_service"],
    "method": ["GET", "post"],
    "headers": [{}, {"X-Tenant": "a"}],
    "body": [{"q": "{{query}}"}, '{"q": "{{query}}"}', []],
    "read": [{}, {"answer": "text", "contexts": "sources", "id": "id?"}],
    "stream": [{"token": "t"}],
    "version": [{"url": "/version", "path": "v"}, {"command": "git describe"}],
    "history": [{"most_turns": 3}],
    "data": ["mine"],
    "timeout": [0, 2.5],
    "concurrency": [3],
    "rpm": [0.5],
    "usd_per_call": [0.01],
    "expect": [[], [{"max_words": 9}]],
    "model": ["m"],
    "tool": ["t"],
}
ENDPOINT_MISFITS: list[dict[str, Any]] = [
    {"url": _REMOVED},
    {"url": 3},
    {"url": ""},
    {"name": "golden"},
    {"name": "a b"},
    {"kind": "rest"},
    {"kind": "openai"},
    {"kind": "mcp"},
    {"kind": "mcp", "tool": "t", "body": {}},
    {"arguments": {}},
    {"method": 3},
    {"headers": []},
    {"headers": {"X": 3}},
    {"read": {"answr": "x"}},
    {"read": "answer"},
    {"read": {"answer": 3}},
    {"stream": {"x": "y"}},
    {"version": {"urls": "x"}},
    {"history": {"most_turns": -1}},
    {"history": {"most_turns": "3"}},
    {"session": {}},
    {"session": {"path": "id", "changes": "yes"}},
    {"session": {"path": "id", "open": {}}},
    {"timeout": -1},
    {"timeout": "3"},
    {"timeout": True},
    {"concurrency": 1.5},
    {"expect": {}},
    {"expect": ["x"]},
    {"traces": "zipkin"},
    {"traces_wait": 3},
    {"timeouts": 3},
]


@given(changes=_changes(ENDPOINT_FITS))
def test_a_service_that_is_read_fits(changes: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    table = {**ENDPOINT, **changes}
    assert _accepts_file(read_endpoint, table, tmp_path_factory.mktemp("endpoint")), table
    VALID["endpoint"].validate(table)


@pytest.mark.parametrize(
    "more",
    [
        {"kind": "openai", "model": "m", "body": {"stream": False}},
        {"kind": "mcp", "tool": "t", "arguments": {"q": "{{query}}"}},
        {"kind": "sse"},
        {"traces": "otlp", "traces_port": 4319, "traces_wait": 3, "traces_late": 0.1},
        {"session": {"path": "id"}, "body": {"q": "{{query}}", "s": "{{session?}}"}},
        {"session": {"id": "{{uuid}}", "resumes": True}, "body": {"s": "{{session}}"}},
        {"session": {"path": "id", "open": {"url": "/new", "body": {}}}, "body": {"s": "{{session}}"}},
    ],
)
def test_each_kind_of_service_fits(more: dict[str, Any], tmp_path: Path) -> None:
    table = {**ENDPOINT, **more}
    assert _accepts_file(read_endpoint, table, tmp_path)
    VALID["endpoint"].validate(table)


def test_a_service_that_is_refused_by_its_form_does_not_fit(tmp_path: Path) -> None:
    tables = [_without_removed({**ENDPOINT, **more}) for more in ENDPOINT_MISFITS]
    assert [table for table in tables if _accepts_file(read_endpoint, table, tmp_path)] == []
    assert [table for table in tables if VALID["endpoint"].is_valid(table)] == []


SPACE: dict[str, Any] = {"objective": "recall@3", "parameters": {"top_k": [1, 3]}}
SPACE_FITS: dict[str, list[Any]] = {
    "objective": ["recall@5", ["recall@5", "token_f1"]],
    "constraints": [[], ["cost_usd <= 0.002"]],
    "margin": [0, 0.02],
    "held_out": [0.3],
    "confidence": [0.9],
    "seed": [3, -1],
    "parameters": [
        {"top_k": 3},
        {"retriever": ["dense", "hybrid"], "dense_weight": {"values": [0.3, 1], "if": {"retriever": "hybrid"}}},
        {"rerank": [True, False], "candidates": {"values": 20, "if": {"rerank": [True]}}},
        {"chunk_size": [256], "chunker": "sections", "prompt": "e3", "temperature": [0.0, 0.5]},
    ],
    "start": [[], [{"name": "mine", "top_k": 4}, {"top_k": 5}]],
}
SPACE_MISFITS: list[dict[str, Any]] = [
    {"objective": _REMOVED},
    {"objective": 3},
    {"objective": []},
    {"objective": ["recall@5"] * 4},
    {"constraints": "cost_usd <= 1"},
    {"constraints": [3]},
    {"margin": 2},
    {"margin": "0.1"},
    {"margin": True},
    {"held_out": 0.95},
    {"seed": 1.5},
    {"seed": True},
    {"experiment": 3},
    {"parameters": _REMOVED},
    {"parameters": {}},
    {"parameters": []},
    {"parameters": {"top_kk": [3]}},
    {"parameters": {"top_k": []}},
    {"parameters": {"top_k": ["3"]}},
    {"parameters": {"top_k": [0]}},
    {"parameters": {"rerank": "yes"}},
    {"parameters": {"retriever": ["sparse"]}},
    {"parameters": {"dense_weight": 2}},
    {"parameters": {"top_k": {"value": 3}}},
    {"parameters": {"top_k": {"if": {}}}},
    {"parameters": {"top_k": {"values": 3, "if": 3}}},
    {"parameters": {"body.top_k": [3]}},
    {"start": {}},
    {"start": ["x"]},
    {"start": [{"name": "today"}]},
    {"start": [{"name": "a b"}]},
    {"start": [{"top_k": [3]}]},
    {"goal": "x"},
]


@given(changes=_changes(SPACE_FITS))
def test_a_space_that_is_read_fits(changes: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    table = {**SPACE, **changes}
    assert _accepts_file(read_space, table, tmp_path_factory.mktemp("space")), table
    VALID["space"].validate(table)


def test_a_space_that_is_refused_by_its_form_does_not_fit(tmp_path: Path) -> None:
    tables = [_without_removed({**SPACE, **more}) for more in SPACE_MISFITS]
    assert [table for table in tables if _accepts_file(read_space, table, tmp_path)] == []
    assert [table for table in tables if VALID["space"].is_valid(table)] == []


@pytest.mark.parametrize(
    ("parameters", "is_read"),
    [
        ({"body.top_k": [3, 5]}, True),
        ({"body": {"settings": {"top_k": [3, 5]}}}, True),
        ({"body.top_k": {"values": [3], "if": {"body.top_k": 3}}}, False),
        ({"chunk_size": [256]}, True),
        ({"chunk_size": ["256"]}, False),
        ({"retriever": "bm25"}, False),
    ],
)
def test_a_space_of_a_service(parameters: dict[str, Any], is_read: bool, tmp_path: Path) -> None:
    table = {"objective": "token_f1", "experiment": "shop", "parameters": parameters}
    assert _accepts_file(read_space, table, tmp_path) is is_read
    if "body.top_k" not in parameters or is_read:  # a condition on itself is no matter of form
        assert VALID["space"].is_valid(table) is is_read


_values = (
    st.none() | st.booleans() | st.integers(-3, 3000) | st.floats(-1, 3).filter(lambda x: x % 1) | st.text(max_size=5)
)


@given(st.sampled_from(known_parameters("")), _values)
def test_each_parameter_has_the_values_of_its_schema(name: str, value: Any) -> None:
    try:
        checked_value("here", name, value, "")
        is_read = True
    except SettingsError:
        is_read = False
    assert VALID["space"].is_valid({"objective": "recall@3", "start": [{name: value}]}) is is_read


def test_a_schema_is_printed_or_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "endpoint"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "Service"
    assert main(["schema", "result", "-o", str(tmp_path / "sub" / "row.json")]) == 0
    assert json.loads((tmp_path / "sub" / "row.json").read_text())["title"] == "ExperimentResult"
