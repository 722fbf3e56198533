"""A golden set is read whole or refused with every problem; its gold survives re-chunking."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rag_harness.authoring.kb.page import parse_page
from rag_harness.core.errors import DataError
from rag_harness.core.text.comparison import numbered
from rag_harness.core.types import Chunk, Document
from rag_harness.data.golden import GoldenEntry, read_golden, resolve
from rag_harness.data.queries import placeholder_for, read_queries
from rag_harness.evaluation.measures.ranking import evaluate
from rag_harness.retrieval.chunking import ChunkingSettings
from rag_harness.retrieval.chunking.chunkers import chunk_headings, chunk_sections
from tests.effort import bounded

EXAMPLE = '[{"query": "…", "expected_document_id": "page.md#heading", "justification": "…"}]'
ENTRY = {"query": "How long may I return?", "expected_document_id": "a.md", "justification": "Says so."}


class Words:
    """A tokenizer that counts words."""

    def count(self, texts: Any) -> list[int]:
        return [len(text.split()) for text in texts]


def written(folder: Path, content: Any, name: str = "golden.json") -> Path:
    file = folder / name
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def problem(file: Path) -> str:
    with pytest.raises(DataError) as error:
        read_golden(file)
    return str(error.value).replace(str(file), "FILE")


def test_reads_every_form_of_an_entry(tmp_path: Path) -> None:
    several = {
        "id": "sizes",
        "query": " Both? ",
        "expected_document_id": ["a.md#one", "b.md", "b.md"],
        "justification": "Two.",
        "evidence": ["said", {"filename": "b.md", "quote": "written"}],
        "query_type": "multi_hop",
        "metadata": {"difficulty": "hard"},
    }
    quoted = {**ENTRY, "query": "Third?", "evidence": {"filename": "a.md", "quote": "there"}}
    assert read_golden(written(tmp_path, [{**ENTRY, "evidence": "here"}, several, quoted])) == [
        GoldenEntry("g001", "How long may I return?", ("a.md",), "Says so.", ("here",), {}),
        GoldenEntry(
            "sizes",
            "Both?",
            ("a.md#one", "b.md"),
            "Two.",
            ("said", "written"),
            {"difficulty": "hard", "query_type": "multi_hop"},
        ),
        GoldenEntry("g003", "Third?", ("a.md",), "Says so.", ("there",), {}),
    ]


def test_reads_csv_as_json(tmp_path: Path) -> None:
    rows = (
        "\ufeffquery,expected_document_id,justification,query_type\r\n"
        '"Long, and\nlonger?",a.md,Says so.,direct\r\n,,,\r\nShort?,b.md,"It ""does"".",\r\n'
    )
    assert read_golden(written(tmp_path, rows, "golden.CSV")) == [
        GoldenEntry("g001", "Long, and\nlonger?", ("a.md",), "Says so.", (), {"query_type": "direct"}),
        GoldenEntry("g002", "Short?", ("b.md",), 'It "does".'),
    ]


def test_accepts_a_byte_order_mark(tmp_path: Path) -> None:
    assert len(read_golden(written(tmp_path, b"\xef\xbb\xbf" + json.dumps([ENTRY]).encode()))) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", f"FILE holds no entry. A golden set is {EXAMPLE}."),
        ("[]", f"FILE holds no entry. A golden set is {EXAMPLE}."),
        (ENTRY, f"FILE: expected a list of entries, found an object. Write {EXAMPLE}."),
        (
            '[\n{"query": }]',
            f"FILE:2: no JSON: Expecting value at column 11. A golden set is one list: {EXAMPLE}.",
        ),
        (b'[\n"\xff"]', "FILE:2: not UTF-8 at byte 3. Save the file as UTF-8."),
        (
            ["a.md"],
            "FILE: entry 1: must be an object with query, expected_document_id and justification, found a string.",
        ),
        (
            [{**ENTRY, "query": " "}],
            "FILE: entry 1: query is empty. Write it, or remove the entry.",
        ),
        (
            [{"query": "What?", "justification": "Because."}],
            "FILE: entry 1 ('What?'): expected_document_id is missing. Add it.",
        ),
        (
            [{**ENTRY, "expected_document_id": []}],
            "FILE: entry 1 ('How long may I return?'): expected_document_id is empty. Write it, or remove the entry.",
        ),
        (
            [{**ENTRY, "expected_document_id": 7}],
            "FILE: entry 1 ('How long may I return?'): expected_document_id must be a string or a list of strings, "
            "found a number.",
        ),
        (
            [{**ENTRY, "evidence": ["here", {"filename": "a.md"}]}],
            "FILE: entry 1 ('How long may I return?'): evidence[1] must be a string, found an object. "
            "Put it in quotes.",
        ),
        (
            [{**ENTRY, "evidnce": "here"}],
            "FILE: entry 1 ('How long may I return?'): unknown field 'evidnce'. Did you mean 'evidence'?",
        ),
        (
            [{**ENTRY, "id": "g 1"}],
            "FILE: entry 1 ('How long may I return?'): id becomes a test id: letters, digits and _ . - only. "
            "Rename it.",
        ),
        (
            [ENTRY, {**ENTRY, "query": "How  long may I return?"}],
            "FILE: entry 2 ('How long may I return?'): the query stands already in entry 1. "
            "Remove one: an entry may expect several.",
        ),
        (
            [{**ENTRY, "id": "g002"}, {**ENTRY, "query": "Two?"}],
            "FILE: entry 2 ('Two?'): the id 'g002' stands already in entry 1. Rename one.",
        ),
        ("[" * 200_000, "FILE: no JSON that can be read: "),
    ],
)
def test_refuses_json(tmp_path: Path, content: Any, message: str) -> None:
    found = problem(written(tmp_path, content))
    assert found == message or (message.endswith(": ") and found.startswith(message))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "query,expected_document_id,justification\n",
            "FILE holds no entry. A golden set is the header query,expected_document_id,justification "
            "and a row for each query.",
        ),
        (
            "query;expected_document_id;justification\n",
            "FILE:1: expected the header query,expected_document_id,justification, "
            "found query;expected_document_id;justification. "
            "Columns are separated by commas, and each has its own name.",
        ),
        (
            'query,expected_document_id,justification\n"One\nor\ntwo?",a.md,Yes.\nLong, short?,a.md,Yes.\nWhy?,,Yes.\n',
            "FILE:5: entry 2 ('Long'): 4 cells under a header of 3. Quote cells that hold commas.\n"
            "FILE:6: entry 3 ('Why?'): expected_document_id is empty. Write it, or remove the entry.",
        ),
        (
            'query,expected_document_id,justification\n"What" is it?,a.md,Yes.\n',
            "FILE:2: no CSV: ',' expected after '\"'. "
            "Put cells that hold commas in quotes, and double the quotes inside.",
        ),
    ],
)
def test_refuses_csv(tmp_path: Path, content: str, message: str) -> None:
    assert problem(written(tmp_path, content, "golden.csv")) == message


def test_names_every_problem_at_once(tmp_path: Path) -> None:
    long = {"query": "Is this a question of more than forty characters, or of fewer?"}
    assert problem(written(tmp_path, [long, 3, ENTRY])).splitlines() == [
        "FILE: entry 1 ('Is this a question of more than forty ch…'): expected_document_id is missing. Add it.",
        "FILE: entry 1 ('Is this a question of more than forty ch…'): justification is missing. Add it.",
        "FILE: entry 2: must be an object with query, expected_document_id and justification, found a number.",
    ]


def test_names_the_option_where_there_is_no_file(tmp_path: Path) -> None:
    assert problem(tmp_path / "none.json") == "No file FILE. Name your golden set with --rag-golden FILE."


@pytest.mark.parametrize("name", ["golden.json", "golden.csv"])
def test_reads_4_mb_at_once(tmp_path: Path, name: str) -> None:
    texts = [f"Question {number}? {'word ' * 40}" for number in range(16_000)]
    rows = "\n".join(["query,expected_document_id,justification", *(f"{text},a.md,Yes." for text in texts)])
    content = rows if name.endswith("csv") else [{**ENTRY, "query": text} for text in texts]
    file = written(tmp_path, content, name)
    with bounded(10):
        assert len(read_golden(file)) == 16_000


PAGE = """# Returns

Opening words.

## Return window

Electronics within
21 days of delivery.

### Notes

First notes.

## Café & Bar: what's new?

Tea and coffee, hot and cold, from seven in the morning.

### Notes

Second notes.
"""
OTHER = Document("b.md", "# Shipping\n\nBy post.\n", "Shipping")


def chunks_of(max_tokens: int = 512) -> list[Chunk]:
    settings = ChunkingSettings(max_tokens, overlap=0)
    pages = [Document("a.md", PAGE, "Returns"), OTHER]
    return [chunk for page in pages for chunk in chunk_sections(page, Words(), settings)]


def entry(*expected: str, evidence: tuple[str, ...] = (), entry_id: str = "g001") -> GoldenEntry:
    return GoldenEntry(entry_id, "How long may I return?", expected, "Says so.", evidence)


def ids(*expected: str, max_tokens: int = 512) -> set[str]:
    return set(resolve([entry(*expected)], chunks_of(max_tokens))["g001"].ids)


def test_a_page_is_gold_as_a_document() -> None:
    gold = resolve([entry("a.md", "b.md")], chunks_of())["g001"]
    assert gold.level == "document"
    assert gold.ids == {"a.md", "b.md"}
    assert gold.relevance == {"a.md": 1, "b.md": 1}
    assert gold.key(chunks_of()[3]) in gold.ids


def test_a_heading_is_the_chunks_of_its_section_and_below() -> None:
    assert [chunk.chunk_id for chunk in chunks_of()] == [*(f"a.md#chunk_{n}" for n in range(5)), "b.md#chunk_0"]
    assert ids("a.md#return-window") == {"a.md#chunk_1", "a.md#chunk_2"}
    assert ids("a.md#café--bar-whats-new") == {"a.md#chunk_3", "a.md#chunk_4"}
    assert ids("a.md#returns") == {f"a.md#chunk_{n}" for n in range(5)}
    assert ids("a.md#chunk_3") == {"a.md#chunk_3"}


def test_headings_of_one_name_are_told_apart() -> None:
    assert ids("a.md#notes") == {"a.md#chunk_2"}
    assert ids("a.md#notes-1") == {"a.md#chunk_4"}


@pytest.mark.parametrize("max_tokens", [6, 8, 512])
def test_gold_survives_rechunking(max_tokens: int) -> None:
    by_id = {chunk.chunk_id: chunk for chunk in chunks_of(max_tokens)}
    sections = {by_id[each].section for each in ids("a.md#café--bar-whats-new", max_tokens=max_tokens)}
    assert sections == {("Returns", "Café & Bar: what's new?"), ("Returns", "Café & Bar: what's new?", "Notes")}
    assert len(ids("a.md#café--bar-whats-new", max_tokens=max_tokens)) >= 2


def test_any_chunk_of_a_heading_finds_it() -> None:
    gold = resolve([entry("a.md#return-window", "b.md")], chunks_of())["g001"]
    assert gold.level == "chunk"
    assert gold.ids == {"a.md#chunk_1", "a.md#chunk_2", "b.md#chunk_0"}
    chunks = {chunk.chunk_id: chunk for chunk in chunks_of()}
    run = gold.ranked([chunks["a.md#chunk_4"], chunks["a.md#chunk_2"], chunks["a.md#chunk_1"], chunks["b.md#chunk_0"]])
    assert run == ["a.md#chunk_4", "a.md#return-window", "a.md#return-window", "b.md"]
    found = evaluate({"q": run}, {"q": gold.relevance}, ["recall@2", "recall@3", "mrr@10"])
    assert found == {"recall@2": {"q": 0.5}, "recall@3": {"q": 1.0}, "mrr@10": {"q": 0.5}}


def test_records_the_chunks_that_hold_a_quote() -> None:
    quote = ("Electronics  within 21 days",)
    assert resolve([entry("a.md", evidence=quote)], chunks_of())["g001"].evidence == ("a.md#chunk_1",)
    assert resolve([entry("a.md#returns", evidence=quote)], chunks_of())["g001"].evidence == ("a.md#chunk_1",)
    assert resolve([entry("b.md", evidence=quote)], chunks_of())["g001"].evidence == ()


def test_ids_with_a_number_sign_are_taken_whole_first() -> None:
    chunk = Chunk("x#1#whole", "x#1", "Text.")
    assert resolve([entry("x#1")], [chunk])["g001"].level == "document"
    assert resolve([entry("x#1#whole")], [chunk])["g001"].ids == {"x#1#whole"}


def test_ids_that_name_nothing_are_named_with_the_nearest() -> None:
    entries = [
        entry("a.md#return-windows", "b.md"),
        entry("aa.md", entry_id="g002"),
        entry("b.md#", entry_id="g003"),
        entry("zzzzzzzz", entry_id="g004"),
    ]
    with pytest.raises(DataError) as error:
        resolve(entries, chunks_of())
    none = "is not a page, heading or chunk of the documents."
    assert str(error.value).splitlines() == [
        f"Golden entry g001: expected_document_id 'a.md#return-windows' {none} "
        "Did you mean 'a.md#return-window' or 'a.md#returns' or 'a.md#notes'?",
        f"Golden entry g002: expected_document_id 'aa.md' {none} Did you mean 'a.md' or 'b.md'?",
        f"Golden entry g003: expected_document_id 'b.md#' {none} Did you mean 'b.md#chunk_0' or 'b.md#shipping'?",
        f"Golden entry g004: expected_document_id 'zzzzzzzz' {none} A heading is named as page.md#heading.",
    ]


def test_numbers_anchors_as_github_does() -> None:
    headings = ["Notes", "Notes", "Notes 1", "Notes-1", "A_b  C", "Notes"]
    assert numbered(headings) == ["notes", "notes-1", "notes-1-1", "notes-1-2", "a_b--c", "notes-2"]
    assert numbered(["Notes 1", "Notes", "Notes"]) == ["notes-1", "notes", "notes-2"]


def test_numbers_anchors_as_the_validator_does() -> None:
    headings = ["A", "a", "B 1", "B", "b", "A-1", "A", "Ä", "ä!"]
    page = parse_page("a.md", "\n\n".join(f"# {heading}" for heading in headings))
    assert numbered(headings) == list(page.anchors)


def test_questions_of_experiments_are_a_golden_set_too(tmp_path: Path) -> None:
    asked = {
        "query_id": "q1",
        "query": "How long?",
        "query_type": "multi_hop",
        "ground_truth": "45 days",
        "context_reference": ["a.md", "b.md"],
        "qrels": {"c.md": 0},
        "evidence": [{"filename": "a.md", "quote": "45 days"}],
        "metadata": {"reviewed": "no"},
    }
    negative = {"query_id": "q2", "query": "Live fish?", "query_type": "negative"}
    lines = "".join(json.dumps(each) + "\n" for each in (asked, negative))
    (entry,) = read_golden(written(tmp_path, lines, "queries.jsonl"))
    assert entry == GoldenEntry(
        "q1", "How long?", ("a.md", "b.md"), "45 days", ("45 days",), {"reviewed": "no", "query_type": "multi_hop"}
    )
    assert problem(written(tmp_path, json.dumps(negative), "queries.jsonl")).startswith("FILE holds no question with a")
    assert problem(tmp_path / "no.jsonl") == "No file FILE. Name your golden set with --rag-golden FILE."
    assert "FILE:1:" in problem(written(tmp_path, "no json\n", "queries.jsonl"))


def test_a_placeholder_is_told_by_its_text_whatever_is_said_of_it(tmp_path: Path) -> None:
    entry = {**ENTRY, "query": placeholder_for("a.md"), "reviewed": "yes"}
    (read,) = read_golden(written(tmp_path, [entry]))
    assert (read.metadata["reviewed"], read.metadata["placeholder"]) == ("no", "yes")
    asked = {"query_id": "q1", "query": placeholder_for("a.md"), "metadata": {"reviewed": "yes"}}
    (case,) = read_queries(written(tmp_path, json.dumps(asked), "queries.jsonl"))
    assert (case.labels["reviewed"], case.labels["placeholder"]) == ("no", "yes")


# Headings of joined sections can still be named as gold.

# 7 words a section; joined where the H2 around both is the same.
JOINED_PAGE = "".join(
    f"{title}\n\none two three four five\n\n"
    for title in ("## Start", "### Notes", "### More", "## Later", "### Notes", "### Else")
)


def chunks() -> list[Chunk]:
    return chunk_headings(Document("a.md", JOINED_PAGE, "A"), Words(), ChunkingSettings(16, 0, 8))


def joined_ids(expected: str) -> set[str]:
    return {name.removeprefix("a.md#chunk_") for name in resolve([entry(f"a.md#{expected}")], chunks())["g001"].ids}


def test_a_joined_heading_is_the_chunk_that_holds_it() -> None:
    assert [chunk.metadata["section_ids"] for chunk in chunks()] == [
        ["start", "notes"],
        ["more"],
        ["later", "notes-1"],
        ["else"],
    ]
    assert joined_ids("notes") == {"0"}
    assert joined_ids("notes-1") == {"2"}


def test_a_heading_stands_for_what_lies_below_it() -> None:
    assert joined_ids("start") == {"0", "1"}
    assert joined_ids("later") == {"2", "3"}
    assert joined_ids("else") == {"3"}


def test_equal_headings_of_which_one_was_joined_are_told_apart() -> None:
    page = "## A\n\none two three four five\n\n### Notes\n\none\n\n"
    page += "## B\n\none two three four five six seven\n\n### Notes\n\none two three four five six seven eight nine"
    cut = chunk_headings(Document("a.md", page, "A"), Words(), ChunkingSettings(16, 0, 8))
    assert [chunk.metadata["section_ids"] for chunk in cut] == [["a", "notes"], ["b"], ["notes-1"]]
    found = resolve([entry("a.md#notes", entry_id="g1"), entry("a.md#notes-1", entry_id="g2")], cut)
    assert found["g1"].ids == {"a.md#chunk_0"}
    assert found["g2"].ids == {"a.md#chunk_2"}
