"""The script that counts contradictions found and missed: what it blanks, what it compares, what it prints."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.text.contradictions import contradictions
from rag_harness.core.types import Chunk

# Benchmarks are scripts and no package: a type checker would meet the file under two names.
script: Any = import_module("benchmarks.contradictions")
HELD_OUT = "unseen_held_out_pairs"


def lines(name: str) -> list[str]:
    return (script.PAIRS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def cut() -> dict[str, list[Chunk]]:
    return script.sections()  # type: ignore[no-any-return]


def test_what_tells_versions_apart_is_blanked_in_place() -> None:
    page = "# Fees 2024\n\nEffective 1 May 2024. A swim costs €4.\n\n## Previous version\n\nSee [old](old.md)."
    page += "\n\n## More\n\nEnd."
    hidden = script.blanked(page)
    assert len(hidden) == len(page)
    assert hidden.split() == ["A", "swim", "costs", "€4.", "##", "More", "End."]
    assert hidden.index("A swim") == page.index("A swim")


def test_no_section_of_the_version_pairs_names_its_year_or_the_other(cut: dict[str, list[Chunk]]) -> None:
    shown = " ".join(chunk.text for fact in script.facts() for chunk in cut[fact.outdated])
    assert "Effective" not in shown
    assert "newer version" not in shown


def test_each_version_pair_is_noticed_by_a_planned_fact(cut: dict[str, list[Chunk]]) -> None:
    noticed = {
        fact.outdated
        for fact in script.facts()
        for found in contradictions(
            [
                script.stating(cut[fact.outdated], fact.statements[0]).text,
                script.stating(cut[fact.current], fact.statements[1]).text,
            ]
        )
        if script.carries(found, fact)
    }
    assert len(noticed) == len({fact.outdated for fact in script.facts()}) == 5


def test_other_pairs_are_of_two_pages_that_are_no_versions_of_each_other(cut: dict[str, list[Chunk]]) -> None:
    few = {name: cut[name][:1] for name in ("returns-policy", "returns-policy-2024", "carriers")}
    pairs = {outdated: list(script.other_pairs(few, script.facts(), outdated)) for outdated in (False, True)}
    names = {outdated: [(one.doc_id, other.doc_id) for one, other in found] for outdated, found in pairs.items()}
    assert names == {False: [("carriers", "returns-policy")], True: [("carriers", "returns-policy-2024")]}


def test_the_most_similar_pairs_come_first() -> None:
    chunks = [Chunk(str(n), str(n), text) for n, text in enumerate(("red swim fee", "blue swim fee", "green card key"))]
    pairs = [(chunks[0], chunks[2]), (chunks[0], chunks[1]), (chunks[1], chunks[2])]
    assert script.similar(pairs, 1) == [(chunks[0], chunks[1])]


def test_a_report_counts_what_is_raised(capsys: pytest.CaptureFixture[str]) -> None:
    one, other = Chunk("a", "a", "A lost card costs €5."), Chunk("b", "b", "A lost card costs €8.")
    lines: list[str] = []
    script.report_others("raised", [(one, other), (one, one)], lines.append)
    assert capsys.readouterr().out.startswith("raised: 1 of 2 pairs (50.0%), ")
    assert len(lines) == 1


def test_a_report_of_passages_names_misses_and_false_alarms_with_intervals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The interval of 1 of 2 by hand: p at which 1 or more of 2 have 2.5 %, 1 - √0.975 = 1.3 %, and 1 less that."""
    lost, dearer, cheap = "A lost card costs €5.", "A lost card costs €8.", "Soup is cheap."
    pairs = [(True, lost, dearer), (True, lost, cheap), (False, lost, dearer), (False, lost, lost)]
    rows = [
        {"id": f"p{n}", "conflicts": conflicts, "kind": "number", "first": first, "second": second}
        for n, (conflicts, first, second) in enumerate(pairs)
    ]
    file = tmp_path / "few.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    shown: list[str] = []
    script.report_passages(file, shown.append)
    assert capsys.readouterr().out.splitlines() == [
        "few: found 1 of 2 (50.0%, 1.3% to 98.7%; number 1/2)",
        "few: false alarms 1 of 2 (50.0%, 1.3% to 98.7%; number 1/2)",
    ]
    assert [line.split(":")[0].strip() for line in shown] == ["p1", "p2"]


def test_pairs_that_are_held_out_are_counted_and_never_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("report_versions", "report_others", "report_answers"):
        monkeypatch.setattr(script, name, lambda *_: None)
    monkeypatch.setattr(script, "sections", dict)
    monkeypatch.setattr("sys.argv", ["contradictions.py", "--show", "--pairs", "0"])
    script.main()
    printed = capsys.readouterr().out
    ids = [json.loads(line)["id"] for line in lines(HELD_OUT)]
    assert "  unseen_" in printed
    assert not any(f"{name}:" in printed for name in ids)
    assert f"{HELD_OUT}: found 1 of 27 (3.7%, 0.1% to 19.0%; " in printed
    assert f"{HELD_OUT}: false alarms 0 of 53 (0.0%, 0.0% to 6.7%; " in printed


def test_the_two_parts_of_the_pairs_by_a_second_hand_share_none() -> None:
    parts = [
        {(row["first"], row["second"]) for row in map(json.loads, lines(name))}
        for name in ("unseen_development_pairs", HELD_OUT)
    ]
    assert [len(part) for part in parts] == [40, 80]
    assert not parts[0] & parts[1]


def test_the_pairs_written_before_the_detector_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    script.report_passages(script.PAIRS / "conflict_pairs.jsonl", lambda line: None)
    printed = capsys.readouterr().out
    assert "found 16 of 20 " in printed
    assert "false alarms 1 of 40 " in printed
