"""Writes causes for people: a table, the worst failures of each experiment, one trial in full. At most 100 columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap

from rag_harness.derived.attribution.cause_names import RETRIEVAL_MISS, TOP_LEVEL
from rag_harness.derived.attribution.interventions import GOLD_CONTEXT
from rag_harness.report.misses import cut
from rag_harness.report.summary import table
from rag_harness.results.causes import CAUSES, CauseLine

TERMINAL_WIDTH = 100
SHOWN_CAUSES = 10
"""Most printed failures of each experiment, where there are few experiments."""
_MOST = 40
"""Most printed failures of all experiments."""
NOTHING_TO_EXPLAIN = "no failed trial: nothing to explain"
_INDENT, _LABEL = "    ", 13


def cause_lines(
    causes: Sequence[CauseLine], where: str, shown: int = SHOWN_CAUSES, answers: Mapping[str, int] | None = None
) -> list[str]:
    """Return the lines of the section.

    Args:
        causes: causes of the failures, the worst of each experiment first.
        where: the folder that has all of them.
        shown: most printed failures of an experiment.
        answers: number of each experiment's answers, failed or not.
    """
    if not causes:
        return [NOTHING_TO_EXPLAIN]
    by_experiment: dict[str, list[CauseLine]] = {}
    for line in causes:
        by_experiment.setdefault(line.experiment, []).append(line)
    lines = [*_counts(by_experiment, answers or {}), *_limits(by_experiment)]
    each = min(shown, max(1, _MOST // len(by_experiment)))
    for name, found in by_experiment.items():
        lines += _worst(name, found, each)
    first = causes[0].trial
    return [*lines, "", f"all {len(causes)}: {where}/{CAUSES}", f"one whole: rag-harness explain {where} {first}"]


def explained(causes: int, answers: int) -> str:
    """Say how many of an experiment's answers have a cause: there may be few failures, or few were looked at."""
    return f"{causes:,} of {answers:,}" if answers else f"{causes:,}"


def _counts(by_experiment: Mapping[str, Sequence[CauseLine]], answers: Mapping[str, int]) -> list[str]:
    counted = {name: Counter(line.cause for line in found) for name, found in by_experiment.items()}
    causes = [cause for cause in TOP_LEVEL if any(count[cause] for count in counted.values())]
    rows = [[cause, *(str(count[cause]) for count in counted.values())] for cause in causes]
    total = ["explained", *(explained(count.total(), answers.get(name, 0)) for name, count in counted.items())]
    return table([["why they failed", *counted], *rows, total])


def gold_alone(by_experiment: Mapping[str, Sequence[CauseLine]]) -> Iterator[tuple[str, str, str]]:
    """Yield of which experiments causes are known from rows and gold alone: name, how many of how many, why."""
    for name, found in by_experiment.items():
        alone = Counter(line.limits for line in found if line.observational and line.limits)
        if alone:
            why, _ = alone.most_common(1)[0]
            yield name, f"{alone.total()} of {len(found)}", why


def _limits(by_experiment: Mapping[str, Sequence[CauseLine]]) -> Iterator[str]:
    for name, some, why in gold_alone(by_experiment):
        said = f"{name}: {some} causes are from rows and gold alone (observational): {why}"
        yield from wrap(cut(said, 3 * TERMINAL_WIDTH), TERMINAL_WIDTH, subsequent_indent="  ")


def _worst(name: str, found: Sequence[CauseLine], shown: int) -> Iterator[str]:
    yield ""
    order = (
        "by hallucination risk (HRI)"
        if any(line.hri is not None for line in found)
        else "by words of the ground truth that the answer lacks"
    )
    if len(found) > 1 and len({(line.cause, line.detail, line.evidence, line.remedy) for line in found}) == 1:
        yield f"{name}: all {len(found)} for one cause; the worst, {order}: {found[0].trial}"
        yield from _of(found[0])
        return
    yield f"{name}: the worst {min(shown, len(found))} of {len(found)}, {order}"
    for line in found[:shown]:
        hri = f"  HRI {line.hri:.2f}" if line.hri is not None else ""
        yield f"  {cut(f'{line.trial}{hri}  {line.query}', TERMINAL_WIDTH - 2)}"
        yield from _of(line)


def _of(line: CauseLine) -> Iterator[str]:
    """Yield cause, evidence and remedy of a failure."""
    yield f"{_INDENT}{cut(f'{line.cause}: {line.detail}{_repaired(line)}', TERMINAL_WIDTH - len(_INDENT))}"
    yield f"{_INDENT}{cut(line.evidence, TERMINAL_WIDTH - len(_INDENT))}"
    yield f"{_INDENT}-> {cut(line.remedy, TERMINAL_WIDTH - len(_INDENT) - 3)}"


def _repaired(line: CauseLine) -> str:
    """Say what repairs a failure; for missing evidence, also what the evidence alone would not repair."""
    if line.repaired_by:
        return f"; {line.repaired_by} repairs it"
    in_vain = line.cause == RETRIEVAL_MISS and line.answers.get(GOLD_CONTEXT, {}).get("right") is False
    return f"; {GOLD_CONTEXT} does not repair it" if in_vain else ""


def cause_in_full(line: CauseLine) -> list[str]:
    """Return all that is known of one failure, with the results of the interventions."""
    cause = f"{line.cause}: {line.detail}"
    lines = [
        *label_lines("trial", str(line.trial)),
        *label_lines("query", line.query),
        *label_lines("cause", cause + (" (observational)" if line.observational else "")),
        *label_lines("evidence", line.evidence),
        *(label_lines("repaired by", line.repaired_by) if line.repaired_by else ()),
        *label_lines("what to do", line.remedy),
        *(label_lines("limits", line.limits) if line.limits else ()),
        *(label_lines("reviewed", f"{line.reviewed_cause}, by {line.reviewed_by}") if line.reviewed_cause else ()),
    ]
    return [*lines, *(text for name, said in line.answers.items() for text in _tried(name, said))]


def _tried(name: str, said: Mapping[str, object]) -> list[str]:
    if "right" not in said:
        return label_lines("tried", f"{name}: {said.get('why', '')}", 2)
    return label_lines("tried", f"{name}: {'correct' if said['right'] else 'not correct'}: {said.get('answer', '')}", 3)


def label_lines(label: str, text: str, most: int = 4) -> list[str]:
    """Return a text with its label before it, in at most so many lines."""
    body = wrap(
        " ".join(text.split()), TERMINAL_WIDTH - _LABEL, break_on_hyphens=False, max_lines=most, placeholder=" …"
    )
    return [f"{(label if n == 0 else '').ljust(_LABEL)}{line}" for n, line in enumerate(body or [""])]
