"""The page's tables of conversations that got worse: which they are, and where each leads."""

from __future__ import annotations

from pathlib import Path

from rag_harness.page.content import More, Section
from rag_harness.page.sections.comparison import SHOWN_TALKS, diff
from tests.browser.talks import LAMP, Questions, Talks
from tests.unit.page.runs import read, table_in

MANY: Questions = {f"talk{n:02}": ["How?", "And?"] for n in range(SHOWN_TALKS + 2)}


def changed(folder: Path, now: Talks, before: Talks) -> Section:
    section = diff(read(now.write(folder / "now"), before.write(folder / "before")))
    assert section is not None
    return section


def titles(section: Section) -> list[str]:
    return [block.title for block in section.blocks if isinstance(block, More) and "got worse" in block.title]


def test_each_leads_to_its_first_turn_that_got_worse_in_both_runs(tmp_path: Path) -> None:
    section = changed(tmp_path, Talks(worse=[f"{LAMP}#3", f"{LAMP}#4"]), Talks())
    assert titles(section)[1] == "c1-own: conversations that got worse in correct"
    ((name, turn, by),) = table_in(section, "worse-talks-1-c1-own").rows
    assert (name.text, turn.text) == (LAMP, "turn 3")
    assert (turn.trial, turn.beside) == ("now/c1-own-lamp#3", "before/c1-own-lamp#3")
    assert (by.text, by.tone) == ("-0.500", "bad"), "two of four turns, from 1 to 0"


def test_none_got_worse_and_none_is_listed(tmp_path: Path) -> None:
    assert titles(changed(tmp_path, Talks(), Talks(worse=[f"{LAMP}#3"]))) == []


def test_of_many_the_first_are_listed_and_the_rest_is_counted(tmp_path: Path) -> None:
    worse = [f"{name}#2" for name in MANY]
    section = changed(tmp_path, Talks(("c1",), MANY, worse), Talks(("c1",), MANY))
    table = table_in(section, "worse-talks-1-c1")
    assert len(table.rows) == SHOWN_TALKS
    assert table.notes[-1] == "and 2 more"
