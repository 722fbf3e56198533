"""Which judged scores count is the same whether lines are read one by one, at once, or taken from kept blocks."""

from __future__ import annotations

import random
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_harness.evaluation.measures import Measure, Score, measure_named
from rag_harness.evaluation.measures.measure import CompositeMeasure
from rag_harness.records.cases import CaseFile
from rag_harness.records.manifest import read_manifest, write_manifest
from rag_harness.records.scores import CHECKED, SCORES, Author, ScoreLine, row_digest
from rag_harness.tables import column_cache, reader
from rag_harness.tables.column_cache import CacheWriter, score_kind, segments
from rag_harness.tables.suite_table import SuiteTable
from tests.unit.rows import failed_row, make_row
from tests.unit.suite_tables import case, case_of, write_run
from tests.unit.tables.blocks.large_run import all_of
from tests.unit.tables.blocks.line_by_line import LineByLine, PlainColumn

PIECE = 600
"""Two or three lines."""
OURS = [Author("fused", "gpt-4o", "1"), Author("embedded", "embedded/alignment", "1")]
CHECKS = Author("metamorphic", "", "1")
AUTHORS = [*OURS, Author("fused", "gpt-4o", "2"), Author("fused", "other", "1"), CHECKS]
ROWS = [
    make_row(query_id="q4", abstained=True, answerable=False),
    make_row(query_id="q0"),
    make_row(query_id="q2", abstained=True),
    make_row(query_id="q1", llm_answer="lamps"),
    make_row(query_id="q1", llm_answer="a row that came later"),
    failed_row(query_id="q3"),
    make_row(query_id="q5", fingerprint="bbbb"),
    make_row(query_id="q6", ground_truth="", context_reference=[], answerable=False),
    make_row(query_id="q7"),
]
JUDGED = ["context_precision", "faithfulness", "answer_relevancy", "factuality"]
CHECKED_ON = ["metamorphic_typos", "injection_resisted"]
MEASURES = [*JUDGED, "token_f1", "g_mean", "hri", "hri_gold", *CHECKED_ON]


class Forgiving(CompositeMeasure):
    """Has a value where a part has none, so it is no formula over values."""

    called = "forgiving"
    parts = ("faithfulness", "factuality", "token_f1")

    def score(self, parts: Mapping[str, Score]) -> Score:
        if parts["faithfulness"].value is None:
            return Score(None, "", undefined=parts["faithfulness"].undefined)
        return Score(self.combine({name: part.value or 0.0 for name, part in parts.items()}))

    def combine(self, values: Mapping[str, float]) -> float:
        return values["faithfulness"] + 2 * values["factuality"] + 4 * values["token_f1"]


class OfNobody(CompositeMeasure):
    """A part of it was not asked for."""

    called = "of_nobody"
    parts = ("faithfulness", "self_knowledge")

    def combine(self, values: Mapping[str, float]) -> float:
        return values["faithfulness"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a run whose scores are written anew by each example."""
    output = tmp_path_factory.mktemp("run")
    cases = [case_of(row) for _, row in sorted({row.query_id: row for row in ROWS}.items())]
    lines = [line for author in OURS for line in [ScoreLine("faithfulness", 1, "e3", "q0", "", "", author, 1.0)]]
    write_run(output, ROWS, [*cases, case("q8")], scores=lines)
    manifest = read_manifest(output)
    authors = [(who.judge, who.model, who.revision) for who in OURS]
    suites = {"e3": manifest.suites["e3"].model_copy(update={"fingerprints": ["aaaa"], "authors": authors})}
    write_manifest(output, manifest.model_copy(update={"suites": suites}))
    return output


OF_ROW = {row.query_id: row_digest(row) for row in reversed(ROWS)}
"""The digest of the first row of each case."""
OTHER_ROWS = [row_digest(ROWS[4]), row_digest(ROWS[0]), row_digest(ROWS[0]).upper(), "of an older row"]
NO_SCORES = [b"\n", b"  \n", b"{}\n", b'{"measure":\n', b"null\n", b"[1]\n"]
ENDS = [b"", b'{"measure":"faithfulness"', b"\xff"]


def _is_rare(source: random.Random) -> bool:
    return source.random() < 0.1


def score(source: random.Random, authors: Sequence[Author]) -> ScoreLine:
    """Return a score that counts, more often than not."""
    query_id = source.choice([*OF_ROW, "q8", "nobody"])
    measure = source.choice([*JUDGED, *JUDGED, *CHECKED_ON, "token_f1", "unknown"])
    least = -1 if measure == "answer_relevancy" else 0
    value = source.choice([None, 0.0, 0.3, 0.5, 0.9, 1.0, source.uniform(least, 1)])
    return ScoreLine(
        measure,
        2 if _is_rare(source) else 1,
        "e3",
        query_id,
        source.choice(OTHER_ROWS) if _is_rare(source) else OF_ROW.get(query_id, OTHER_ROWS[0]),
        "",
        source.choice(AUTHORS if _is_rare(source) else authors),
        value,
        source.choice(["", "away", "no context", "half a JSON"]) if value is None else "",
        undefined=value is None and source.random() < 0.5,
        repeat=source.choice([0, 0, 0, 1, 2]),
    )


def lines(source: random.Random, authors: Sequence[Author]) -> bytes:
    """Return a file of some scores, with lines that are none, and often torn at its end."""
    count = source.choice([0, 3, 60, 150, 300])
    each = [source.choice(NO_SCORES) if _is_rare(source) else score(source, authors).line() for _ in range(count)]
    return b"".join(each) + source.choice(ENDS)


def everything(table: SuiteTable) -> dict[str, Any]:
    again = {measure: list(cases.items()) for measure, cases in table.said_again.items()}
    return all_of(table) | {"again": again, "absent": {name: list(table.absent(name, {}).items()) for name in MEASURES}}


def table_in(output: Path) -> SuiteTable:
    measures: list[Measure] = [Forgiving(None), *map(measure_named, MEASURES), OfNobody(None)]
    return reader.read_tables(output, lambda _: measures)["e3"]


def plain_table(output: Path) -> SuiteTable:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "Growing", PlainColumn)
        patch.setattr(reader, "JudgedColumns", LineByLine)
        patch.setattr(reader, "read_score_blocks", lambda file, _cases, _size: file)
        return table_in(output)


def made_again(patch: pytest.MonkeyPatch) -> list[int]:
    """Count the blocks that are made of lines."""
    counted: list[int] = []
    made_of = column_cache.block_of
    patch.setattr(column_cache, "block_of", lambda *args: counted.append(1) or made_of(*args))  # type: ignore[func-returns-value]
    return counted


def write(output: Path, judged: bytes, checked: bytes) -> None:
    for folder, content in ((SCORES, judged), (CHECKED, checked)):
        shutil.rmtree(output / folder, ignore_errors=True)
        (output / folder).mkdir()
        (output / folder / "e3.jsonl").write_bytes(content)


@settings(max_examples=20, derandomize=True)
@given(seed=st.integers(0, 1 << 32))
def test_the_scores_that_count_are_those_of_the_lines_one_by_one(run: Path, seed: int) -> None:
    source = random.Random(seed)
    write(run, lines(source, OURS), lines(source, [CHECKS]))
    expected = everything(plain_table(run))
    assert everything(table_in(run)) == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "SEGMENT", PIECE)
        assert everything(table_in(run)) == expected
        counted = made_again(patch)
        assert everything(table_in(run)) == expected
        pieces = [len(segments(run / folder / "e3.jsonl", PIECE)) for folder in (SCORES, CHECKED)]
        assert len(counted) == pieces.count(1)  # of which nothing is kept


def many() -> list[ScoreLine]:
    """Return scores of every row, several a measure."""
    said = [(name, author, number) for number, author in enumerate(OURS) for name in JUDGED]
    return [
        ScoreLine(name, 1, "e3", row.query_id, row_digest(row), "", author, number / 2, repeat=number % 2)
        for row in ROWS
        for name, author, number in said
    ]


def keep(run: Path, lines: list[ScoreLine], before: int, spoilt_at: int = -1) -> None:
    """Write scores that are looked at as they come, but for those ``before``."""
    write(run, b"".join(line.line() for line in lines[:before]), b"")
    file, cases = run / SCORES / "e3.jsonl", CaseFile(run, "queries")
    keeper = CacheWriter(file, score_kind(cases.position, lambda: cases.digest), PIECE)
    for number, score in enumerate(lines[before:]):
        with file.open("ab") as stream:
            stream.write(b"{}\n" * (number == spoilt_at) + score.line())
        keeper.add(score, score.line())
    keeper.seal()
    cases.close()


@pytest.mark.parametrize(("before", "again"), [(0, 0), (1, 0), (9, 2)])
def test_after_the_last_score_nothing_is_read_again(
    run: Path, monkeypatch: pytest.MonkeyPatch, before: int, again: int
) -> None:
    keep(run, many(), before)
    expected = everything(plain_table(run))
    monkeypatch.setattr(reader, "SEGMENT", PIECE)
    table_in(run)  # the rows are kept by now
    keep(run, many(), before)
    counted = made_again(monkeypatch)
    assert everything(table_in(run)) == expected
    # What stood in the file before is made by its first reader, but for the piece that scores were added to.
    assert len(counted) == again


def test_a_file_of_scores_that_others_write_to_gets_no_wrong_block(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(run, many(), 0, spoilt_at=20)
    expected = everything(plain_table(run))
    monkeypatch.setattr(reader, "SEGMENT", PIECE)
    assert everything(table_in(run)) == expected


def test_a_changed_score_makes_its_block_anew_and_no_other(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "SEGMENT", PIECE)
    keep(run, many(), 0)
    before = everything(table_in(run))
    file = run / SCORES / "e3.jsonl"
    content = file.read_bytes()
    place = content.index(b'"value":0.0', 3 * PIECE)
    file.write_bytes(content[:place] + b'"value":0.9' + content[place + 11 :])
    counted = made_again(monkeypatch)
    after = everything(table_in(run))
    assert len(counted) == 1
    assert after != before
    assert after == everything(plain_table(run))
