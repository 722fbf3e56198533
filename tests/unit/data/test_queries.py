"""Files and tables of questions: every problem is told with its line; expected tools and the digest are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import DataError
from rag_harness.core.files import file_digest
from rag_harness.core.types import Case, Evidence, ExpectedTool, Query
from rag_harness.data.datasets import asked_digest
from rag_harness.data.queries import KNOWN_TYPES, distribution, read_queries, type_problem, types_named
from rag_harness.records.cases import MOST_TOOLS, tools_as_json

# Every problem of a queries file is told at once, with its line.

# Every problem of a queries file is told at once, with its line.


def line(query_id: str = "q1", **changes: Any) -> str:
    return json.dumps({"query_id": query_id, "query": "Why?", **changes}, ensure_ascii=False)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "queries.jsonl"


@pytest.fixture
def kb(tmp_path: Path) -> Path:
    folder = tmp_path / "kb"
    (folder / "deep").mkdir(parents=True)
    for name in ("returns.md", "deep/fees.md", "README.md", "structure.json"):
        (folder / name).write_text("# Page")
    (tmp_path / "outside.md").write_text("# Page")
    return folder


def problems(file: Path, *lines: str, kb: Path | None = None) -> list[str]:
    """Return what is wrong with ``lines``, without the file's name."""
    file.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_queries(file, kb)
    return [each.removeprefix(f"{file}:") for each in str(caught.value).splitlines()]


def test_a_line_becomes_a_case(file: Path, kb: Path) -> None:
    evidence = [{"filename": "deep/fees.md", "quote": "No fee."}]
    more = {"ground_truth": "30 days", "context_reference": ["returns.md"], "evidence": evidence, "metadata": {"a": 1}}
    file.write_text(line("q_1.a-b", query_type="multi_hop", query="  How long?\n", **more))
    assert read_queries(file, kb) == [
        Case(
            Query("q_1.a-b", "How long?"),
            "multi_hop",
            "30 days",
            {"returns.md": 1},
            (Evidence("deep/fees.md", "No fee."),),
            metadata={"a": 1},
        )
    ]


def test_gold_may_be_graded_and_a_label_need_not_say_what_is_answerable(file: Path, kb: Path) -> None:
    more = {"context_reference": ["returns.md"], "qrels": {"deep/fees.md": 2, "returns.md": 3}}
    inputs = {"selected_text": "30 days"}
    file.write_text(
        "\n".join(
            [
                line("a", query_type="trick", answerable=False, inputs=inputs),
                line("b", query_type="negative"),
                line("c", query_type="negative", answerable=True, **more),
            ]
        )
    )
    first, second, third = read_queries(file, kb)
    assert (first.query_type, first.answerable, first.query.inputs) == ("trick", False, inputs)
    assert (second.answerable, third.answerable) == (False, True)
    assert third.qrels == {"returns.md": 3, "deep/fees.md": 2}
    assert third.context_reference == ("returns.md", "deep/fees.md")


def test_a_page_that_is_judged_but_not_there_is_named(file: Path, kb: Path) -> None:
    (found,) = problems(file, line(qrels={"retruns.md": 1}), kb=kb)
    assert "'retruns.md'" in found
    assert "'returns.md'" in found


@pytest.mark.parametrize(("given", "read"), [(None, ()), ("a.md", ("a.md",)), (["a.md", "b.md"], ("a.md", "b.md"))])
def test_a_reference_may_be_one_name_a_list_or_null(file: Path, given: Any, read: tuple[str, ...]) -> None:
    file.write_text(line(context_reference=given))
    assert read_queries(file)[0].context_reference == read


def test_all_problems_come_in_one_error(file: Path, kb: Path) -> None:
    lines = [
        line("q1"),
        "{",
        "[1]",
        line("q1"),
        line("q 2"),
        line("q3", query=" ", query_type=[], colour="red"),
        line("q4", context_reference=["return.md"]),
    ]
    found = problems(file, *lines, kb=kb)
    assert found == [
        "2: Invalid JSON: EOF while parsing an object at column 1",
        "3: Input should be an object",
        "4: query_id 'q1' stands already on line 1.",
        "5: query_id: String should match pattern '^[A-Za-z0-9_.\\-]+(#[0-9]+)?$'",
        "6: query_type: Input should be a valid string",
        "6: query: String should have at least 1 character",
        "6: colour: no field of a question. A label is in metadata.",
        f"7: q4: context_reference 'return.md' is not a page of {kb}. Did you mean 'returns.md'?",
    ]


@pytest.mark.parametrize(
    "name",
    ["gone.md", "../outside.md", "/etc/passwd", "./returns.md", "deep//fees.md", "deep", "README.md", "a" * 5000, "\0"],
)
def test_a_reference_is_a_page_spelt_as_its_doc_id(file: Path, kb: Path, name: str) -> None:
    (found,) = problems(file, line(context_reference=["returns.md", name]), kb=kb)
    assert found.startswith(f"1: q1: context_reference {name!r} is not a page of {kb}.")
    (found,) = problems(file, line(evidence=[{"filename": name, "quote": "x"}]), kb=kb)
    assert found.startswith(f"1: q1: evidence {name!r} is not a page of {kb}.")


def test_references_are_not_checked_without_a_knowledge_base(file: Path) -> None:
    file.write_text(line(context_reference="anywhere.md"))
    assert read_queries(file)[0].context_reference == ("anywhere.md",)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", '{"deep": [NaN]}'])
def test_a_number_that_json_does_not_have_is_refused(file: Path, number: str) -> None:
    (found,) = problems(file, line(), f'{{"query_id": "q2", "query": "?", "metadata": {{"x": {number}}}}}')
    assert found.startswith("2: metadata: Out of range float values are not JSON compliant")


def test_a_lone_surrogate_is_refused(file: Path) -> None:
    (found,) = problems(file, '{"query_id": "q1", "query": "\\ud800"}')
    assert found.startswith("1: Invalid JSON")


def test_separators_of_unicode_are_no_ends_of_lines(file: Path) -> None:
    text = "one\u2028two\u2029three\x85four"
    file.write_text(line("q1", query=text) + "\n" + line("q2"), encoding="utf-8")
    assert [case.query.text for case in read_queries(file)] == [text, "Why?"]


def test_byte_order_mark_crlf_and_blank_lines(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbf\r\n" + line("q1").encode() + b"\r\n\r\n   \n" + line("q2").encode())
    assert [case.query.query_id for case in read_queries(file)] == ["q1", "q2"]
    assert problems(file, "", "", "x") == ["3: Invalid JSON: expected value at column 1"]


def test_a_query_of_20000_characters_is_kept(file: Path) -> None:
    file.write_text(line(query="x" * 20_000))
    assert len(read_queries(file)[0].query.text) == 20_000


def test_a_file_that_is_not_utf8_is_named_with_its_line(file: Path) -> None:
    file.write_bytes(line().encode() + b"\n\n\xe9")
    with pytest.raises(DataError) as caught:
        read_queries(file)
    assert str(caught.value) == f"{file}:3: not UTF-8 at byte {file.stat().st_size - 1}. Save the file as UTF-8."


def test_a_missing_and_an_empty_file(file: Path) -> None:
    with pytest.raises(DataError, match=r"No file .*queries\.jsonl\. Name your questions with --rag-queries FILE; "):
        read_queries(file)
    file.write_text("\n\n")
    with pytest.raises(
        DataError, match=r"queries\.jsonl holds no query: each line is a JSON object with query_id and query, at"
    ):
        read_queries(file)


def test_distribution_counts_the_types(file: Path) -> None:
    kinds = ["negative", "direct", "direct", "multi_hop"]
    file.write_text("\n".join(line(f"q{n}", query_type=kind) for n, kind in enumerate(kinds)))
    assert distribution(read_queries(file)) == {"negative": 1, "direct": 2, "multi_hop": 1}


def test_a_type_is_looked_at_where_types_are_given(file: Path) -> None:
    file.write_text("\n".join([line("q1", query_type="negtive"), line("q2", query_type="fee")]))
    with pytest.raises(DataError, match=r"queries\.jsonl:1: q1: query_type 'negtive' is not known\. Did you mean"):
        read_queries(file, types=())
    assert distribution(read_queries(file, types=("negtive",))) == {"negtive": 1, "fee": 1}


def test_lines_that_cannot_be_used_are_skipped_where_that_is_asked_for(file: Path, kb: Path) -> None:
    lines = [
        line("q1", context_reference=["gone.md"]),
        "{",
        line("q1", query=" ", colour="red"),
        line("q1"),
        line("q1", query="Again?"),
        line("q2", query_type="negtive"),
        line("q3"),
    ]
    file.write_bytes("\n".join(lines).encode() + b"\n\xe9\n")
    skipped: list[str] = []
    assert [case.query.query_id for case in read_queries(file, kb, (), skipped)] == ["q1", "q3"]
    at = [each.removeprefix(f"{file}:") for each in skipped]
    assert sorted(int(each.partition(":")[0]) for each in at) == [1, 2, 3, 5, 6, 8]
    assert (
        "3: query: String should have at least 1 character; colour: no field of a question. A label is in metadata."
        in at
    )
    assert "5: query_id 'q1' stands already on line 4." in at
    assert "8: not UTF-8 at byte 0 of the line. Save the file as UTF-8." in at


def test_a_file_of_nothing_but_bad_lines_is_an_error_even_then(file: Path) -> None:
    file.write_text("{\n" * 9)
    with pytest.raises(DataError) as caught:
        read_queries(file, skipped=[])
    said = str(caught.value).splitlines()
    assert len(said) == 6
    assert said[0].startswith(f"{file}:1: Invalid JSON")
    assert "holds no query" in said[-1]


def test_questions_that_name_no_page_need_no_folder_of_documents(file: Path, tmp_path: Path) -> None:
    file.write_text(line())
    assert len(read_queries(file, tmp_path / "none")) == 1
    file.write_text(line(context_reference=["returns.md"]))
    with pytest.raises(DataError, match=r"^No folder .*none\."):
        read_queries(file, tmp_path / "none")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["30 days", "one month"], "a text was expected, found several values."),
        ({"days": 30}, "a text was expected, found several values."),
        (30, 'a text was expected, found 30. Write it in quotes: "30"'),
        (4.99, 'a text was expected, found 4.99. Write it in quotes: "4.99"'),
        (True, 'a text was expected, found true. Write it in quotes: "yes"'),
        (False, 'a text was expected, found false. Write it in quotes: "no"'),
    ],
)
def test_a_ground_truth_that_is_no_text_says_how_to_write_it(file: Path, given: Any, said: str) -> None:
    (found,) = problems(file, line(ground_truth=given))
    assert found.startswith(f"1: ground_truth: {said}")


@pytest.mark.parametrize(
    ("given", "read"), [("30", "30"), ("Yes.", "Yes."), ("", ""), (None, ""), ("30日以内", "30日以内")]
)
def test_a_ground_truth_may_be_a_number_yes_or_no_as_a_text_in_any_language_or_empty(
    file: Path, given: str | None, read: str
) -> None:
    file.write_text(line(ground_truth=given))
    assert read_queries(file)[0].ground_truth == read


# A type that is nearly a known one is not a type of the user's own.


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("negtive", "negative"),
        ("negatives", "negative"),
        ("Negative", "negative"),
        ("multi-hop", "multi_hop"),
        ("multihop", "multi_hop"),
        ("Multi Hop", "multi_hop"),
        ("direkt", "direct"),
        ("comparisons", "comparison"),
        ("unlabeled", "unlabelled"),
    ],
)
def test_a_misspelling_is_named_with_what_was_meant(name: str, meant: str) -> None:
    said = type_problem(name, None)
    assert said.startswith(f"query_type {name!r} is not known. Did you mean {meant!r}? Known: direct, multi_hop, ")
    assert f"--rag-query-types={name} (ini rag_query_types)" in said


@pytest.mark.parametrize(
    "name",
    [*KNOWN_TYPES, "table", "selected", "exact_name", "single_hop", "multi_doc", "multi_turn", "indirect", "positive"],
)
def test_known_types_and_truly_other_ones_are_left_alone(name: str) -> None:
    assert type_problem(name, None) == ""


def test_a_named_type_is_known_and_its_misspelling_is_told_too() -> None:
    types = types_named(["negtive, policy date", "fee"])
    assert types == ("negtive", "policy date", "fee")
    assert type_problem("negtive", None, types) == ""
    assert "Did you mean 'policy date'?" in type_problem("policy_date", None, types)


@pytest.mark.parametrize("name", ["negative_hard", "unanswerable", "hard-negative"])
def test_what_says_that_nothing_answers_it_must_not_count_as_answerable_unsaid(name: str) -> None:
    assert 'add "answerable": false' in type_problem(name, None, (name,))
    assert type_problem(name, False) == type_problem(name, True) == ""


# Which tools a question expects: read with its line, or refused with what is wrong, before anything is asked.


def read(folder: Path, **line: Any) -> list[Case]:
    file = folder / "queries.jsonl"
    file.write_text(json.dumps({"query_id": "q1", "query": "What is the T-18?", **line}) + "\n")
    return read_queries(file)


def test_a_line_states_calls_with_and_without_arguments(tmp_path: Path) -> None:
    raw = [{"name": "price", "args": {"sku": "T-18"}}, {"name": "page"}, {"name": "stop", "args": {}}]
    (case,) = read(tmp_path, tools=raw)
    assert case.tools == (ExpectedTool("price", {"sku": "T-18"}), ExpectedTool("page"), ExpectedTool("stop", {}))
    assert tools_as_json(case.tools) == raw


def test_an_empty_list_says_something_and_no_list_does_not(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [{"tools": []}, {}, {"tools": None}]
    assert [read(tmp_path, **line)[0].tools for line in lines] == [(), None, None]


def test_turns_have_tools_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "queries.jsonl"
    turns = [{"query": "a", "tools": [{"name": "price"}]}, {"query": "b"}]
    file.write_text(json.dumps({"conversation": "c", "turns": turns}) + "\n")
    assert [case.tools for case in read_queries(file)] == [(ExpectedTool("price"),), None]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("price", "a list of objects was expected"),
        ({"name": "price"}, "a list of objects was expected"),
        (["price"], "call 1: an object was expected"),
        ([{"name": "a"}, {"tool": "price"}], "call 2: Unknown key 'tool'."),
        ([{"name": "price", "arg": {}}], "Did you mean 'args'?"),
        ([{"args": {}}], "call 1: name is missing"),
        ([{"name": " "}], "call 1: name is missing"),
        ([{"name": "price", "args": ["T-18"]}], "call 1: args: an object was expected"),
        ([{"name": "price", "args": None}], "call 1: args: an object was expected"),
        ([{"name": "a"}] * (MOST_TOOLS + 1), "101 calls; a case may expect 100"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(tmp_path: Path, raw: Any, said: str) -> None:
    with pytest.raises(DataError) as caught:
        read(tmp_path, tools=raw)
    assert str(caught.value).startswith(f"{tmp_path / 'queries.jsonl'}:1: q1: tools: ")
    assert said in str(caught.value)


# The digest of questions: what their answers owe is no part of it, all else is.

ROOT = Path(__file__).parents[3]


def digest(folder: Path, content: str | bytes) -> str:
    file = folder / "queries.jsonl"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return asked_digest(file)


@pytest.mark.parametrize(
    "line",
    [
        '{"query_id": "q1", "query": "a", "expect": [{"contains": "}, {\\"x"}]}',
        '{"query_id": "q1", "expect": [], "query": "a"}',
        '{"expect": [{"max_words": 3}], "query_id": "q1", "query": "a"}',
        '{"query_id": "q1", "expect": 1, "query": "a", "expect": 2}',
        '{"query_id": "q1", "query": "a", "tools": [{"name": "price"}]}',
        '{"expect": [],  "tools": [], "query_id": "q1", "query": "a"}',
        '{"tools": [] , "expect": [1], "query_id": "q1", "tools": 3, "query": "a"}',
        '{"query_id": "q1", "tools": [], "expect": [], "query": "a"}',
    ],
)
def test_a_line_counts_as_if_it_had_none(tmp_path: Path, line: str) -> None:
    plain = digest(tmp_path, '{"query_id": "q1", "query": "a"}\n{"b": 1}\n')
    assert plain == file_digest(tmp_path / "queries.jsonl")
    assert digest(tmp_path, f'{line}\n{{"b": 1}}\n') == plain


def test_turns_are_looked_at_too(tmp_path: Path) -> None:
    plain = digest(tmp_path, '{"conversation": "c", "turns": [{"query": "a"}, {"query": "b"}]}')
    line = (
        '{"conversation": "c", "turns": [{"query": "a", "expect": [{}]}, {"expect": [], "query": "b"}], "expect": []}'
    )
    assert digest(tmp_path, line) == plain


@pytest.mark.parametrize(
    "line",
    [
        '{"query": "what do I \\"expect\\"?"}',
        '{"query": "a", "metadata": {"expect": 1}}',
        '{"query": "a" "expect": 1}',
        '["expect"]',
        '{"query": "a", "turns": {"expect": 1}}',
        b'{"query": "\xff", "expect": 1}',
        '{"turns": ["expect", 3',
        '"expect"',
        '{"turns": ' + "[" * 100_000 + '"expect"',
    ],
)
def test_whatever_else_stands_there_counts(tmp_path: Path, line: str | bytes) -> None:
    digest(tmp_path, line)
    assert asked_digest(tmp_path / "queries.jsonl") == file_digest(tmp_path / "queries.jsonl")


values = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
members = st.dictionaries(st.text().filter(lambda key: key not in ("expect", "tools", "turns")), values, max_size=4)


@given(members, values, st.integers(0, 4), st.integers(0, 4))
def test_adding_it_to_any_line_changes_nothing(
    members: dict[str, object], owed: object, place: int, other: int
) -> None:
    import tempfile

    items = list(members.items())
    items.insert(place, ("expect", owed))
    items.insert(other, ("tools", owed))
    with tempfile.TemporaryDirectory() as folder:
        plain = digest(Path(folder), json.dumps(members))
        assert digest(Path(folder), json.dumps(dict(items))) == plain
        more = json.dumps({**members, "other": owed})
        assert digest(Path(folder), more) != plain or more == json.dumps(members)


def test_the_questions_that_ship_are_those_of_before_they_owed_anything() -> None:
    assert asked_digest(ROOT / "data" / "kb" / "queries.jsonl") == "89b23f79180a1ac0"


# Tables of questions are read like lines; a file of another form is told with what makes lines of it.


def cases(file: Path, text: str | bytes, **mapped: str) -> list[Case]:
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_queries(file, mapped=mapped)


def said(file: Path, text: str | bytes, **mapped: str) -> str:
    with pytest.raises(DataError) as caught:
        cases(file, text, **mapped)
    return str(caught.value).replace(str(file.parent), "")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "queries.csv"


HEADER = "id;question;answer;documents;quotes;answerable;expect;metadata.topic;team;inputs.lang\r\n"
ROW = 'q1;Why?;So.;a.md;["Just so."];yes;[{"contains": "So"}];money;shop;de\r\n'


@pytest.mark.parametrize("name", ["tools", "reference_tool_calls"])
def test_expected_tools_are_json(table: Path, name: str) -> None:
    rows = f'question;{name}\nWhy?;[{{"name": "price", "args": {{"sku": "T-18"}}}}]\nHow?;[]\nWhat?;\n'
    assert [case.tools for case in cases(table, rows)] == [(ExpectedTool("price", {"sku": "T-18"}),), (), None]


def test_a_row_is_a_line(table: Path) -> None:
    (case,) = cases(table, ("\ufeff" + HEADER + ROW).encode(), evidence="quotes")
    assert (case.query.query_id, case.query.text, case.query.inputs) == ("q1", "Why?", {"lang": "de"})
    assert (case.ground_truth, case.context_reference, case.answerable) == ("So.", ("a.md",), True)
    assert case.evidence == (Evidence("a.md", "Just so."),)
    assert case.metadata == {"topic": "money", "team": "shop"}
    assert [each.wanted for each in case.expect] == ["So"]


def test_the_same_questions_in_parquet(tmp_path: Path) -> None:
    rows = [
        {"user_input": "Why?", "reference": "So.", "documents": ["a.md", "b.md"], "score": float("nan"), "n": 3},
        {"user_input": "Who?", "reference": None, "documents": None, "score": 0.5, "n": None},
    ]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "q.parquet")
    first, second = read_queries(tmp_path / "q.parquet")
    assert (first.context_reference, first.metadata) == (("a.md", "b.md"), {"n": 3})
    assert (second.ground_truth, second.context_reference, second.metadata) == ("", (), {"score": 0.5})


def test_ids_are_digests_where_there_are_none(table: Path) -> None:
    first = cases(table, "question\nWhy?\nWho?\n")
    again = cases(table, "question\nWho?\nWhy?\n")
    assert {case.query.query_id for case in first} == {case.query.query_id for case in again}
    assert "stands already on line 2." in said(table, "question\nWhy?\nWhy?\n")


def test_turns_of_conversations_stand_in_rows(table: Path) -> None:
    text = "conversation,turn,query,ground_truth\nc1,1,Why?,So.\nc1,2,And then?,Thus.\n"
    second = cases(table, text)[1]
    assert second.query.query_id == "c1#2"
    assert [each["content"] for each in second.query.inputs["history"]] == ["Why?", "So."]


def test_columns_are_mapped(table: Path) -> None:
    (case,) = cases(
        table, 'frage,daten\nWarum?,"{""antwort"": ""Darum.""}"\n', query="frage", ground_truth="daten.antwort"
    )
    assert (case.query.text, case.ground_truth) == ("Warum?", "Darum.")


@pytest.mark.parametrize(
    ("text", "mapped", "message"),
    [
        ("frage\nWarum?\n", {}, "/queries.csv: no column is the question: frage. Say which: --rag-map question=frage"),
        ("query,question\na,b\n", {}, "columns 'query' and 'question' are both query. Say which one counts: "),
        ("query,query\na,b\n", {}, "/queries.csv:1: column 'query' is there twice. Rename one."),
        ("query\na\n", {"ground_truth": "x"}, "rag_map says ground_truth=x, and there is no such column"),
        ("query,expect\na,{\n", {}, "/queries.csv:2: expect: no JSON"),
        ("query,answerable\na,perhaps\n", {}, "/queries.csv:2: answerable: yes or no was expected, found 'perhaps'"),
        ("query,evidence,documents\na,b,c.md|d.md\n", {}, "/queries.csv:2: evidence: quotes of 2 documents."),
        ("query,documents\na,\"['b' 'c']\"\n", {}, "/queries.csv:2: documents: no comma behind 'b'"),
        ("query,turn,conversation\na,x,c\n", {}, "/queries.csv:2: turn: invalid literal"),
        ("query,answer\n,So.\n", {}, "/queries.csv:2: query: Field required"),
        ("query\n", {}, "holds no query"),
        ("query\n\xe4\n".encode("latin-1"), {}, "/queries.csv:2: not UTF-8"),
    ],
)
def test_what_cannot_be_meant_is_named(table: Path, text: str | bytes, mapped: dict[str, str], message: str) -> None:
    assert message in said(table, text, **mapped)


def test_a_bad_row_may_be_skipped(table: Path) -> None:
    table.write_text("query,answerable\nWhy?,yes\nWho?,perhaps\n")
    skipped: list[str] = []
    assert [case.query.text for case in read_queries(table, skipped=skipped)] == ["Why?"]
    assert len(skipped) == 1
    assert ":3: answerable: " in skipped[0]


def test_of_two_columns_for_a_field_the_mapped_one_counts(table: Path) -> None:
    (case,) = cases(table, "query,question\na,b\n", query="question")
    assert (case.query.text, case.metadata) == ("b", {"query": "a"})


def test_the_digest_is_of_what_is_asked(table: Path) -> None:
    table.write_text('query,expect\nWhy?,"{""contains"": ""a""}"\n')
    first = asked_digest(table)
    table.write_text('query,expect\nWhy?,"{""contains"": ""b""}"\n')
    assert asked_digest(table) == first
    table.write_text('query,expect\nWho?,"{""contains"": ""b""}"\n')
    assert asked_digest(table) != first
    assert asked_digest(table, {"query": "expect"}) != asked_digest(table)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (json.dumps([{"query": "Why?"}]), "queries.jsonl is a JSON array. It is to have one JSON object a line."),
        ("[\n  {\n", "is a JSON array"),
        (json.dumps({"query": "Why?"}, indent=2), "is one JSON object over several lines"),
        ("question,answer\nWhy?,So.\n", "looks like CSV, which is read where its name ends in .csv"),
        ("id;user_input\n1;Why?\n", "looks like CSV"),
    ],
)
def test_a_file_of_another_form_is_told_what_it_is(tmp_path: Path, text: str, message: str) -> None:
    found = said(tmp_path / "queries.jsonl", text)
    assert message in found
    assert "rag-harness queries import" in found
    assert len(found.splitlines()) == 1


@pytest.mark.parametrize(
    ("field", "near"),
    [("question", "query"), ("user_input", "query"), ("expected_output", "ground_truth"), ("evidnce", "evidence")],
)
def test_an_unknown_field_names_the_nearest(tmp_path: Path, field: str, near: str) -> None:
    found = said(tmp_path / "queries.jsonl", json.dumps({"query_id": "a", "query": "b", field: "c"}))
    assert found.endswith(f":1: {field}: no field of a question. Did you mean {near!r}?")


@pytest.mark.parametrize(
    "columns", ["metadata;topic;metadata.team", "topic;metadata;metadata.team", "topic;metadata.team;metadata"]
)
def test_labels_of_an_object_and_of_columns_stand_beside_each_other(table: Path, columns: str) -> None:
    cells = {"metadata": '{"hard": true, "topic": "old"}', "topic": "money", "metadata.team": "shop"}
    row = ";".join(cells[each] for each in columns.split(";"))
    (case,) = cases(table, f"question;{columns}\nWhy?;{row}\n")
    assert case.metadata == {"hard": True, "topic": "money", "team": "shop"}  # a column says it of this row alone


@pytest.mark.parametrize("columns", ["inputs;inputs.lang", "inputs.lang;inputs"])
def test_inputs_of_an_object_and_of_columns_stand_beside_each_other(table: Path, columns: str) -> None:
    cells = {"inputs": '{"tenant": "shop"}', "inputs.lang": "de"}
    row = ";".join(cells[each] for each in columns.split(";"))
    (case,) = cases(table, f"question;{columns}\nWhy?;{row}\n")
    assert case.query.inputs == {"tenant": "shop", "lang": "de"}


@pytest.mark.parametrize(("name", "cell", "label"), [("metadata", "easy", "easy"), ("tags", '["a"]', ["a"])])
@pytest.mark.parametrize("other", ["", ";metadata.team"])
def test_labels_that_are_no_object_are_a_label(table: Path, name: str, cell: str, label: object, other: str) -> None:
    row = f"Why?;{cell}{';shop' if other else ''}"
    (case,) = cases(table, f"question;{name}{other}\n{row}\n")
    assert case.metadata == {name: label, **({"team": "shop"} if other else {})}


def test_inputs_and_labels_that_are_broken_are_named(table: Path) -> None:
    assert "queries.csv:2: inputs: an object was expected, found 'de'" in said(table, "question;inputs\nWhy?;de\n")
    assert "inputs: an object was expected, found [1]" in said(table, "question;inputs;inputs.a\nWhy?;[1];b\n")
    assert "queries.csv:2: metadata: no JSON" in said(table, 'question;metadata\nWhy?;{"a": \n')
