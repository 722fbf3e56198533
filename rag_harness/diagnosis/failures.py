"""Failed trials of a run, the causes of failure with a remedy for each, and the progress of the search."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import compress, islice
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from rag_harness.core.json_text import read_json
from rag_harness.core.progress import report
from rag_harness.core.types import Case
from rag_harness.evaluation.measures.correctness import CORRECT
from rag_harness.evaluation.measures.judged import FAILED_CATEGORIES
from rag_harness.records.cases import CaseFile
from rag_harness.records.manifest import RunManifest, of_run
from rag_harness.records.row import ExperimentResult, rows_in
from rag_harness.runs.gates import Gate, parse_gate
from rag_harness.tables.brief import below_gate, is_of_answers, wrong_answers
from rag_harness.tables.reader import asked_measures, read_tables
from rag_harness.tables.suite_table import CaseState, SuiteTable
from rag_harness.tables.summary import SUMMARY_FILE

# The names of causes of failure, for code that shows causes without importing what finds them.
#
# A trial has a cause, which is found by its evidence and by running it again. Its category follows from scores alone
# (``measures.judged.categories``) and is shown in tables of categories, never beside a cause.

JUDGE_DOUBTFUL, NOISE, GOLD_DOUBTFUL = "Judge Doubtful", "Noise", "Gold Doubtful"
OUTDATED_INFO, RETRIEVAL_MISS, LOGIC_FAILURE = "Outdated Info", "Retrieval Miss", "Logic Failure"
UNDETERMINED, EXPECTATION_BROKEN = "Undetermined", "Expectation Broken"
TOP_LEVEL = (
    RETRIEVAL_MISS,
    OUTDATED_INFO,
    LOGIC_FAILURE,
    NOISE,
    GOLD_DOUBTFUL,
    JUDGE_DOUBTFUL,
    UNDETERMINED,
    EXPECTATION_BROKEN,
)
"""Every cause, the study's three first."""
CAUSE_MEANINGS = {
    RETRIEVAL_MISS: "what the answer needs was not in the chunks that the model was given",
    OUTDATED_INFO: "the answer follows an old version of a document",
    LOGIC_FAILURE: "the model was given what the answer needs, and its answer is wrong all the same",
    NOISE: "the same question, asked again, was answered rightly",
    GOLD_DOUBTFUL: "the ground truth itself may be wrong",
    JUDGE_DOUBTFUL: "the answer has what the ground truth asks for, so the judge may be wrong",
    UNDETERMINED: "the trial does not have what is needed to find its cause",
    EXPECTATION_BROKEN: "the answer breaks what the question demands of its form, its wording, its time or its cost",
}
"""What each cause means, as the end of a sentence."""


# Advice never names a part or an option that a pipeline does not have: a user with an own search is not advised
# to set ours. What an experiment is made of says which it has.

REMEDIES: Mapping[tuple[str, str], str] = {
    ("Retrieval Miss", ""): "read the evidence beside the question: what would have to match?",
    (
        "Retrieval Miss",
        "no retriever",
    ): "give it a context; if it has one, return it in the PipelineOutput",
    ("Retrieval Miss", "not in the index"): "add the page to the documents, or find out why it was left out",
    ("Retrieval Miss", "cut by a chunk border"): "larger chunks or more overlap: --rag-chunk-size, --rag-chunk-overlap",
    (
        "Retrieval Miss",
        "the page came without the passage",
    ): "send chunks whole if something shortens them (truncation); else larger chunks",
    (
        "Retrieval Miss",
        "not found",
    ): "hybrid retrieval, a better embedder, or more candidates: --rag-candidates",
    ("Retrieval Miss", "found but ranked below k"): "rerank, or give the model more: --rag-top-k",
    (
        "Retrieval Miss",
        "found and not given",
    ): "it was found and not passed on: look at what chooses the context, and for which question",
    (
        "Retrieval Miss",
        "ranked too low",
    ): "look at what orders the chunks: it puts others above this one; or give the model more",
    (
        "Retrieval Miss",
        "too few chunks",
    ): "give the model more chunks (a larger k), or rank this one higher",
    (
        "Retrieval Miss",
        "not in the context",
    ): "a search that finds it, or more chunks; return all that was found, to see its place",
    (
        "Retrieval Miss",
        "another part of the page came",
    ): "rank this part higher or send more chunks; return all that was found, to see its place",
    (
        "Retrieval Miss",
        "the context of another question",
    ): "look where questions and contexts are mixed up: batch, cache, id; then look at the search",
    (
        "Retrieval Miss",
        "no context came",
    ): "see why the search returns nothing: a filter, a threshold, an error that nobody sees",
    (
        "Retrieval Miss",
        "the same chunk several times",
    ): "drop chunks that are the same before the context is filled; index each document once",
    (
        "Retrieval Miss",
        "the same context for every question",
    ): "see whether the question decides the search: a cache, a default, an order turned round",
    (
        "Retrieval Miss",
        "lost in reranking",
    ): "the reranker put it too low: try another, rerank_model of the profile",
    (
        "Retrieval Miss",
        "lost the subject",
    ): "rewrite follow-ups before the search, as c1 does, or search for what was said, too",
    (
        "Retrieval Miss",
        "lost in history",
    ): "read the earlier answer that misled it; search for what the user said alone",
    (
        "Logic Failure",
        "lost the subject",
    ): "give the model what was said before, or the question in words that stand alone",
    (
        "Logic Failure",
        "lost in history",
    ): "read the earlier answer that misled it; ask for an answer by the sources alone",
    (
        "Retrieval Miss",
        "never searched",
    ): "tell it when it has to search; or search once before it decides",
    (
        "Retrieval Miss",
        "searched for the wrong thing",
    ): "read its queries beside the evidence; where they are right, mend the retriever",
    (
        "Retrieval Miss",
        "stopped too early",
    ): "allow more searches, and have it check each part of the question before it answers",
    (
        "Retrieval Miss",
        "found and not used",
    ): "give the answer all that its searches found, or look at what drops it",
    (
        "Retrieval Miss",
        "searched on after all was found",
    ): "have it check what it found before it searches again; keep earlier hits",
    (
        "Logic Failure",
        "searched on after all was found",
    ): "have it check what it found before it searches again: later hits mislead it",
    (
        "Outdated Info",
        "the index has another version of the page",
    ): "index the documents again: what was sent of the page is not what the page says now",
    ("Outdated Info", ""): "take outdated pages out of the index, or filter by status before the prompt",
    ("Logic Failure", ""): "a stronger model, or a prompt that asks for the figures of the sources",
    (
        "Logic Failure",
        "the same answer to every question",
    ): "see whether the question reaches the model: a cache, a default, an example in the prompt",
    (
        "Logic Failure",
        "the same answer to every question, in another language",
    ): "see whether the question reaches the model; ask in the prompt for the language of it",
    (
        "Logic Failure",
        "answers in another language",
    ): "ask in the prompt for the language of the question; look for what translates answers",
    (
        "Logic Failure",
        "not from its context",
    ): "tell it to answer from the context alone; is the context in the prompt as sent?",
    (
        "Logic Failure",
        "answers from another passage",
    ): "read the prompt as sent: has it this passage? if so, fewer others, or the best first",
    (
        "Logic Failure",
        "a wrong page ranked above",
    ): "rank the right page first, or filter the other out; has the prompt as sent all chunks?",
    (
        "Logic Failure",
        "misread",
    ): "see that the prompt as sent has the passage; if so, ask to keep to it, or a stronger model",
    (
        "Logic Failure",
        "the answer to another question",
    ): "look where questions and answers are mixed up: a batch, a cache, an id, a shared variable",
    (
        "Logic Failure",
        "repeats the question",
    ): "read the prompt as sent, and the reply: the question itself is returned",
    (
        "Logic Failure",
        "an error message",
    ): "read the log: a call fails, and its error is passed on as the answer",
    (
        "Logic Failure",
        "cut short",
    ): "allow longer answers: max_tokens of role answer; if empty, read the whole reply",
    (
        "Logic Failure",
        "not read where it stood",
    ): "read the prompt as sent: has it all chunks, whole? else a reranker, or fewer chunks",
    (
        "Logic Failure",
        "wrong refusal",
    ): "soften the instruction to refuse; first see that the passage is in the prompt as sent",
    (
        "Logic Failure",
        "answered what is not in the documents",
    ): "tell the model when to refuse",
    ("Logic Failure", "distracted"): "fewer chunks (--rag-top-k), or a reranker that drops what does not belong",
    ("Logic Failure", "incomplete multi-hop"): "ask for every part: a prompt that lists them, or sub-questions",
    ("Logic Failure", "found and not said"): "ask for it in the prompt: it is in the sources; or a stronger model",
    (
        "Logic Failure",
        "says what it must not",
    ): "forbid it in the prompt; if no source has it, a stronger model",
    (
        "Logic Failure",
        "cites another source",
    ): "ask for the source of each statement in the prompt",
    ("Logic Failure", "cites nothing"): "ask for citations in the prompt, and show one as an example",
    (
        "Logic Failure",
        "cites a source that is not there",
    ): "number the sources in the prompt, and say that no others exist",
    ("Noise", ""): "temperature 0 and a seed; else answer each query several times and judge the mean",
    (
        "Gold Doubtful",
        "the gold is that of another question",
    ): "look for rows that have shifted: mend the case, and those beside it",
    ("Gold Doubtful", ""): "read question, ground truth and evidence; mend the case or leave it out",
    (
        "Gold Doubtful",
        "the answer has the figure of the evidence",
    ): "read the evidence: if it is right, mend the figure of the ground truth",
    (
        "Gold Doubtful",
        "no page has what is expected",
    ): "read the expectation: no page has it. Mend it, or add the page",
    ("Judge Doubtful", ""): "read the answer; compare the judge with people: rag-harness judge calibrate",
    (
        "Undetermined",
        "the pipeline does not say what it looked up",
    ): "return a PipelineOutput with the prompt's chunks as context; a service: [read] contexts",
    ("Undetermined", ""): "give the case a ground truth and evidence quotes",
    ("Expectation Broken", ""): "read what is there beside what is expected: one of the two is to be mended",
    (
        "Expectation Broken",
        "form of the answer",
    ): "ask for this form in the prompt; JSON: the model's own JSON mode",
    ("Expectation Broken", "wording"): "ask for these words in the prompt, or mend the expectation: no source has them",
    ("Expectation Broken", "took too long"): "see which step takes the time: the report's speed; or raise the limit",
    (
        "Expectation Broken",
        "cost too much",
    ): "fewer chunks (--rag-top-k), a cheaper model; or raise the limit",
    ("Expectation Broken", "decided otherwise"): "look at the thresholds by which the pipeline decides",
    ("Expectation Broken", "says something else than before"): "read both answers; --snapshot-update keeps the new one",
    (
        "Expectation Broken",
        "declines in words of its own",
    ): "have the pipeline report that it abstains, or expect these words",
    (
        "Expectation Broken",
        "a source that must not be in the prompt",
    ): "filter the page out before the prompt, or take it out of the index",
}
"""The advice for an experiment that has all that is named."""
_WITHOUT: Mapping[tuple[str, str], tuple[str, str]] = {
    ("Retrieval Miss", "cut by a chunk border"): ("chunk_size", "larger chunks or more overlap, cut between sentences"),
    ("Retrieval Miss", "not found"): ("candidates", "a search by words and by meaning, or one that looks deeper"),
    ("Retrieval Miss", "found but ranked below k"): ("top_k", "rank it higher, or give the model more chunks"),
    ("Retrieval Miss", "lost in reranking"): ("rerank_model", "the reranker put it too low: try another, or none"),
    (
        "Logic Failure",
        "cut short",
    ): ("max_output_tokens", "allow longer answers: max_tokens; if empty, read the whole reply"),
    (
        "Logic Failure",
        "not read where it stood",
    ): ("top_k", "read the prompt as sent: has it all chunks, whole? else fewer chunks, or the best first"),
    ("Logic Failure", "distracted"): ("top_k", "fewer chunks, or drop those that do not belong"),
    ("Expectation Broken", "cost too much"): ("top_k", "fewer chunks, a cheaper model; or raise the limit"),
}
"""The ingredient that an experiment must have for the advice above, and the advice for one without it."""


def remedy_of(cause: str, detail: str, ingredients: Collection[str]) -> str:
    """Return the advice for a cause, for an experiment with these ingredients."""
    needed, without = _WITHOUT.get((cause, detail), ("", ""))
    if needed and needed not in ingredients:
        return without
    return REMEDIES.get((cause, detail)) or REMEDIES[cause, ""]


CAUSES = "causes"
"""The name by which the work reports."""
_Each = TypeVar("_Each")


class CauseProgress:
    """Counts the trials whose causes are looked for.

    Args:
        total: how many there are; 0 reports nothing.
    """

    def __init__(self, total: int) -> None:
        self._done, self._total = 0, total
        self._report(0)

    def counted(self, trials: Iterable[_Each]) -> Iterator[_Each]:
        """Yield the trials, and count them."""
        for trial in trials:
            self._done += 1
            yield trial

    def tell(self) -> None:
        """Report how many are done. Answers that no threshold has chosen may come on top."""
        self._report(min(self._done, self._total - 1))

    def end(self) -> None:
        """Report that all are done."""
        self._report(self._total)

    def _report(self, done: int) -> None:
        if self._total > 0:
            report(CAUSES, done, self._total, "answers")


_FIRST = 1_000
"""Number of an experiment's answers that are read to learn how its answers end."""
_FIRST_CASES = 5_000
_BEST = -2.0
"""Badness of an unjudged answer with exactly the words of the ground truth."""
WORST = 10
"""Number of trials of each experiment to look at, however few of them have failed."""
EXPECTATIONS = "expectations"
"""The measure of what is expected of an answer beside gold."""
AGAINST_TRUTH = ("answer_correctness", "nugget_recall")
"""Judged measures of how much of the ground truth an answer has."""


@dataclass(frozen=True, slots=True)
class FailedCase:
    """A trial that may have failed. ``category`` is empty where it is only among the worst."""

    query_id: str
    category: str = ""
    hri: float | None = None
    judged: Mapping[str, float] = field(default_factory=dict)


def tables_of(output: Path, manifest: RunManifest) -> dict[str, SuiteTable]:
    """Return the tables of a run with the measures that it was judged on.

    Raises:
        DataError: the cases are missing or damaged.
    """

    return read_tables(output, partial(asked_measures, output, manifest))


def suspects(table: SuiteTable, worst: int | None = None, failed: Sequence[Gate] = ()) -> dict[str, FailedCase]:
    """Return the trials of one experiment that may have failed, the worst first.

    These are wrong answers, trials of a failed category, trials on the wrong side of the threshold of a ``failed``
    gate, and the first ``WORST`` of all; with ``worst`` the first so many of all, and no others.
    """
    ordered = [place for place in worst_first(table).tolist() if table.states[place] == CaseState.OK]
    if worst is not None:
        return {table.ids[place]: suspect_at(table, place) for place in ordered[: max(worst, 0)]}
    below = {case for gate in failed if gate.measure in table.columns for case in below_gate(table, gate)}
    wanted = below | wrong_answers(table)
    chosen = [n < WORST or bool(_failed(table, place)) or table.ids[place] in wanted for n, place in enumerate(ordered)]
    return {table.ids[place]: suspect_at(table, place) for place in compress(ordered, chosen)}


def possible_failures(table: SuiteTable) -> list[int]:
    """Return the positions of the answers that may have failed, the worst first.

    They are wrong, or in a failed category, or nothing checks them and they are worse than the ground truth would be.
    """
    correct = _values(table, CORRECT)
    is_open = (correct == 0) | (np.isnan(correct) & (badness_of(table) > _BEST))
    found = [place for place in worst_first(table).tolist() if table.states[place] == CaseState.OK]
    return [place for place in found if is_open[place] or _failed(table, place)]


def failed_gates(output: Path, experiment: str, k: int) -> list[Gate]:
    """Return the gates on a mean of ``experiment`` that failed in the run, from ``summary.json``.

    Causes are looked for in first answers, so a promise over repeats is none of them.
    """
    try:
        said = read_json((output / SUMMARY_FILE).read_bytes()).get("gates", [])
    except (OSError, ValueError, AttributeError):
        return []
    gates = [parse_gate(verdict["gate"], k) for verdict in said if verdict.get("state") == "failed"]
    return [gate for gate in gates if gate.suite == experiment and is_of_answers(gate)]


def worst_first(table: SuiteTable) -> npt.NDArray[np.intp]:
    """Return the positions of all cases: wrong answers, then those that nothing checks, then right ones.

    In each of these the worst are first; equal ones are in the order of their cases.
    """
    return np.lexsort((-badness_of(table), _or(_values(table, CORRECT), 0.5)))


def badness_of(table: SuiteTable) -> npt.NDArray[np.float64]:
    """Return how bad each answer is among equally right ones, shape (cases,): its HRI, else its words, in [-2, -1].

    An answer without an HRI, e.g. a refusal, invents nothing, so it comes after all that have one. The badness of words
    is their distance from those of the ground truth, in [0, 1]; a wrong answer without a ground truth is as bad as
    possible, and one that breaks expectations at least as bad as their share. The retrieved evidence does not count:
    selected by it, every failure would be one of retrieval. A case without an answer has a badness too, which means
    nothing.
    """
    hri = _or(_values(table, "hri"), _values(table, "hri_gold"))
    words = _or(1 - _values(table, "token_f1"), np.asarray(_values(table, CORRECT) == 0, np.float64))
    broken = 1 - _or(_values(table, EXPECTATIONS), 1.0)
    return _or(hri, np.maximum(words, broken) - 2)


def _values(table: SuiteTable, measure: str) -> npt.NDArray[np.float64]:
    column = table.columns.get(measure)
    return column.values if column is not None else np.full(len(table.ids), np.nan)


def _or(values: npt.NDArray[np.float64], others: npt.NDArray[np.float64] | float) -> npt.NDArray[np.float64]:
    return np.where(np.isnan(values), others, values)


def _failed(table: SuiteTable, place: int) -> str:
    """Return the failed category of an answer; empty where its category is not a failure."""
    category = table.categories[place] if table.categories else ""
    return category if category in FAILED_CATEGORIES else ""


def suspect_at(table: SuiteTable, place: int) -> FailedCase:
    """Return the trial of a case, by the position of this, as a suspect."""
    found = {
        name: float(column.values[place])
        for name in ("hri", "hri_gold", *AGAINST_TRUTH)
        if (column := table.columns.get(name)) is not None and not np.isnan(column.values[place])
    }
    judged = {name: found[name] for name in AGAINST_TRUTH if name in found}
    hri = found.get("hri", found.get("hri_gold"))
    return FailedCase(table.ids[place], _failed(table, place), hri, judged)


def suspect(table: SuiteTable, query_id: str) -> FailedCase:
    """Return one trial as a suspect."""
    return suspect_at(table, table.ids.index(query_id))


def first_rows(output: Path, manifest: RunManifest, experiment: str) -> Iterator[ExperimentResult]:
    """Yield the first answers of an experiment in this run, enough to learn how they end."""
    record = manifest.suites[experiment]
    is_of_run = of_run(record)
    answers = (row for row in rows_in(output / record.file) if row.ok and is_of_run(row))
    return islice(answers, _FIRST)


def first_cases(output: Path, manifest: RunManifest, experiment: str) -> Iterator[Case]:
    """Yield the first cases of an experiment's data, enough to search for swapped gold."""
    with closing(CaseFile(output, manifest.suites[experiment].cases)) as cases:
        yield from (cases[n].case for n in range(min(len(cases.ids), _FIRST_CASES)))


def rows_of(
    output: Path, manifest: RunManifest, experiment: str, is_wanted: Callable[[ExperimentResult], bool]
) -> Iterator[tuple[Case, ExperimentResult]]:
    """Yield the wanted rows of an experiment in this run, each with its case as its data have it."""
    record = manifest.suites[experiment]
    is_of_run, cases = of_run(record), CaseFile(output, record.cases)
    try:
        for row in rows_in(output / record.file):
            if row.ok and is_of_run(row) and is_wanted(row):
                yield cases[cases.position[row.query_id]].case, row
    finally:
        cases.close()
