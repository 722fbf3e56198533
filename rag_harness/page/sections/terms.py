"""The glossary: terms of this page, each explained in a sentence with a figure of this run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag_harness.derived.attribution.cause_names import CAUSE_MEANINGS
from rag_harness.gates.units import bounds, value_said
from rag_harness.page.content import Section, Terms
from rag_harness.page.run import Run
from rag_harness.report.pairwise_lines import p_said

_MEASURES = {
    "evidence_recall": "The share of the quotes which the answer needs that stand in the chunks of the prompt",
    "recall@5": "The share of the right documents that are among the first 5 found",
    "faithfulness": "The share of an answer's claims that the chunks of the prompt support, as the judge reads them",
    "answer_relevancy": "How closely an answer keeps to its question, at most 1, as the judge reads it",
    "expectations": "The share of what the questions demand of their answers that is kept, by weight",
    "token_f1": "How many words an answer shares with the ground truth, from 0 to 1",
}
_FEW_CAUSES = 3


def terms(runs: Sequence[Run]) -> Section | None:
    """Return the terms that the first run has a figure of; None where it has none."""
    pairs = list(_pairs(runs[0]))
    return Section("terms", "Terms", [Terms(pairs)]) if pairs else None


def _pairs(run: Run) -> Iterator[tuple[str, str]]:
    name = run.brief.subject
    if not name or not run.tables[name].totals.answered:
        return
    yield from _measures(run, name)
    table = run.tables[name]
    yield (
        "declined",
        f"The model said that it does not know: {name} did so for {table.totals.abstained:,} of its "
        f"{table.totals.answered:,} answers.",
    )
    yield from _causes(run, name)
    yield from _chances(run, name)


def _measures(run: Run, name: str) -> Iterator[tuple[str, str]]:
    table = run.tables[name]
    for measure, meaning in _MEASURES.items():
        if table.has(measure):
            mean = table.aggregate([measure])[measure] or 0.0
            yield measure, f"{meaning}: {value_said(mean)} on average in {name}."


def _causes(run: Run, name: str) -> Iterator[tuple[str, str]]:
    found = run.brief.shortfall
    if found is None:
        return
    name = found.experiment
    if not found.is_sample:
        yield (
            "wrong",
            "An answer is wrong by what is expected of it; without expectations by whether it declines, else by the "
            f"ground truth, or by a judge: {found.n:,} of {found.answers:,} in {name}.",
        )
    for cause, n in list(found.causes.items())[:_FEW_CAUSES]:
        meaning = CAUSE_MEANINGS.get(cause, "a cause that this version does not know")
        yield cause, f"A cause: {meaning}. {n:,} of the {found.n:,} answers of {name} that were looked into."


def _chances(run: Run, name: str) -> Iterator[tuple[str, str]]:
    table = run.tables[name]
    measure = next((each for each in _MEASURES if table.has(each) and table.interval(each)), "")
    if measure:
        between = table.interval(measure)
        assert between is not None
        yield (
            "95 % interval",
            "Where the value would lie in 19 of 20 runs with other questions of the same kind: "
            f"{bounds(*between, table.columns[measure].measure.unit)} for {measure} of {name}.",
        )
    leads = [lead for field in run.brief.fields for lead in field.leads]
    cell = next((lead.nearest for lead in leads if lead.nearest is not None and lead.nearest.p_t is not None), None)
    if cell is not None and cell.p_t is not None and cell.p_permutation is not None:
        yield (
            "p",
            "How often chance alone gives a difference as large as this, if both are equally good: "
            f"{p_said(max(cell.p_t, cell.p_permutation))} for {cell.first} - {cell.second} in {cell.measure}.",
        )
