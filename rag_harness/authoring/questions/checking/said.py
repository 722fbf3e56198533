"""A report as lines for a terminal, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

from rag_harness.authoring.questions.checking.findings import Finding, Proposal, Report
from rag_harness.authoring.questions.metadata_keys import LOOKED_AT

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
