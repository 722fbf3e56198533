"""Every problem of a queries file is told at once, with its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import DataError
from rag_harness.core.types import Case, Evidence, Query
from rag_harness.data.queries import KNOWN_TYPES, distribution, read_queries, type_problem, types_named

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
        "6: colour: no field of a question. A label stands in metadata.",
        f"7: q4: context_reference 'return.md' is no page of {kb}. Did you mean 'returns.md'?",
    ]


@pytest.mark.parametrize(
    "name",
    ["gone.md", "../outside.md", "/etc/passwd", "./returns.md", "deep//fees.md", "deep", "README.md", "a" * 5000, "\0"],
)
def test_a_reference_is_a_page_spelt_as_its_doc_id(file: Path, kb: Path, name: str) -> None:
    (found,) = problems(file, line(context_reference=["returns.md", name]), kb=kb)
    assert found.startswith(f"1: q1: context_reference {name!r} is no page of {kb}.")
    (found,) = problems(file, line(evidence=[{"filename": name, "quote": "x"}]), kb=kb)
    assert found.startswith(f"1: q1: evidence {name!r} is no page of {kb}.")


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
        "3: query: String should have at least 1 character; colour: no field of a question. A label stands in metadata."
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


# A type that is nearly a known one is no type of the user's own.


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
