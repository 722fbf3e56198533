"""The configurations of a space and their trials: rankings, answers, judgements, and the values of measures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from rag_harness.core.errors import CriticalError, SettingsError
from rag_harness.core.files import json_digest
from rag_harness.core.protocols import Experiment, Pipeline, Retriever
from rag_harness.core.settings import Settings
from rag_harness.core.settings.configurations import ANSWERED_BY, ConfigurationSpec, ParameterValue
from rag_harness.core.types import Answer, Case, Message, PipelineOutput, Query
from rag_harness.diagnosis.reruns import DerivedRuns
from rag_harness.diagnosis.tuning.space import TODAY, Space
from rag_harness.evaluation.measures import RowMeasure, Score, is_judged, measure_named, parts_of, score_named, scored
from rag_harness.pipelines.configuration import DEFAULT_SHAPE, ConfiguredRag, in_words, unfit
from rag_harness.pipelines.experiments import experiment_of
from rag_harness.pipelines.trace import Trace
from rag_harness.records.row import ExperimentResult, storable
from rag_harness.runs.gates.grammar import Gate
from rag_harness.runs.trial import TrialRequest
from rag_harness.stats import Interval, mean_interval, quantile, quantile_interval
from rag_harness.stats.inputs import UndefinedError

if TYPE_CHECKING:
    from rag_harness.pipelines.parts import RunParts
    from rag_harness.runs.judging import JudgedRow


AFTER_RANKING = ("top_k", "prompt", *ANSWERED_BY)
"""Parameters that change nothing of what is found, or only how much of it counts."""


@dataclass(frozen=True)
class Contender:
    """A configuration that races.

    Attributes:
        spec: what is built. Its derived rows have its name.
        values: all parameters of the space with their values, also those that the options set.
        title: a readable name: the name of a starting point, or its values in words.
    """

    spec: ConfigurationSpec
    values: Mapping[str, ParameterValue]
    title: str

    @property
    def name(self) -> str:
        """Its name in rows, ``tune+1f3a5b7c``."""
        return self.spec.name

    @property
    def top_k(self) -> int:
        """The number of chunks that are given to the model."""
        return int(self.values["top_k"])

    @cached_property
    def ranking(self) -> str:
        """Names what decides its ranking. Candidates with one name find the same chunks in the same order."""
        kept = {key: value for key, value in self.values.items() if key not in AFTER_RANKING}
        return f"tune+ranking_{json_digest([self.spec.experiment, sorted(kept.items())])[:12]}"


@dataclass(frozen=True)
class Field:
    """All candidates of a space.

    Attributes:
        candidates: that of today first.
        left_out: combinations that do not go together: why, and how many.
    """

    candidates: tuple[Contender, ...]
    left_out: Mapping[str, int]

    @property
    def today(self) -> Contender:
        """The configuration that the options are."""
        return self.candidates[0]


def field_of(space: Space, settings: Settings) -> Field:
    """Return the candidates of a space, each once.

    Raises:
        SettingsError: no combination goes together, or a starting point does not.
    """
    found: dict[str, Contender] = {}
    left_out: dict[str, int] = {}
    varied = tuple(each.name for each in space.parameters)
    today = ConfigurationSpec(TODAY, _without_vectors(space), space.experiment, space.where)
    for spec in (today, *space.start):
        if why := _unfit(spec.by_name, settings, space):
            raise SettingsError(f"{space.where}: {spec.name}: {why}.")
        candidate = _candidate(spec, settings, varied, spec.name)
        found.setdefault(candidate.name, candidate)
    for values in space.combinations():
        if why := _unfit(values, settings, space):
            short = why.partition(" ")[0]
            left_out[short] = left_out.get(short, 0) + 1
            continue
        spec = ConfigurationSpec("", tuple(sorted(values.items())), space.experiment, space.where)
        candidate = _candidate(spec, settings, varied)
        found.setdefault(candidate.name, candidate)
    if len(found) < 2:
        raise SettingsError(f"{space.where}: there is nothing to compare: only the configuration of today is left.")
    first, *others = found.values()
    # Where two are equal, this order decides: the order of the file must not.
    return Field((first, *sorted(others, key=lambda each: each.name)), left_out)


def _without_vectors(space: Space) -> tuple[tuple[str, ParameterValue], ...]:
    """Return today's values where no combination uses vectors: today's configuration does not use them, either.

    A race by words alone so needs no embedder.
    """
    given = {each.name: set(each.values) for each in space.parameters}
    by_words = given.get("retriever") == {"bm25"} and given.get("rerank") == {False}
    return (("rerank", False), ("retriever", "bm25")) if by_words and not space.experiment else ()


def _unfit(values: Mapping[str, Any], settings: Settings, space: Space) -> str:
    return "" if space.experiment else unfit(values, settings)


def _candidate(spec: ConfigurationSpec, settings: Settings, varied: tuple[str, ...], title: str = "") -> Contender:
    values = _effective(spec, settings)
    name = f"tune+{json_digest([spec.experiment, sorted(values.items())])[:12]}"
    return Contender(replace(spec, name=name), values, title or in_words(values, varied))


def _effective(spec: ConfigurationSpec, settings: Settings) -> dict[str, ParameterValue]:
    """Return all values that decide what a configuration does; without those that it does not use."""
    shape = {} if spec.experiment else DEFAULT_SHAPE
    known = ("chunker", "chunk_size", "chunk_overlap", "embed_model", "index", "top_k", "candidates", "rerank_model")
    values = {**shape, **{name: getattr(settings, name) for name in (*known, *ANSWERED_BY)}, **spec.by_name}
    if not spec.experiment:
        unused = {
            "dense_weight": values["retriever"] != "hybrid",
            "candidates": not values["rerank"],
            "rerank_model": not values["rerank"],
        }
        values = {name: value for name, value in values.items() if not unused.get(name)}
    return values


# What a configuration finds, without an answer: no model is called. One ranking serves every ``top_k``.


@dataclass(frozen=True)
class NoAnswer:
    """A generator that writes no answer: the output is what was found."""

    async def answer(self, query: Query, trace: Trace, said_before: tuple[Message, ...] = ()) -> PipelineOutput:  # noqa: ARG002
        """Return what was found."""
        return replace(trace.output(Answer("")), retrieval_only=True)


@dataclass(frozen=True)
class RetrieveStep:
    """The retrieve step of an experiment alone."""

    retriever: Retriever
    k: int

    async def answer(self, query: Query) -> PipelineOutput:
        trace = Trace()
        await trace.retrieve(self.retriever, query.text, self.k)
        trace.context = trace.retrieved
        return replace(trace.output(Answer("")), retrieval_only=True)


def ranking_of(built: Experiment, name: str, k: int) -> Experiment:
    """Return an experiment that finds what ``built`` finds, the best ``k``, and answers nothing."""
    pipeline: Pipeline
    if isinstance(built.pipeline, ConfiguredRag):
        pipeline = replace(built.pipeline, generator=NoAnswer(), top_k=k)  # type: ignore[arg-type]
    else:
        assert built.retriever is not None
        pipeline = RetrieveStep(built.retriever, k)
    return replace(built, id=name, pipeline=pipeline, ingredients={**built.ingredients, "ranked": k})


def with_top_k(row: ExperimentResult, candidate: Contender) -> ExperimentResult:
    """Return the row of a ranking as a row of a configuration, with as many chunks as it gives to a model."""
    changed: dict[str, Any] = {"retrieved_chunks": row.retrieved_chunks[: candidate.top_k]}
    if not candidate.values.get("rerank"):
        changed["candidates"] = row.candidates[: candidate.top_k]
    return row.model_copy(update=changed)


# Asks configurations: rows of what they find, and of what they answer. What was asked once is read.

_NOT_RUN = "not run: "
RowsByQuery = Mapping[str, "ExperimentResult | str"]
"""The row of each question, or why there is none."""


class JudgedRows(dict[str, "ExperimentResult | str"]):
    """Rows with what a judge has said of them: ``scores`` has those of a question, by measure."""

    def __init__(self, rows: RowsByQuery, scores: Mapping[str, Mapping[str, Score]]) -> None:
        super().__init__(rows)
        self.scores: Mapping[str, Mapping[str, Score]] = scores


@dataclass(frozen=True, slots=True, eq=False)
class TunedTrial:
    """One configuration, or its ranking, on one question. ``experiment.id`` is the name of its rows."""

    experiment: Experiment
    case: Case
    fingerprint: str
    why_not: str = ""

    @property
    def derived(self) -> str:
        """The name of the derived experiment."""
        return self.experiment.id

    @property
    def asking(self) -> TrialRequest:
        """The request. A failure leaves no row, so that the next run asks again."""
        return TrialRequest(keeps_failures=False)

    def is_answered_by(self, row: ExperimentResult) -> bool:
        """Whether a stored row was asked the same."""
        return bool(row.query == storable(self.case.query.text) and row.inputs == storable(self.case.query.inputs))


class Asking:
    """Asks the configurations of a race.

    Args:
        runs: runs the trials.
        parts: what configurations are built of.
        fingerprint: of an experiment.
        candidates: all of the race; of one ranking the deepest ``top_k`` is asked for.
    """

    def __init__(
        self,
        runs: DerivedRuns,
        parts: RunParts,
        fingerprint: Callable[[Experiment], str],
        candidates: Sequence[Contender],
    ) -> None:
        self._runs, self._parts, self._fingerprint = runs, parts, fingerprint
        self._built: dict[str, Experiment] = {}
        self._fingerprints: dict[str, str] = {}
        self._prepared: set[str] = set()
        self._spent = False
        self._rankings: dict[str, dict[str, ExperimentResult | str]] = {}
        self._deepest: dict[str, Contender] = {}
        for each in candidates:
            known = self._deepest.setdefault(each.ranking, each)
            if each.top_k > known.top_k:
                self._deepest[each.ranking] = each

    def build(self, candidate: Contender) -> Experiment:
        """Return the experiment of a configuration.

        Raises:
            PrerequisiteError: it cannot be built.
        """
        if candidate.name not in self._built:
            self._built[candidate.name] = experiment_of(candidate.spec, self._parts)
        return self._built[candidate.name]

    def finds(self, candidate: Contender) -> bool:
        """Return whether what a configuration finds can be asked for without an answer."""
        return self.build(candidate).retriever is not None

    def found(self, candidates: Iterable[Contender], cases: Sequence[Case]) -> dict[str, RowsByQuery]:
        """Return what each configuration finds for each case, by its name. Each ranking is made once."""
        candidates = list(candidates)
        for name in dict.fromkeys(each.ranking for each in candidates):
            known = self._rankings.setdefault(name, {})
            new = [case for case in cases if case.query.query_id not in known]
            if new:
                known |= self._asked(self._ranking(name), new)
        return {each.name: self._cut(each, cases) for each in candidates}

    def answers(self, candidates: Iterable[Contender], cases: Sequence[Case]) -> dict[str, RowsByQuery]:
        """Return what each configuration answers to each case, by its name. All are asked at once."""
        ready = {each.name: self._ready(self.build(each), cases) for each in candidates}
        asks = {name: [self._trial(experiment, case) for case in cases] for name, experiment in ready.items()}
        came = self._came([ask for each in asks.values() for ask in each])
        return {name: {ask.case.query.query_id: came[ask] for ask in each} for name, each in asks.items()}

    def is_spent(self) -> bool:
        """Return whether a question was not asked because the budget is spent."""
        return self._spent

    def _came(self, asks: Sequence[TunedTrial]) -> dict[TunedTrial, ExperimentResult | str]:
        came = self._runs.run(asks)
        unasked = {row for row in came.values() if isinstance(row, str) and row.startswith(_NOT_RUN)}
        self._spent |= any(row.startswith(f"{_NOT_RUN}budget") for row in unasked)
        why = self._runs.broken or next(iter(unasked), "")
        if why and not self._spent:
            # What was not asked would count as wrong answers.
            raise CriticalError(f"The race has stopped: {why.removeprefix(_NOT_RUN)}")
        return came

    def _cut(self, candidate: Contender, cases: Iterable[Case]) -> RowsByQuery:
        rows = self._rankings[candidate.ranking]
        asked = {case.query.query_id: rows[case.query.query_id] for case in cases}
        return {name: row if isinstance(row, str) else with_top_k(row, candidate) for name, row in asked.items()}

    def _ranking(self, name: str) -> Experiment:
        if name not in self._built:
            deepest = self._deepest[name]
            kept = {key: value for key, value in deepest.values.items() if key == "top_k" or key not in AFTER_RANKING}
            spec = ConfigurationSpec(name, tuple(sorted(kept.items())), deepest.spec.experiment, deepest.spec.where)
            self._built[name] = ranking_of(experiment_of(spec, self._parts), name, deepest.top_k)
        return self._built[name]

    def _asked(self, experiment: Experiment, cases: Sequence[Case]) -> dict[str, ExperimentResult | str]:
        self._ready(experiment, cases)
        asks = [self._trial(experiment, case) for case in cases]
        came = self._came(asks)
        return {ask.case.query.query_id: came[ask] for ask in asks}

    def _trial(self, experiment: Experiment, case: Case) -> TunedTrial:
        if experiment.id not in self._fingerprints:
            self._fingerprints[experiment.id] = self._fingerprint(experiment)
        return TunedTrial(experiment, case, self._fingerprints[experiment.id])

    def _ready(self, experiment: Experiment, cases: Sequence[Case]) -> Experiment:
        """Prepare an experiment: its index and the vectors of its questions."""
        if experiment.prepare is not None:
            new = [case.query for case in cases if f"{experiment.id} {case.query.query_id}" not in self._prepared]
            if new:
                experiment.prepare(new)
                self._prepared |= {f"{experiment.id} {query.query_id}" for query in new}
        return experiment


_SURE = 0.999


@dataclass
class Values:
    """What one configuration came to, question by question.

    Attributes:
        of: by measure, the value of each question that has one. Higher and lower are as the measure says.
        failed: questions without an answer.
        why: the first reason.
        context: characters of the chunks that were given, by question.
    """

    of: dict[str, dict[str, float]] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    why: str = ""
    context: dict[str, int] = field(default_factory=dict)

    def take(self, rows: RowsByQuery, cases: Sequence[Case], measures: Sequence[str]) -> None:
        """Take rows. A question without an answer has the worst value of a measure."""
        scores = rows.scores if isinstance(rows, JudgedRows) else {}
        for case in cases:
            name = case.query.query_id
            row = rows[name]
            if isinstance(row, str):
                self.failed.add(name)
                self.why = self.why or row
            else:
                self.context[name] = sum(len(chunk.text) for chunk in row.retrieved_chunks)
            for measure in measures:
                value = value_of(measure, case, row, scores.get(name, {}).get(measure))
                if value is not None:
                    self.of.setdefault(measure, {})[name] = value

    def mean(self, measure: str) -> float | None:
        """Return the mean of a measure; None where no question has a value."""
        values = self.of.get(measure, {}).values()
        return sum(values) / len(values) if values else None

    @property
    def mean_context(self) -> float:
        """The mean number of characters that are given; 0 without a row."""
        return sum(self.context.values()) / len(self.context) if self.context else 0.0

    def kept(self, constraint: Gate) -> tuple[bool | None, float | None]:
        """Return whether a constraint holds, and its value; None where it has none."""
        values = sorted(self.of.get(constraint.measure, {}).values())
        if not values:
            return None, None
        share = constraint.quantile
        value = sum(values) / len(values) if share is None else quantile(values, share / 100)
        limit = constraint.right
        assert isinstance(limit, float | int)
        return _holds(constraint.op, value, limit), value

    def breaks(self, constraint: Gate) -> bool:
        """Return whether it is sure that a constraint does not hold: no end of the interval keeps it.

        Sure is 99.9 %: it is asked of many configurations, many times.
        """
        values = list(self.of.get(constraint.measure, {}).values())
        limit, share = constraint.right, constraint.quantile
        assert isinstance(limit, float | int)
        if len(values) < 2:
            return False
        try:
            span = (0.0, 1.0) if measure_named(constraint.measure).unit == "share" else None
            ends = (
                mean_interval(values, span, _SURE) if share is None else quantile_interval(values, share / 100, _SURE)
            )
        except UndefinedError:
            ends = Interval(min(values), max(values))
        return not any(_holds(constraint.op, end, limit) for end in ends)


def broken(constraints: Sequence[Gate], values: Values) -> str:
    """Return the first constraint that values do not keep to, in words; empty where they keep to all."""
    for each in constraints:
        holds, value = values.kept(each)
        if holds is None and values.of:
            return f"{each.what} has no value"
        if holds is False:
            return not_kept(each, value)
    return ""


def not_kept(constraint: Gate, value: float | None) -> str:
    """Return what is said of a constraint that a value does not keep to."""
    return f"{constraint.what} is {value:.4g}, not {constraint.op} {constraint.right:g}"


def _holds(op: str, value: float, limit: float) -> bool:
    return {">=": value >= limit, "<=": value <= limit, ">": value > limit, "<": value < limit}[op]


def is_found(name: str) -> bool:
    """Return whether a measure is about what was found alone; others need an answer."""
    measure = measure_named(name)
    return tuple(measure.needs) == ("retrieval",) and measure.unit == "share" and not is_judged(name)


def value_of(name: str, case: Case, row: ExperimentResult | str, judged: Score | None = None) -> float | None:
    """Return the value of a row; the worst value without an answer, or with nothing to measure: no claim to judge.

    ``judged`` is the judge's result where the measure is judged.
    """
    measure = measure_named(name)
    if measure.applies(case):
        return None
    if isinstance(row, str):
        return measure.worst
    if judged is None:
        assert isinstance(measure, RowMeasure)
        judged = scored(measure, case, row)
    return measure.worst if judged.value is None else judged.value


def of_group(values: Mapping[str, float], group: Sequence[Case], lower_is_better: bool) -> float:
    """Return the value of a group of questions for a race, from 0 to 1, higher is better: the mean of its questions.

    A group is what was drawn independently, a page or a conversation. So all groups count alike in a race.
    """
    found = [values[case.query.query_id] for case in group if case.query.query_id in values]
    mean = sum(found) / len(found) if found else 0.0
    return 1 - mean if lower_is_better else mean


# Judges answers of a race, for objectives and constraints that a judge answers: an opinion an answer, kept like it.

_BUDGET = "budget"


class RaceJudging:
    """The judge of a race.

    Args:
        runs: runs the judgements.
        parts: what the judge is made of.
        output: folder of the results, which has scores of earlier runs.
        names: measures; those that need no judge are left out.
        data: name of the data, whose pages a judge may read.

    Raises:
        PrerequisiteError: the judge cannot be asked: a key, a price or a package is missing.
    """

    def __init__(self, runs: DerivedRuns, parts: RunParts, output: Path, names: Iterable[str], data: str) -> None:
        from rag_harness.evaluation.judges.traits import check_judge
        from rag_harness.runs.journal import ResumeStore as Stored
        from rag_harness.runs.judging import judging_of

        self._runs, self._parts, self._data = runs, parts, data
        self._names = [name for name in names if is_judged(name)]
        self._measures = parts_of(self._names)
        check_judge(parts.settings)
        self._find = Stored(output, uuid4().hex, parts.settings.overwrite).score
        self._judging = judging_of(parts, self._gold_pages, runs.ask_elsewhere)
        self.is_spent = False
        if why := self._judging.made():
            raise CriticalError(f"The judge cannot be asked: {why}")

    @cached_property
    def _pages(self) -> dict[str, str]:
        return {document.doc_id: document.text for document in self._parts.data(self._data).documents}

    def _gold_pages(self, _: str, case: Case) -> list[str]:
        return [self._pages[name] for name in case.context_reference if name in self._pages]

    def judged(self, rows: Mapping[str, RowsByQuery], cases: Sequence[Case]) -> dict[str, RowsByQuery]:
        """Return the rows of each configuration with their scores. All are judged at once.

        Raises:
            CriticalError: the judge did not answer: what it did not judge says nothing about a configuration.
        """
        asked = {
            (name, case.query.query_id, "judged"): (row, case)
            for name, each in rows.items()
            for case in cases
            if isinstance(row := each[case.query.query_id], ExperimentResult)
        }
        came = self._runs.collect({key: self._job(row, case) for key, (row, case) in asked.items()})
        found: dict[str, dict[str, Mapping[str, Score]]] = {name: {} for name in rows}
        for (name, query_id, _), (row, case) in asked.items():
            judged = cast("JudgedRow", came[name, query_id, "judged"])
            found[name][query_id] = self._of(row, case, judged.scores)
        return {name: JudgedRows(each, found[name]) for name, each in rows.items()}

    def _job(self, row: ExperimentResult, case: Case) -> Any:
        return lambda: self._judging.row(row, case, self._measures, self._find)

    def _of(self, row: ExperimentResult, case: Case, said: Mapping[str, Score]) -> dict[str, Score]:
        absent = {each.name: Score(None, why, undefined=True) for each in self._measures if (why := each.applies(case))}
        scores = {**said, **absent}
        found = {name: score_named(name, scores) for name in self._names}
        for name, score in found.items():
            if score.value is None and not score.undefined and _BUDGET in score.reason:
                self.is_spent = True
            elif score.value is None and not score.undefined:
                raise CriticalError(
                    f"{name} of {row.trial_id} was not judged: {score.reason}. The same command goes on: it asks the "
                    f"judge again, and nobody else."
                )
        return found


class Answering:
    """Asks for answers, and for what a judge says of them.

    Args:
        asking: asks the configurations.
        judging: the judge; None where nothing is judged.
    """

    def __init__(self, asking: Asking, judging: RaceJudging | None) -> None:
        self._asking, self._judging = asking, judging

    def answers(self, candidates: Iterable[Contender], cases: Sequence[Case]) -> Mapping[str, RowsByQuery]:
        """Return what each configuration answers to each case, by its name."""
        rows = self._asking.answers(candidates, cases)
        return rows if self._judging is None or self._asking.is_spent() else self._judging.judged(rows, cases)

    def found(self, candidates: Iterable[Contender], cases: Sequence[Case]) -> Mapping[str, RowsByQuery]:
        """Return what each configuration finds for each case, by its name. Nobody judges that."""
        return self._asking.found(candidates, cases)

    def is_spent(self) -> bool:
        """Return whether something was not asked because the budget is spent."""
        return self._asking.is_spent() or (self._judging is not None and self._judging.is_spent)
