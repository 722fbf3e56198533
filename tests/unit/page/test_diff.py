"""Changes between runs: what differs, what moved, and what is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from rag_harness.__main__ import main
from rag_harness.page.content import More, Prose, Section
from rag_harness.page.sections.comparison import ComparedExperiment, diff, moved
from tests.unit.page.runs import amend, cell_in, prose_in, read, rows_of, table_in
from tests.unit.tables import write_run


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """A run that finds 15 of 20 pages, and an older one that finds 5."""
    for name, found in (("new", 15), ("old", 5)):
        write_run(tmp_path / name, rows_of("e3", 20, found))
        amend(tmp_path / name, digests={"queries": "same", "documents": "same"})
    return tmp_path / "new", tmp_path / "old"


def of(*outputs: Path) -> Section:
    section = diff(read(*outputs))
    assert section is not None
    return section


def test_one_run_has_no_changes(two: tuple[Path, Path]) -> None:
    assert diff(read(two[0])) is None


def test_measures_before_and_now_with_the_test(two: tuple[Path, Path]) -> None:
    table = table_in(of(*two), "diff-1-e3")
    new, old = (run.tables["e3"].values("recall@5", {}) for run in read(*two))
    row = {name: cell_in(table, "recall@5 ↑", name) for name in table.head[1:]}
    assert (row["before"].text, row["now"].text) == (
        f"{np.mean([*old.values()]):.3f}",
        f"{np.mean([*new.values()]):.3f}",
    )
    assert (row["n"].text, row["difference"].text, row["difference"].tone) == ("20", "+0.500", "good")
    assert row["interval"].text.startswith("[+0.")
    assert float(row["p (Holm)"].text) <= 0.05  # 10 signs all alike: 2 / 2**10, times the measures
    assert (row["gained"].text, row["lost"].text) == ("10", "0")
    assert not any(cells[0].text.startswith("token_f1") for cells in table.rows), "it is the same in every case"
    assert (
        "5 measures are the same in both: error_rate, correct, token_f1, abstention_rate, false_abstention_rate."
        in prose_in(of(*two))
    )


def test_the_command_takes_before_first_and_now_last(
    two: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now, before = two
    assert main(["report", str(before), str(now), "-o", str(tmp_path / "r.md")]) == 0
    assert "Now is better than before: recall@5 of e3 rose from 0.250 to 0.750" in (tmp_path / "r.md").read_text()
    assert capsys.readouterr().out.splitlines()[1] == f"before: {before}; now: {now}"
    assert main(["report", str(now), "-o", str(tmp_path / "r.md")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_the_same_run_twice_has_one_sentence(two: tuple[Path, Path], tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(two[0], copy)
    section = of(two[0], copy)
    assert prose_in(section)[0] == "The two runs are the same: both are of 1 Jan 2026 00:00 UTC."
    assert not [block for block in section.blocks if not isinstance(block, Prose)]


def test_what_did_not_change_is_folded(tmp_path: Path) -> None:
    for name in ("new", "old"):
        write_run(tmp_path / name, [*rows_of("e2", 20, 9 if name == "new" else 8), *rows_of("e3", 20, 5)])
        amend(tmp_path / name, digests={"queries": "same"}, commit=name)
    section = of(tmp_path / "new", tmp_path / "old")
    titles = [block.title for block in section.blocks if isinstance(block, More)]
    assert titles[1:] == ["e2: no sure change; 12 of 17 measures differ"]
    assert prose_in(section)[-1] == "The same in every case of both runs: e3."


def test_worse_is_bad(two: tuple[Path, Path]) -> None:
    table = table_in(of(*reversed(two)), "diff-1-e3")
    assert cell_in(table, "recall@5 ↑", "difference").tone == "bad"
    assert cell_in(table, "recall@5 ↑", "lost").text == "10"


def test_queries_that_were_gained_link_both_trials(two: tuple[Path, Path]) -> None:
    table = table_in(of(*two), "moved-1-e3-recall@5-up")
    assert list(table.head) == ["query", "old", "new", "question"]
    assert [row[0].text for row in table.rows] == [f"q{place:02}" for place in range(5, 15)]
    assert [cell.trial for cell in table.rows[0]] == ["new/e3-q05", "old/e3-q05", "new/e3-q05", ""]
    assert [cell.text for cell in table.rows[0]] == ["q05", "0.000", "1.000", "Question 5?"]


def test_what_the_runs_differ_in(two: tuple[Path, Path]) -> None:
    amend(two[0], commit="c0ffee", packages={"numpy": "2"}, settings={"top_k": 9})
    rows = [[cell.text for cell in row] for row in table_in(of(*two), "differing-1").rows]
    assert ["settings.top_k", "nothing → 9"] in rows
    assert ["packages.numpy", "nothing → 2"] in rows
    assert any(name == "commit" and said.endswith("→ c0ffee") for name, said in rows)


def test_where_nothing_differs_that_is_said(two: tuple[Path, Path]) -> None:
    assert (
        "Different between them: nothing that is known; models, settings, packages and commit are the same."
        in prose_in(of(*two))
    )


def test_other_data_are_refused_and_the_others_still_compared(two: tuple[Path, Path], tmp_path: Path) -> None:
    third = tmp_path / "third"
    write_run(third, rows_of("e3", 20, 20))
    amend(third, digests={"queries": "other", "documents": "same"})
    section = of(two[0], third, two[1])
    (refused,) = [block for block in section.blocks if isinstance(block, Prose) and block.tone == "bad"]
    assert "new is not set against third. This run and the one of" in refused.text
    assert "data.queries: other -> same" in refused.text
    assert table_in(section, "diff-2-e3").rows
    with pytest.raises(ValueError, match="not enough values"):
        table_in(section, "diff-1-e3")


def test_what_is_not_known_of_the_documents_is_said(two: tuple[Path, Path]) -> None:
    unknown = "Nobody can tell whether the documents are the same"
    assert not any(unknown in text for text in prose_in(of(*two)))
    amend(two[1], digests={"queries": "same"})
    assert any(unknown in text for text in prose_in(of(*two)))


def test_runs_with_nothing_in_common(two: tuple[Path, Path], tmp_path: Path) -> None:
    write_run(tmp_path / "e1", rows_of("e1", 20, 0))
    amend(tmp_path / "e1", digests={"queries": "same"})
    said = prose_in(of(two[0], tmp_path / "e1"))
    assert said[0] == "Nothing can be compared: no case has a value of the same measure in both runs."


def test_damage_of_a_setting_that_a_run_lacks_is_a_difference(two: tuple[Path, Path]) -> None:
    # Runs of an older version lack settings that came later: they can still be compared.
    amend(two[0], settings={"chat_model": "m"})
    assert any(row[0].text == "models.chat_model" for row in table_in(of(*two), "differing-1").rows)


def test_more_abstentions_are_neither_better_nor_worse(tmp_path: Path) -> None:
    write_run(tmp_path / "new", rows_of("e3", 20, 5, abstained=True))
    write_run(tmp_path / "old", rows_of("e3", 20, 5))
    for name in ("new", "old"):
        amend(tmp_path / name, digests={"queries": "same", "documents": "same"})
    table = table_in(of(tmp_path / "new", tmp_path / "old"), "diff-1-e3")
    assert cell_in(table, "abstention_rate", "p (Holm)").text == "not tested"
    assert cell_in(table, "correct ↑", "p (Holm)").text == "<0.001"
    assert cell_in(table, "abstention_rate", "difference").tone == ""
    assert {cell_in(table, "abstention_rate", name).text for name in ("gained", "lost")} == {"–"}
    assert cell_in(table, "correct ↑", "difference").tone == "bad"
    now, before = (ComparedExperiment(run, "e3", run.name) for run in read(tmp_path / "new", tmp_path / "old"))
    queries = moved("any", now, before, "abstention_rate")
    assert {row[2].tone for row in queries[0].rows} == {""}
