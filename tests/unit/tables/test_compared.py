"""``rag-harness compare A B``: output folders and baselines, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import scipy.stats

from rag_harness.__main__ import CANNOT_RUN, main
from rag_harness.core.errors import DataError
from rag_harness.records.scores import Author, ScoreLine, row_digest
from rag_harness.tables.comparison_lines import compared_lines
from rag_harness.tables.reader import _MODELS, _OTHER, SavedCase, SavedRun, SavedSuite, read_run, save
from tests.unit.rows import make_row
from tests.unit.suite_tables import write_run

WHO = Author("embedded", "embedded/alignment", "1")


def run(values: dict[str, list[float]], **changes: Any) -> SavedRun:
    """Return a run of e3 with these values by measure."""
    n = len(next(iter(values.values())))
    cases = {
        f"q{place}": SavedCase(
            values={name: found[place] for name, found in values.items()}, slices={"kind": "ab"[place % 2]}
        )
        for place in range(n)
    }
    fingerprint = {"data": {"queries": "1", "documents": "1"}, "models": {}, "settings": {}}
    made: dict[str, Any] = {
        "date": "2026-01-01",
        "fingerprint": fingerprint,
        "suites": {"e3": SavedSuite(cases=cases)},
        "gated": {"e3": list(values)},
    }
    return SavedRun(**(made | changes))


BEFORE, NOW = [0.1, 0.4, 0.5, 0.9, 0.3], [0.3, 0.5, 0.5, 1.0, 0.7]


def test_the_second_minus_the_first_with_both_tests() -> None:
    lines = compared_lines(
        run({"token_f1": BEFORE, "recall@5": [1.0] * 5}), run({"token_f1": NOW, "recall@5": [0.0] * 5})
    )
    (row,) = [line for line in lines if line.startswith("  token_f1")]
    p = scipy.stats.ttest_rel(NOW, BEFORE).pvalue
    assert row.split()[:5] == ["token_f1", "0.440", "0.600", "5", "+0.160"]
    assert f"{p:.3f}" in row
    assert "e3: p and interval by Holm for the 2 tested measures that differ" in lines
    assert "  recall@5: all differences are equal, so no t-test" in lines
    (fell,) = [line for line in lines if line.startswith("  recall@5  ")]
    assert fell.split()[-2:] == ["-", "0.125"], "sign flips need no spread: 2 of 32, times 2 measures"
    assert max(map(len, lines)) <= 100


def test_only_what_is_asked_for_and_what_there_is_instead() -> None:
    one, other = run({"token_f1": BEFORE, "hri": BEFORE}), run({"token_f1": NOW, "hri": NOW})
    lines = compared_lines(one, other, ["hri"])
    assert any(line.startswith("  HRI ↓") for line in lines)
    assert not any("token_f1" in line for line in lines)
    assert "nothing to compare in bleu; both runs have hri, token_f1" in compared_lines(one, other, ["bleu"])
    assert compared_lines(one, run({"recall@5": NOW}), ["hri"]) == ["nothing to compare"]


def test_runs_of_other_data_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = {"data": {"queries": "2", "documents": "1"}, "models": {}, "settings": {}}
    save(tmp_path / "a.json", run({"hri": BEFORE}))
    save(tmp_path / "b.json", run({"hri": NOW}, fingerprint=other))
    assert main(["compare", str(tmp_path / "a.json"), str(tmp_path / "b.json")]) == CANNOT_RUN
    said = capsys.readouterr().err
    assert "not about the same data" in said
    assert "Questions with the same id in both runs: 5 of 5 in e3. Which of them were edited is not kept." in said
    assert "pytest --rag-queries=FILE --rag-output=DIR" in said


def test_how_many_questions_two_runs_share_is_said() -> None:
    first, second = run({"hri": BEFORE}), run({"hri": NOW})
    more = {**second.suites["e3"].cases, "one more": SavedCase(values={"hri": 0.5})}
    del more["q0"]
    other = {"data": {"queries": "2", "documents": "1"}, "models": {}, "settings": {}}
    grown = second.model_copy(update={"fingerprint": other, "suites": {"e3": SavedSuite(cases=more)}})
    with pytest.raises(DataError, match="same id in both runs: 4 of 6 in e3"):
        compared_lines(first, grown)
    moved = second.model_copy(update={"fingerprint": {**other, "data": {"queries": "1", "documents": "2"}}})
    with pytest.raises(DataError) as refused:
        compared_lines(first, moved)
    assert "Questions with" not in str(refused.value), "the documents differ: no question is the same task"


def test_an_output_folder_and_a_baseline_by_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [make_row(query_id=f"q{n}") for n in range(3)]
    scores = [
        ScoreLine("faithfulness", 1, "e3", row.query_id, row_digest(row), "", WHO, 0.2 + 0.3 * n)
        for n, row in enumerate(rows)
    ]
    output, baselines = tmp_path / "out", tmp_path / "kept"
    output.mkdir()
    write_run(output, rows, scores=scores)
    found = _read(output)
    assert found.suites["e3"].values("faithfulness", {}) == {"q0": 0.2, "q1": 0.5, "q2": pytest.approx(0.8)}
    save(baselines / "main.json", found)
    assert main(["compare", "main", str(output), "--baselines", str(baselines), "--measure", "faithfulness"]) == 0
    assert capsys.readouterr().out == "The two runs are the same: both are of 1 Jan 2026 00:00 UTC.\n"


def _read(output: Path) -> SavedRun:
    """Read a run; the tests' manifest has fewer settings than one of a real run, which saving names."""
    file = output / "run.json"
    content = json.loads(file.read_text())
    content["settings"] |= {name: 1 for name in (*_MODELS, *_OTHER) if name not in content["settings"]}
    file.write_text(json.dumps(content))
    return read_run(str(output))


def test_what_is_no_run_says_where_was_looked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "gone", "gone"]) == CANNOT_RUN
    assert "'gone' is no run" in capsys.readouterr().err
    assert main(["compare", str(tmp_path), str(tmp_path)]) == CANNOT_RUN
    assert "does not describe a run" in capsys.readouterr().err


def test_two_runs_of_one_second_that_differ_in_their_judge_are_two() -> None:
    one, other = ({"judges": {"e3": [("embedded", "embedded/alignment", revision)]}} for revision in "12")
    before, now = run({"faithfulness": BEFORE}, **one), run({"faithfulness": BEFORE}, **other)
    assert compared_lines(before, before)[0].startswith("The two runs are the same")
    assert not compared_lines(before, now)[0].startswith("The two runs are the same")
