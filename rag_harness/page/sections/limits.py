"""The limits of a run's figures. Only those that apply to this run are listed."""

from __future__ import annotations

from collections.abc import Iterator

from rag_harness.judges.unseen import UNSEEN
from rag_harness.page.run import Run
from rag_harness.page.sections.made_of import authors, selected_of
from rag_harness.settings.profiles import MOCK, SIMULATED

SYNTHETIC = frozenset({"89b23f79180a1ac0", "9cffe29979c52fe8"})
"""Digests of the questions that ship with the harness, ``data/kb``, about an invented shop. The second one stands in
runs of before ``expect`` was left out of it."""
_WHAT = {
    "embedded/": "a baseline reader that copies from its sources",
    MOCK: "a stand-in for tests",
    SIMULATED: "a simulation that knows the gold answers, and plants faults in them",
}
_NO_LLM = tuple(_WHAT)


def limits(run: Run) -> list[str]:
    """Return the limits, one sentence each."""
    return [*_data(run), *_models(run), *_judging(run), *_running(run)]


def _data(run: Run) -> Iterator[str]:
    if SYNTHETIC & {run.manifest.digests.get(record.data) for record in run.suites.values()}:
        yield (
            "The documents and questions are synthetic: the help centre of a retailer that does not exist. Real "
            "documents are longer, older and less consistent, and real users ask otherwise."
        )
    yield "The intervals are for other questions of the same kind, and not for other documents or other topics."
    settings = run.manifest.settings
    if any(table.totals.retrieves for table in run.experiments.values()) and settings.get("chunk_size"):
        yield (
            f"Chunking was fixed: {settings.get('chunker', 'sections')}, at most {settings['chunk_size']} tokens, "
            f"{settings.get('chunk_overlap')} of them repeated. Other cuts were not tried."
        )


def _models(run: Run) -> Iterator[str]:
    models = {model for table in run.experiments.values() for model in table.totals.models if model}
    for model in sorted(model for model in models if model.startswith(_NO_LLM)):
        what = next(said for begin, said in _WHAT.items() if model.startswith(begin))
        yield (
            f"{model}, which answered, is no LLM: it is {what}. What it answers says little of what an LLM would "
            "answer from the same context."
        )
    if any(table.totals.rows for table in run.experiments.values()) and not run.manifest.settings.get("repeats"):
        yield "Each query was answered once: how much an answer varies from one time to the next is not in the figures."


def _judging(run: Run) -> Iterator[str]:
    judges = sorted({model for _, model in authors(run)})
    embedded = [model for model in judges if model.startswith(_NO_LLM)]
    if embedded:
        yield (
            f"The judge {' and '.join(embedded)} is no LLM: it compares words, figures and vectors, and does not "
            f"reason; {UNSEEN}"
        )
    if any(model not in embedded for model in judges):
        yield "Judged scores are a model's judgement: it has tastes, and style moves it more than it should."
    if judges and not any("~calibrated" in gate.get("gate", "") for gate in run.gates):
        yield (
            "No gate was corrected by people's labels: a judge's 0.83 is not 83 % of anything until people have looked."
        )


def _running(run: Run) -> Iterator[str]:
    partial = [name for name, table in run.experiments.items() if selected_of(run, name) < table.total_of({})]
    if partial:
        yield f"Only some of the cases were selected of {', '.join(partial)}: the figures are of these."
    if any(table.totals.replayed for table in run.experiments.values()):
        yield (
            "Answers were replayed: their times are those of the machine and the day on which they were recorded, and "
            "are drawn in no chart of latency."
        )
