"""Findings of a check of questions, as lines and as JSON, and the gold that was checked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from rag_harness.authoring.questions.review.rows import LOOKED_AT
from rag_harness.core.types import Case, Evidence, Expectation
from rag_harness.data.golden import GoldenEntry, read_golden
from rag_harness.data.queries import read_queries
from rag_harness.data.query_lines import turn_id

What = Literal[
    "white space",
    "markup",
    "moved",
    "figure",
    "reworded",
    "gone",
    "page renamed",
    "page gone",
    "heading gone",
    "page unread",
    "answer",
    "expectation",
    "may be answered",
    "one page holds all",
]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A passage that may replace evidence.

    ``quote`` is verbatim. ``score`` is the BM25 score of its chunk. ``share`` is the share of the searched words that
    the chunk has, weighted by rarity: 0 to 1.
    """

    filename: str
    quote: str
    score: float
    share: float


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing in the gold that is no longer true.

    Attributes:
        what: its kind.
        filename: the page that the question names; empty if it names none.
        why: what a person must know beside the old and the new text.
        old: the quote in the question.
        new: the passage that replaced it, verbatim; empty if there is none.
        new_file: the page that has ``new``, or the new name of a renamed page.
        affects: whether the question needs a correction or a person.
        mends: whether ``new`` and ``new_file`` may replace the old ones without a person.
        proposals: where to look for other evidence, best first.
    """

    what: What
    filename: str = ""
    why: str = ""
    old: str = ""
    new: str = ""
    new_file: str = ""
    affects: bool = True
    mends: bool = False
    proposals: tuple[Proposal, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """The findings of each question that has some, in the order of the file, and counts of what was checked."""

    found: Mapping[str, Sequence[Finding]]
    questions: int
    quotes: int
    pages: int
    unproven: int
    """The number of answerable questions without a quote and with pages; only these are checked."""
    unsearched: int = 0
    """The number of turns that nothing should answer and whose words alone say little: they are not searched for."""
    before: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The turns before each turn of a conversation."""
    bare: Sequence[str] = ()
    """The answerable questions that name neither a quote nor a page: there is nothing to check."""

    @property
    def standing(self) -> dict[str, list[str]]:
        """The later turns of each affected turn: what is said before them may be wrong."""
        affected, found = set(self.affected), dict[str, list[str]]()
        for name, before in self.before.items():
            for each in affected.intersection(before):
                found.setdefault(each, []).append(name)
        return found

    @property
    def affected(self) -> list[str]:
        """The questions that need a correction or a person."""
        return [name for name, findings in self.found.items() if any(each.affects for each in findings)]

    @property
    def open(self) -> list[str]:
        """The affected questions that only a person can correct."""
        return [
            name for name, findings in self.found.items() if any(each.affects and not each.mends for each in findings)
        ]


_SAID = {
    "white space": "quote with other white space",
    "markup": "quote with other marks",
    "moved": "quote moved",
    "figure": "quote with other figures",
    "reworded": "quote in other words",
    "gone": "quote gone",
    "page renamed": "page renamed",
    "page gone": "page gone",
    "heading gone": "heading gone",
    "page unread": "page cannot be read",
    "answer": "answer probably changed",
    "expectation": "expectation",
    "may be answered": "may be answered now",
    "one page holds all": "one page holds all evidence",
}
_TO_DO = {
    "may be answered": f"Give it gold; or accept it in a review, and {LOOKED_AT} names the page.",
    "one page holds all": "Make it a direct question, or ask for more than that page says.",
    "page unread": "Mend the file: its questions cannot be checked.",
}
_LONGEST = 160
_FEW = 5
_NO_ANSWER = 'Where no page has the answer, say "query_type": "negative".'


def reason(finding: Finding) -> str:
    """Return a finding as one line: what, where, and why."""
    where = f" ({finding.filename}{f' -> {finding.new_file}' if _is_elsewhere(finding) else ''})"
    why = f": {finding.why}" if finding.why else ""
    return f"{_SAID[finding.what]}{where if finding.filename else ''}{why}"


def _is_elsewhere(finding: Finding) -> bool:
    return finding.new_file not in ("", finding.filename)


def report_lines(report: Report, every: bool = False) -> list[str]:
    """Return the lines for a person; with ``every``, also findings that harm no question."""
    shown = [name for name in report.found if every or name in set(report.affected)]
    return [*(line for name in shown for line in _question(name, report)), *_summary(report)]


def _question(name: str, report: Report) -> Iterator[str]:
    for finding in report.found[name]:
        yield f"{name}: {reason(finding)}"
        if finding.old and finding.what != "answer":
            yield f"    old: {_short(finding.old)}"
        if finding.new and finding.new != finding.old:
            yield f"    new: {_short(finding.new)}"
        yield from (f"    near: {_proposed(each)}" for each in finding.proposals)
        if finding.what in _TO_DO:
            yield f"    {_TO_DO[finding.what]}"
    if later := report.standing.get(name):
        stand = "stands" if len(later) == 1 else "stand"
        yield f"    {', '.join(later)} {stand} on it: what was said before may be wrong there"


def _proposed(proposal: Proposal) -> str:
    return (
        f"{proposal.filename} (BM25 {proposal.score:.2f}, {proposal.share:.0%} of the words) {_short(proposal.quote)}"
    )


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _LONGEST else f"{plain[: _LONGEST - 1]}…"


def _summary(report: Report) -> Iterator[str]:
    affected, still = len(report.affected), len(report.open)
    looked = f"{report.questions} questions with {report.quotes} quotes, {report.pages} pages"
    yield f"{looked}: {affected} affected" + (f", {affected - still} of them safe to mend with -o" if affected else "")
    spaced = sum(name not in set(report.affected) for name in report.found)
    if spaced:
        yield f"{spaced} more with quotes in other white space, which counts as the same; -o mends them too"
    if report.unsearched:
        what = "turns that nothing should answer have no standalone question"
        yield f"{report.unsearched} {what}: whether a page answers them now was not looked for"
    if report.unproven:
        one = report.unproven == 1
        have = f"{report.unproven} answerable question{' has' if one else 's have'}"
        yield f"{have} no quote: only that the pages are there was checked"
    if report.bare:
        name = f"{len(report.bare)} question{' names' if len(report.bare) == 1 else 's name'}"
        more = [f"{len(report.bare) - _FEW} more"] if len(report.bare) > _FEW else []
        shown = ", ".join([*report.bare[:_FEW], *more])
        yield f"{name} no page and no quote, so nothing was checked: {shown}. {_NO_ANSWER}"


def report_as_json(report: Report) -> str:
    """Return the report as JSON: counts, and the findings of each question."""
    found = {name: [_plain(each) for each in findings] for name, findings in report.found.items()}
    whole = {
        "questions": report.questions,
        "quotes": report.quotes,
        "pages": report.pages,
        "without_quotes": report.unproven,
        "without_pages": list(report.bare),
        "not_searched_for": report.unsearched,
        "affected": report.affected,
        "need_a_person": report.open,
        "stand_on_affected": report.standing,
        "found": found,
    }
    return json.dumps(whole, ensure_ascii=False, indent=1)


def _plain(finding: Finding) -> dict[str, object]:
    return {key: value for key, value in asdict(finding).items() if value not in ("", ())}


@dataclass(frozen=True, slots=True)
class QuestionWithGold:
    """A question with its gold.

    ``standalone`` is the question of a turn as it would be asked with nothing before it; ``stands_on`` are the turns
    before it. ``pages`` are the relevant documents, and ``quotes`` its evidence; a quote without a file name is from
    one of ``pages``. ``looked_at`` are pages that have its words but do not answer it. ``expect`` is what it demands of
    its answers.
    """

    name: str
    kind: str
    text: str
    ground_truth: str = ""
    pages: tuple[str, ...] = ()
    quotes: tuple[Evidence, ...] = ()
    answerable: bool = True
    looked_at: tuple[str, ...] = ()
    expect: tuple[Expectation, ...] = ()
    standalone: str = ""
    stands_on: tuple[str, ...] = ()

    @property
    def alone(self) -> str:
        """The question in words that need nothing said before it; empty for a later turn of which nobody wrote them."""
        return self.standalone or ("" if self.stands_on else self.text)


def is_golden(file: Path) -> bool:
    """Whether a file is a golden set, by its name: files of questions have one JSON object a line."""
    return file.suffix.lower() in (".json", ".csv")


def read_asked(file: Path, types: Sequence[str] = ()) -> Sequence[QuestionWithGold]:
    """Read questions (``.jsonl``) or a golden set (``.json``, ``.csv``), in their order.

    Args:
        file: the questions.
        types: types of questions beside the known ones.

    Raises:
        DataError: the file is missing, empty or malformed; the message names every problem.
    """
    if is_golden(file):
        return list(map(_of_entry, read_golden(file)))
    return [_of_case(case) for case in read_queries(file, types=types) if case.has_text]


def _of_case(case: Case) -> QuestionWithGold:
    """Return a question with its gold; of a scenario its first turn, with the gold of the conversation."""
    looked_at = case.metadata.get(LOOKED_AT, ())
    scenario = case.scenario
    return QuestionWithGold(
        case.query.query_id,
        case.query_type,
        case.query.text,
        scenario.ground_truth if scenario else case.ground_truth,
        tuple(case.qrels),
        case.evidence,
        case.answerable,
        (looked_at,) if isinstance(looked_at, str) else tuple(looked_at),
        (*case.expect, *scenario.reached) if scenario else case.expect,
        case.standalone,
        _before(case),
    )


def _before(case: Case) -> tuple[str, ...]:
    place = case.query.place
    return tuple(turn_id(place["conversation"], turn) for turn in range(1, int(place["turn"]))) if place else ()


def _of_entry(entry: GoldenEntry) -> QuestionWithGold:
    quotes = tuple(Evidence("", quote) for quote in entry.evidence)
    kind = str(entry.metadata.get("query_type", "golden"))
    return QuestionWithGold(entry.entry_id, kind, entry.query, pages=entry.expected, quotes=quotes)
