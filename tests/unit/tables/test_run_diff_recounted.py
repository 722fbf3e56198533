"""Every figure in the sentences about two runs, against a second program that reads the JSONL of both alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

pytest.importorskip("scipy", reason="the second program needs scipy")


from rag_harness.evaluation.measures import default_measures
from rag_harness.page.comment import comment_of
from rag_harness.page.sections.comparison import diff
from rag_harness.tables.comparison import compare
from rag_harness.tables.comparison_lines import comparison_lines
from rag_harness.tables.reader import read_run
from rag_harness.tables.run_diff import run_diff, sentences
from tests.browser.runs import JUDGED, Study
from tests.unit.page.recount import chance
from tests.unit.page.recount.compared_tables import NEITHER, between, interval_problem
from tests.unit.page.recount.fits import Ends, problem
from tests.unit.page.recount.formulas import LOWER
from tests.unit.page.recount.rows import RunFiles, read_files
from tests.unit.page.runs import amend, prose_in, read, rows_of
from tests.unit.suite_tables import write_run

CHANGE = re.compile(
    r"(?P<measure>[\w@]+) of (?P<suite>\w+) (?P<way>rose|fell) from (?P<before>[\d.]+) to (?P<now>[\d.]+) "
    r"\((?P<by>[-+][\d.]+), (?P<level>[\d.]+) % interval (?P<low>[-+][\d.]+) to (?P<high>[-+][\d.]+), "
    r"p (?P<p><?[\d.]+)\) over the same (?P<n>\d+) cases"
)
SPENT = ("total_ms", "tokens")
TESTED = ("recall@5", "correct")
"""What is tested where no gate is set."""
COMPOSITES = ("g_mean", "hri", "hri_gold")


class Recount:
    """Two runs of one experiment, by their files."""

    def __init__(self, before: RunFiles, now: RunFiles) -> None:
        names = [measure.name for measure in default_measures(False, 10)] + [*JUDGED, *COMPOSITES]
        self.pairs = {
            (suite, name): pair
            for suite in sorted(set(before.suites) & set(now.suites))
            for name in names
            if (pair := between(now.suites[suite], before.suites[suite], name)).first
        }

    @cached_property
    def same(self) -> list[tuple[str, str]]:
        """What has the same value in every case."""
        return [key for key, pair in self.pairs.items() if max(map(abs, pair.differences)) <= 1e-12]

    @cached_property
    def p(self) -> dict[tuple[str, str], Ends]:
        """The ends of the p of each tested measure that differs, adjusted over those of its suite."""
        found: dict[tuple[str, str], Ends] = {}
        for keys, *raw in self._families():
            lows, highs = map(chance.holm, raw)
            found |= dict(zip(keys, zip(lows, highs, strict=True), strict=True))
        return found

    @cached_property
    def among(self) -> dict[tuple[str, str], range]:
        """Among how many measures each that differs may be judged."""
        return {
            key: count for keys, *raw in self._families() for key, count in zip(keys, chance.among(*raw), strict=True)
        }

    def _families(self) -> Iterator[tuple[list[tuple[str, str]], list[float], list[float]]]:
        """Yield the tested measures of each suite that differ, with the lower and the upper ends of p."""
        for suite in {key[0] for key in self.pairs}:
            differing = [key for key in self.pairs if key[0] == suite and key not in self.same]
            keys = [key for key in differing if key[1] in TESTED]
            raw = [chance.permutation(self.pairs[key].differences) for key in keys]
            yield keys, [ends[0] for ends in raw], [ends[1] for ends in raw]

    @cached_property
    def sure(self) -> list[tuple[str, str]]:
        """What chance hardly explains."""
        return [key for key, ends in self.p.items() if ends[1] <= 0.05 and self._is_apart(key)]

    def _is_apart(self, key: tuple[str, str]) -> bool:
        low, high = self.ends(key)
        return low > 0 or high < 0

    def ends(self, key: tuple[str, str]) -> tuple[float, float]:
        """Return the outermost ends that the interval of a measure may have."""
        low, high = self.pairs[key].interval(key[1], self.among[key][-1]) or (-1.0, 1.0)
        return chance.pair(low)[0], chance.pair(high)[1]

    def direction(self, key: tuple[str, str]) -> str:
        """Return what a change means."""
        if key[1] in NEITHER:
            return "neither"
        return "better" if (fmean(self.pairs[key].differences) > 0) != (key[1] in LOWER) else "worse"


def problems(texts: Sequence[str], recount: Recount) -> Iterator[str]:
    """Yield what is wrong with the figures of each change in the sentences."""
    for found in CHANGE.finditer(" ".join(texts)):
        said: dict[str, Any] = found.groupdict()
        key = said["suite"], said["measure"]
        pair = recount.pairs[key]
        difference = fmean(pair.differences)
        yield problem(f"{said['before']} {said['now']}", "{} {}", fmean(pair.second), fmean(pair.first))
        yield problem(said["by"], "{}", difference)
        count = round(5 / (100 - float(said["level"])))
        yield "" if count in recount.among[key] else f"{key} as one of {count} and not of {recount.among[key]}"
        yield interval_problem("{} {}", f"{said['low']} {said['high']}", pair, key[1], range(count, count + 1))
        yield problem(said["n"], "{}", len(pair.first))
        yield "" if (said["way"] == "rose") == (difference > 0) else f"{key} did not {said['way']}"
        if said["p"] == "<0.001":
            yield "" if recount.p[key][0] < 0.001 else f"p of {key} is {recount.p[key]}"
        else:
            yield problem(said["p"], "{}", recount.p[key])


def verdict(recount: Recount) -> str:
    """Return how the first sentence has to begin, by the second program."""
    ways = {recount.direction(key) for key in recount.sure if key[1] not in SPENT}
    if {"worse", "better"} <= ways:
        return "Now is worse than before in one way and better in another: "
    for way in ("worse", "better"):
        if way in ways:
            return f"Now is {way} than before: "
    if ways:
        return "Now differs from before"
    found = [max(map(abs, recount.ends(key))) for key in recount.p if key[1] not in SPENT]
    return "Undecided: no change is shown, but " if max(found) >= 0.1 else "No change is shown: "


def study(folder: Path, cases: int, seed: int, experiments: Sequence[str] = ("e2", "e3")) -> Path:
    return Study(experiments, cases, seed).write(folder)


def found_by(folder: Path, found: int, **changes: Any) -> Path:
    write_run(folder, rows_of("e3", 30, found, **changes))
    amend(folder, digests={"queries": "same"}, commit=folder.name)
    return folder


def folders(kind: str, tmp_path: Path) -> tuple[Path, Path]:
    """Return the folder of a run before and of one now."""
    before, now = tmp_path / "before", tmp_path / "now"
    if kind == "noise":
        two = study(before, 40, 7), study(now, 40, 8)
    elif kind == "declining":
        two = found_by(before, 15), found_by(now, 15, abstained=True)
    else:
        two = found_by(before, 25 if kind == "worse" else 5), found_by(now, 5 if kind == "worse" else 25)
    for folder in two:
        amend(folder, settings=dict.fromkeys(("top_k", "chat_model"), 1))
    return two


@pytest.fixture(scope="module", params=["worse", "better", "noise", "declining"])
def two(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return folders(request.param, tmp_path_factory.mktemp(request.param))


def said_in(section_of: Sequence[Path]) -> list[str]:
    before, now = section_of
    return prose_in(diff(read(now, before)))


def test_each_sentence_is_recounted(two: tuple[Path, Path]) -> None:
    before, now = map(read_files, two)
    recount = Recount(before, now)
    texts = said_in(two)
    assert [*filter(None, problems(texts, recount))] == []
    assert texts[0].startswith(verdict(recount)), (texts[0], recount.sure)
    everything = " ".join(texts)
    count = re.search(r"(\d+) measures? (?:is|are) the same in every case", everything)
    assert not count or int(count[1]) == len(recount.same)
    unsure = re.search(r"No other change is sure: (\d+) measures? differs?", everything)
    assert not unsure or int(unsure[1]) == len(recount.p) - len(recount.sure)
    wide = re.search(r"too few to rule out a change of 0.1 or more in (\d+) measures", everything)
    assert not wide or int(wide[1]) == sum(
        max(map(abs, recount.ends(key))) >= 0.1 for key in recount.p if key[1] not in SPENT
    )
    assert CHANGE.search(everything) or "Ruled out" in everything


def test_the_recount_notices_a_wrong_figure(tmp_path: Path) -> None:
    two = folders("worse", tmp_path)
    before, now = map(read_files, two)
    text, recount = said_in(two)[0], Recount(before, now)
    found = CHANGE.search(text)
    assert found, text
    for group in ("before", "now", "by", "low", "n"):
        end = found.end(group)
        digit = text[end - 1]
        broken = text[: end - 1] + ("7" if digit != "7" else "2") + text[end:]
        assert any(problems([broken], recount)), group
    assert any(problems([text.replace("fell", "rose")], recount))


def test_terminal_page_and_markdown_say_the_same(two: tuple[Path, Path]) -> None:
    before, now = two
    found = compare(read_run(str(now)), read_run(str(before)))
    texts = [sentence.text for sentence in sentences(run_diff(found))]
    assert prose_in(diff(read(now, before)))[: len(texts)] == texts
    for width in (80, 120):
        printed = " ".join(" ".join(comparison_lines(found, width)).split())
        assert all(" ".join(sentence.split()) in printed for sentence in texts)
    comment = comment_of(read(now, before)).replace("\\", "").replace("\N{WORD JOINER}", "")
    assert texts[0] in comment
