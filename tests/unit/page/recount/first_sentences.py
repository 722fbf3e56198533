"""The sentences of the first screen: who is best, how sure, and why answers are wrong, each from the files."""

from __future__ import annotations

import html as markup
import re
from collections import Counter
from collections.abc import Iterator
from statistics import fmean

import scipy.stats

from tests.unit.page.recount import chance
from tests.unit.page.recount.compared_tables import interval_problem, pair_of
from tests.unit.page.recount.fits import problem
from tests.unit.page.recount.formulas import is_measured, values_of
from tests.unit.page.recount.rows import RunFiles

_TOPIC = re.compile(r'data-topic="(\w+)"><dt>.*?</dt>\s*<dd>(.*?)</dd>', re.DOTALL)
_BEST = re.compile(
    r"(\S+?)(?:(?:,| and) [^().]*?)? (?:finds?|answers?) [^().]*\((\S+) ([\d.]+)(?:, ([\d.]+) \w+ (\S+))?\)"
)
_SURE = re.compile(r"(\S+) - (\S+) in (\S+): (\S+)(?: \[(\S+), (\S+)\])?, ([\d.,]+) questions(?:, p (<?[\d.]+\d))?")
_TESTS = re.compile(r"corrected for (\d+) tests")
_SHORT = re.compile(
    r"(\S+): ([\d,]+) of ([\d,]+) answers are wrong(?:, ([\d,]+) wrongly declined)?; "
    r"([\d,]+) of (?:them|these [\d,]+) \((\S+) %\): ([\w ]+?)(?:, ([^.]+))?\."
)


def topics_in(page: str) -> dict[str, str]:
    """Return what a page says of each topic."""
    return {topic: markup.unescape(re.sub("<[^>]+>", " ", said)).strip() for topic, said in _TOPIC.findall(page)}


def problems(files: RunFiles, page: str) -> list[str]:
    """Return what is wrong with the sentences of a page, a line each."""
    said = topics_in(page)
    found = [*_best(files, said["best"]), *_sure(files, said["sure"]), *_why(files, said["why"])]
    return [each for each in found if each]


def _best(files: RunFiles, text: str) -> Iterator[str]:
    found = _BEST.findall(text)
    yield "" if found else f"no figure in {text!r}"
    for name, measure, mean, gap, second in found:
        sides = files.suites.values() if name == "All" else [files.suites[name]]
        values = next(filter(None, (values_of(side, measure) for side in sides if is_measured(side, measure))), {})
        yield problem(mean, "{}", fmean(values.values()))
        if gap:
            yield problem(gap, "{}", abs(fmean(pair_of(files, name, second, measure).differences)))


def _sure(files: RunFiles, text: str) -> Iterator[str]:
    found = _SURE.findall(text)
    yield "" if found else f"no figure in {text!r}"
    tests = int(of[1]) if (of := _TESTS.search(text)) else 1
    for first, second, measure, difference, low, high, n, p in found:
        pair = pair_of(files, first, second, measure)
        yield problem(difference, "{}", fmean(pair.differences))
        yield problem(n, "{}", len(pair.first))
        yield interval_problem("{} {}", f"{low} {high}", pair, measure, range(1, tests + 1)) if low else ""
        if p:
            raw = [float(scipy.stats.ttest_rel(pair.first, pair.second).pvalue), *chance.permutation(pair.differences)]
            # Holm's correction raises a p-value, at most by the number of tests.
            least, most = max(raw[0], min(raw[1:])), min(1.0, max(raw) * tests)
            value = 0.0 if p.startswith("<") else float(p)
            yield "" if least - 0.001 <= value <= most + 0.001 or (not value and least < 0.001) else f"p {p}: {raw}"


def _why(files: RunFiles, text: str) -> Iterator[str]:
    found = _SHORT.search(text)
    if found is None:
        yield f"no figure in {text!r}"
        return
    name, short, answers, declined, of_main, share, main, detail = found.groups()
    if name not in files.suites:
        yield f"no experiment is called {name!r}"
        return
    wrong = {case for case in files.suites[name].answered if values_of(files.suites[name], "correct").get(case) == 0}
    of_name = [line for line in files.causes if line["experiment"] == name]
    lines = [line for line in of_name if line["query_id"] in wrong] or of_name
    counted = Counter((line["cause"], line["detail"]) for line in lines)
    main = (main, detail or "")
    is_wrong = values_of(files.suites[name], "wrong")
    yield problem(short, "{}", sum(map(is_wrong.__getitem__, wrong)))
    yield problem(declined or "0", "{}", len(wrong) - sum(map(is_wrong.__getitem__, wrong)))
    yield problem(answers, "{}", len(files.suites[name].answered))
    more = re.search(r"([\d,]+) more below a failed gate", text)
    most = len(files.suites[name].answered) - len(wrong)
    yield f"{more[1]} more than {most} right answers" if more and int(more[1].replace(",", "")) > most else ""
    yield problem(of_main, "{}", counted[main])
    yield "" if abs(float(share) - 100 * counted[main] / len(wrong)) <= 0.5 else f"{share} % of {counted}"
    yield "" if counted[main] == max(counted.values()) else f"{main} is not the most frequent of {counted}"
