"""Wording for people: numbers, amounts, names, and messages of failed trials and missed documents."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import Literal, TypeAlias

from rag_harness.core.errors import PrerequisiteError
from rag_harness.evaluation.measures import Measure, measure_named
from rag_harness.records.golden_result import FoundHit, RetrievalResult
from rag_harness.records.row import ExperimentResult

_NAMED, _LONGEST = 3, 40


FEWEST_ERRORS, MOST_ERRORS = 3, 0.05
"""With at least so many errors, in more than this share of its trials, an experiment is neither better nor worse."""


def counted(n: int, one: str, many: str = "") -> str:
    """Return a number with its noun."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def many_errors_said(errors: int, rows: int) -> str:
    """Say that too many trials ended with an error to call an experiment better or worse; empty where few did."""
    if errors < FEWEST_ERRORS or errors <= MOST_ERRORS * rows:
        return ""
    return f"{errors:,} of {rows:,} trials ended with an error"


def joined_names(names: Sequence[str]) -> str:
    """Return names joined as in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""


def listed(names: Sequence[str], most: int = _NAMED) -> str:
    """Return names as text; of many the first."""
    names = [short(name) for name in names]
    return joined_names([*names[:most], f"{len(names) - most} more"] if len(names) > most + 1 else names)


def short(name: str, room: int = _LONGEST) -> str:
    """Return a name in at most so many characters, cut in its middle: variants differ at the end."""
    return name if len(name) <= room else f"{name[: room // 2 - 1]}…{name[-(room - room // 2) :]}"


# Cuts a text that is too long between two clauses, never inside brackets.

CUT = " …"
"""Follows a text whose end is left out, and before one whose beginning is."""
_CLOSES = {")": "(", "]": "[", "”": "“"}
_SPACE = re.compile(r"\s+")
_ABBREVIATED = ("e.g.", "i.e.")
_LEAST_LEFT = 0.5
"""A cut between clauses may leave no less than this share of what a cut between words leaves."""
_LONGEST_LEFT = 1_000
"""Characters of a text that are looked at: more is never left of one."""


def beginning_that_fits(text: str, fits: Callable[[str], bool]) -> str:
    """Return the text, or the longest beginning that fits with ``CUT`` behind it; empty where no beginning fits.

    It ends with a clause. Where a first clause is too long for that, it ends with a word.
    """
    if fits(text):
        return text
    text = text[:_LONGEST_LEFT]
    return _longest([(f"{text[:start].rstrip(',;:')}{CUT}", is_clause) for start, _, is_clause in _gaps(text)], fits)


def end_that_fits(text: str, fits: Callable[[str], bool]) -> str:
    """Return the same of the end of a text, with ``CUT`` before it."""
    if fits(text):
        return text
    text = text[-_LONGEST_LEFT:]
    return _longest([(f"{CUT.strip()} {text[end:]}", is_clause) for _, end, is_clause in [*_gaps(text)][::-1]], fits)


def _longest(cuts: Sequence[tuple[str, bool]], fits: Callable[[str], bool]) -> str:
    """Return the longest of the cuts that fit. The shortest comes first."""
    fitting = [*takewhile(lambda cut: fits(cut[0]), cuts)]
    word = max((text for text, _ in fitting), key=len, default="")
    clause = max((text for text, is_clause in fitting if is_clause), key=len, default="")
    return clause if len(clause) >= _LEAST_LEFT * len(word) else word


def _gaps(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield begin and end of each blank that is not in brackets, and whether it stands between clauses."""
    bracketed = list(_bracketed(text))
    for found in _SPACE.finditer(text):
        start, end = found.span()
        if start and not any(first < start < last for first, last in bracketed):
            before = text[:start]
            is_clause = before.endswith((",", ";", ".", "?", "!")) and not before.endswith(_ABBREVIATED)
            yield start, end, is_clause or text[end : end + 1] in {"(", "“"}


def _bracketed(text: str) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each part in brackets or quotes, also within others."""
    opened: list[int] = []
    for at, letter in enumerate(text):
        if letter in _CLOSES.values():
            opened.append(at)
        elif letter in _CLOSES:
            begun = [n for n, place in enumerate(opened) if text[place] == _CLOSES[letter]]
            if begun:  # a bracket that nothing closes is none
                yield opened[begun[-1]], at + 1
                del opened[begun[-1] :]


def money(dollars: float) -> str:
    """Return an amount for people: to the cent, and with more digits below a dollar."""
    return f"${dollars:.2f}" if dollars >= 1 else f"${dollars:.4f}"


# Says of a measure whether higher or lower values are better. Some measures have no better side.

Side: TypeAlias = Literal["higher", "lower", ""]
NEITHER = ("abstention_rate", "confidence", "carried_faithfulness")
"""Measures where higher is better on some queries and worse on others."""


def better_of(measure: Measure) -> Side:
    """Return whether higher or lower is better on every query; "" where neither is."""
    return "" if measure.name in NEITHER else measure.better


def better_named(name: str) -> Side:
    """Return the same by the measure's name; "" for a measure that is not registered here."""
    try:
        return better_of(measure_named(name))
    except PrerequisiteError:
        return ""


def number_or_dash(value: float | None) -> str:
    """Return a number with three decimals; a dash where there is none."""
    return "-" if value is None else f"{value:.3f}"


# Describes a miss of the golden suite in words: short, aligned, at most 100 columns wide.

TERMINAL_WIDTH = 100
_LABEL = 11
_MOST_DOCUMENTS, _LONGEST_NAME = 5, 60
_TIE = "\N{NO-BREAK SPACE}"
_WHOLE = 25
"""Lines of a question that is shown whole: 2,000 characters. A longer one would hide all others."""


def explain_miss(result: RetrievalResult) -> str:
    """Return the query, the expected documents, their ranks, and the hits that came instead."""
    lines = [
        *_labelled("query", result.query),
        *_labelled("expected", f"{', '.join(result.expected)}: {where_found(result)}"),
        *(_labelled("because", result.justification) if result.justification else ()),
        *(_labelled("passage", f"“{' '.join(result.passage.split())}”") if result.passage else ()),
        *(_labelled("error", result.error) if result.error else ()),
        *_found(result.top),
        *(() if result.found else _labelled("next", _remedy(result))),
    ]
    return "\n".join(lines)


def miss_line(result: RetrievalResult) -> str:
    """Return the miss in one line."""
    return f"{result.case_id}: expected {', '.join(result.expected)}, {where_found(result)}: {cut(result.query, 60)}"


def missed(result: RetrievalResult) -> list[str]:
    """Return the miss in a few lines: the question whole, what was expected, and the documents that came instead."""
    ranks: dict[str, int] = {}
    for hit in result.top:
        ranks.setdefault(hit.document, hit.rank)
    more = [f"and {len(ranks) - _MOST_DOCUMENTS} more"] if len(ranks) > _MOST_DOCUMENTS else []
    found = [f"{rank}{_TIE}{cut(name, _LONGEST_NAME)}" for name, rank in list(ranks.items())[:_MOST_DOCUMENTS]]
    said = [
        ("miss", f"{result.case_id}: expected {', '.join(result.expected)}, {where_found(result)}"),
        ("  asked", result.query),
        ("  found", ", ".join([*found, *more]) or result.error or "nothing"),
    ]
    return [line.replace(_TIE, " ") for label, text in said for line in _labelled(label, text, most=_WHOLE)]


def where_found(result: RetrievalResult) -> str:
    """Say at which rank the first expected document was found."""
    if result.found:
        return f"rank {result.rank}"
    if result.rank is not None:
        return f"rank {result.rank}, not in the top {result.k}"
    if not result.ranked:
        return "nothing was returned"
    # Retrievers that ask for shared words return what has any: often fewer hits than a measure looks at.
    return f"not among the {len(result.ranked)} hits" if len(result.ranked) > 1 else "not the only hit"


def _remedy(result: RetrievalResult) -> str:
    if result.error:
        return "the query could not be run; the log has the traceback"
    if result.rank is not None:
        return (
            "it is found, but too low: compare its passage with the hits above; try --rag-retriever=hybrid or reranked"
        )
    return "it shares too little with the query: read the passage, and check that the gold is right"


def _labelled(label: str, text: str, most: int = 4) -> list[str]:
    width = TERMINAL_WIDTH - _LABEL
    body = textwrap.wrap(text, width, break_on_hyphens=False, max_lines=most, placeholder=" …")
    return [f"{(label if n == 0 else '').ljust(_LABEL)}{line}" for n, line in enumerate(body or [""])]


def _found(hits: Sequence[FoundHit]) -> list[str]:
    if not hits:
        return _labelled("found", "nothing")
    document = min(34, max(len(hit.document) for hit in hits))
    section = 24
    head = f"{'found':{_LABEL}}{'rank':>4} {'score':>6}  {'document':{document}}  {'section':{section}}  "
    return [head.rstrip(), *(_hit_line(hit, document, section) for hit in hits)]


def _hit_line(hit: FoundHit, document: int, section: int) -> str:
    where = f"{cut(hit.document, document):{document}}  {cut(hit.section.rpartition(' > ')[2], section):{section}}"
    start = f"{'':{_LABEL}}{hit.rank:>4} {hit.score:>6.3f}  {where}  "
    return f"{start}{cut(hit.snippet, max(0, TERMINAL_WIDTH - len(start)))}".rstrip()


def cut(text: str, width: int) -> str:
    """Return ``text`` on one line of at most ``width`` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= width else f"{flat[: max(0, width - 1)]}…"


# The message of a failed trial: what was asked, what was found, why it failed, and what shows the whole trial.

WIDTH = 80
_MESSAGE_LABEL = 9
_MOST_LINES = 6
"""Of an error: its last words often say what to do."""
_MOST_NAMED = 3


def trial_failed(row: ExperimentResult, why: Sequence[str], output: str) -> str:
    """Return the message of a trial whose test failed.

    Args:
        row: the trial's result.
        why: lines of the test's message; empty if it says only that the answer is missing.
        output: folder of the run, as the user names it.
    """
    found = row.llm_answer if row.ok else "no answer"
    lines = [*(() if row.ok else _wrapped(row.error_text)), *why]
    return _message(row.query, found, lines, f"rag-harness explain {output} {row.trial}")


def entry_failed(result: RetrievalResult, command: str) -> str:
    """Return the message of an entry of the golden set that failed."""
    found = ", ".join(dict.fromkeys(hit.document for hit in result.top)) or "nothing"
    expected = f"{', '.join(result.expected)}: {where_found(result)}"
    return _message(result.query, found, _wrapped(result.error or expected), command)


def others_alike(trials: Sequence[str]) -> str:
    """Return the line that says which other trials failed for the same reason."""
    named = ", ".join([*trials[:_MOST_NAMED], *(["…"] if len(trials) > _MOST_NAMED else [])])
    return f"{'alike':{_MESSAGE_LABEL}}{len(trials):,} more: {named}"


def _message(asked: str, found: str, why: Sequence[str], command: str) -> str:
    said = [("asked", cut(asked, WIDTH - _MESSAGE_LABEL)), ("found", cut(found, WIDTH - _MESSAGE_LABEL))]
    reasons = [("" if number else "why", line) for number, line in enumerate(why)]
    return "\n".join(f"{label:{_MESSAGE_LABEL}}{text}" for label, text in [*said, *reasons, ("command", command)])


def _wrapped(text: str) -> list[str]:
    flat = " ".join(text.split())
    return textwrap.wrap(flat, WIDTH - _MESSAGE_LABEL, break_on_hyphens=False, max_lines=_MOST_LINES, placeholder=" …")
