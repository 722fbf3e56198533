"""The tuner: prepare and run a race, write the chosen configuration, and suggest a space for the causes of a run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_harness.core.errors import DataError, PrerequisiteError, SettingsError
from rag_harness.core.escaping import escaped
from rag_harness.core.files import json_digest, write_atomically
from rag_harness.core.settings import Settings
from rag_harness.core.settings.configurations import ParameterValue
from rag_harness.core.settings.endpoints import check_name
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.types import Case
from rag_harness.diagnosis.tuning.outcome import Entry, RaceOutcome, read_outcome, sentences
from rag_harness.diagnosis.tuning.race import (
    Ask,
    Course,
    RaceResult,
    Split,
    clusters_of,
    figure_of,
    held_out,
    race,
    race_of_found,
    split,
)
from rag_harness.diagnosis.tuning.space import Space, constraint_text
from rag_harness.diagnosis.tuning.trials import (
    Answering,
    Asking,
    Contender,
    Field,
    RaceJudging,
    Values,
    broken,
    field_of,
    is_found,
)
from rag_harness.evaluation.measures import RowMeasure, is_judged, measure_named, parts_of
from rag_harness.evaluation.measures.conversations import LateMeasure
from rag_harness.pipelines.experiments import known_experiments
from rag_harness.records.manifest import read_manifest
from rag_harness.records.scores import CAUSES, CauseLine, read_causes
from rag_harness.stats.paired_tests import clustered_spread_of

if TYPE_CHECKING:
    from rag_harness.core.protocols import Experiment
    from rag_harness.diagnosis.reruns import DerivedRuns
    from rag_harness.pipelines.parts import RunParts


EVIDENCE = "evidence_recall"
"""What is raced on before any answer is asked for: without its evidence a question is rarely answered."""
_SMALLEST_GAP = 0.05
_OF_SCREEN = 0.2
"""Share of the chance of a wrong claim that goes to what is said before answers are asked for."""


class Tuned(NamedTuple):
    """The outcome of a race, and the configuration that it chose."""

    outcome: RaceOutcome
    winner: Contender


@dataclass(frozen=True)
class Tuner:
    """Runs one race.

    Args:
        space: what races.
        runs: runs the trials.
        parts: what configurations are built of.
        fingerprint: of an experiment.
        output: folder of the results.
        say: takes the progress as text.
    """

    space: Space
    runs: DerivedRuns
    parts: RunParts
    fingerprint: Callable[[Experiment], str]
    output: Path
    say: Callable[[str], None]

    def run(self) -> Tuned:
        """Run the race and return its outcome, which is stored in ``output``.

        Raises:
            PrerequisiteError: the race cannot be run, or cannot be resumed because something that it depends on has
                changed.
        """
        field = field_of(self.space, self.parts.settings)
        cases = self._cases()
        parts = split(cases, self.space.held_out, self.space.seed, self.parts.settings.cluster)
        asking = Asking(self.runs, self.parts, self.fingerprint, field.candidates)
        for each in field.candidates:
            asking.build(each)
        began = self._began(asking, field, parts)
        self._check_same(began)
        asks_answers = self._asks_answers(asking, field)
        answering = self._answering(asking)
        self.say(self._announced(field, parts, asks_answers))
        first, screened = self._first_race(asking, field, parts, asks_answers)
        candidates = first.stayed(field.candidates) if asks_answers else field.candidates
        if field.today not in candidates:
            candidates = [field.today, *candidates]
        came = self._answer_race(answering, candidates, parts, screened is not None) if asks_answers else first
        if not came.answered:
            raise PrerequisiteError(
                f"The budget of {self.parts.settings.budget:g} USD was spent before the first look, so nothing can be "
                f"said of any configuration. Raise --budget: answers are kept, and nothing is asked again."
            )
        if asks_answers:
            came.left |= {name: gone for name, gone in first.left.items() if name not in came.values}
            came.values = {**first.values, **came.values}
        outcome = self._outcome(answering, field, parts, came, began, asks_answers, screened)
        outcome.write(self.output)
        return Tuned(outcome, next(each for each in field.candidates if each.name == outcome.winner))

    def _cases(self) -> list[Case]:
        data = self.parts.data(self._data)
        measure = measure_named(self.space.objective[0])
        cases = list(data.cases[: self.parts.settings.limit or None])
        about = self._about("objective", measure.name, cases)
        for name in self.space.measures:
            self._about("objective" if name in self.space.objective else "constraint", name, about)
        if len(about) < len(cases):
            self.say(f"{measure.name} is about {len(about)} of {len(cases)} questions: the others do not race")
        return about

    def _about(self, what: str, name: str, cases: Sequence[Case]) -> list[Case]:
        """Return the questions that a measure is about.

        Raises:
            DataError: there are none.
        """
        found = list(_about(name, cases))
        if not found:
            why = measure_named(name).applies(cases[0]) if cases else "there are no questions"
            raise DataError(
                f"{self.space.where}: {what} {name} is defined for none of the {len(cases)} questions: {why}."
            )
        return found

    @property
    def _data(self) -> str:
        from rag_harness.pipelines.experiments import data_of

        return data_of(self.space.experiment, self.parts.settings) if self.space.experiment else ""

    def _began(self, asking: Asking, field: Field, parts: Split) -> dict[str, str]:
        return {
            "space": self.space.digest,
            "questions": self.parts.data(self._data).queries_digest,
            "held_out": json_digest(sorted(case.query.query_id for case in parts.kept)),
            "today": self.fingerprint(asking.build(field.today)),
        }

    def _check_same(self, began: Mapping[str, str]) -> None:
        """Make sure that a race goes on with what it began with."""
        known = None if self.parts.settings.overwrite else read_outcome(self.output)
        if known is None or known.space != self.space.where:
            return
        if any(known.began.get(what) != began[what] for what in ("questions", "held_out")):
            raise DataError(
                f"The questions, or what decides how they are divided (--limit, --cluster, held_out, seed), have "
                f"changed since the race in {self.output}: some of those that are held out now were seen then. "
                f"Begin another: --output, or --overwrite."
            )

    def _asks_answers(self, asking: Asking, field: Field) -> bool:
        """Return whether answers are needed: something is measured that what was found does not tell."""
        names = self.space.measures
        for name in names:
            measure = measure_named(name)
            if any(isinstance(each, LateMeasure) for each in parts_of([name])) or not (
                is_judged(name) or isinstance(measure, RowMeasure)
            ):
                raise SettingsError(
                    f"{self.space.where}: {name} is worked out after a run, and a race looks at each answer: "
                    f"evidence_recall, recall@5, token_f1, expectations, faithfulness, cost_usd, total_ms."
                )
        finds = all(asking.finds(each) for each in field.candidates)
        return not finds or not all(map(is_found, names))

    def _announced(self, field: Field, parts: Split, asks_answers: bool) -> str:
        what = "answers are asked for" if asks_answers else "no model answers: what is found is measured"
        left_out = sum(field.left_out.values())
        unfit = f" ({left_out} combinations do not go together)" if left_out else ""
        return (
            f"{len(field.candidates)} configurations{unfit}, {len(parts.asked)} questions to race on, "
            f"{len(parts.kept)} held out; {what}"
        )

    def _first_race(
        self, asking: Asking, field: Field, parts: Split, asks_answers: bool
    ) -> tuple[RaceResult, tuple[str, int] | None]:
        """Race on what is found. All questions are asked: it costs no model call."""
        if not asks_answers:
            course = Course(parts.race, self.space.measures)
            return race_of_found(self.space, field.candidates, course, asking.found, self.say), None
        finds = [each for each in field.candidates if asking.finds(each)]
        about = [group for group in (_about(EVIDENCE, group) for group in parts.race) if group]
        if len(finds) < len(field.candidates) or len({each.ranking for each in finds}) < 2 or not about:
            return RaceResult(values={}), None
        screen = replace(self.space, objective=(EVIDENCE,), constraints=(), confidence=_part(self.space, _OF_SCREEN))
        came = race_of_found(screen, finds, Course(about, [EVIDENCE]), asking.found, self.say, in_no_more_text=True)
        self.say(f"{len(came.left)} of {len(finds)} configurations find less: their answers are not asked for")
        return came, (EVIDENCE, len(came.left))

    def _answering(self, asking: Asking) -> Answering:
        """Return what asks for answers. A judge that cannot be asked is an error now, before money is spent."""
        judged = [name for name in self.space.measures if is_judged(name)]
        judging = RaceJudging(self.runs, self.parts, self.output, judged, self._data) if judged else None
        return Answering(asking, judging)

    def _answer_race(
        self, answering: Answering, candidates: Sequence[Contender], parts: Split, was_screened: bool
    ) -> RaceResult:
        course = Course(parts.race, self.space.measures, self.space.margin)
        space = self.space
        if was_screened:
            space = replace(space, confidence=_part(space, 1 - _OF_SCREEN))
        return race(space, candidates, course, answering.answers, answering.is_spent, self.say)

    def _outcome(
        self,
        answering: Answering,
        field: Field,
        parts: Split,
        came: RaceResult,
        began: Mapping[str, str],
        asks_answers: bool,
        screened: tuple[str, int] | None,
    ) -> RaceOutcome:
        measure = measure_named(self.space.objective[0])
        titles = {each.name: each.title for each in field.candidates}
        lower = measure.better == "lower"
        cluster = clusters_of(parts.race)
        entries = [self._entry(each, came, titles, cluster) for each in field.candidates]
        entries.sort(key=lambda entry: _rank(entry, measure.name, lower))
        # The best stands first: of those that were set aside only where nobody else keeps to the constraints.
        usable = [entry for entry in entries if not (entry.left_after or entry.aside_after or entry.why)]
        usable = usable or [entry for entry in entries if not (entry.left_after or entry.why)]
        if not usable:
            raise DataError(_nobody(self.space, entries))
        good = [entry for entry in usable if entry.name in came.good_enough] or usable
        winner = next(each for each in field.candidates if each.name == good[0].name)
        ask: Ask = answering.answers if asks_answers else answering.found
        held = None
        if came.ended != "the budget is spent":
            held = held_out(self.space, ask, answering.is_spent, winner, field.today, parts.held_out)
        return RaceOutcome(
            space=self.space.where,
            objective=self.space.objective,
            better=measure.better,
            began=began,
            by=parts.by,
            questions=(len(parts.asked), len(parts.kept)),
            groups=(len(parts.race), len(parts.held_out)),
            asks_answers=asks_answers,
            ended=came.ended,
            asked=came.asked,
            calls=came.answered,
            grid=len(field.candidates) * len(parts.asked),
            margin=self.space.margin,
            confidence=self.space.confidence,
            entries=tuple(entries),
            winner=winner.name,
            today=field.today.name,
            held_out=held,
            looks=tuple(came.looks),
            needed=self._needed(came, entries, measure.name),
            seen=self.space.margin or _SMALLEST_GAP,
            left_out=dict(field.left_out),
            screened=screened,
            constraints=tuple(map(constraint_text, self.space.constraints)),
        )

    def _entry(
        self, candidate: Contender, came: RaceResult, titles: Mapping[str, str], cluster: Mapping[str, int]
    ) -> Entry:
        values, gone = came.values.get(candidate.name, Values()), came.left.get(candidate.name)
        known = [name for name in self.space.measures if values.of.get(name)]
        varied = {*(each.name for each in self.space.parameters), *candidate.spec.by_name}
        return Entry(
            name=candidate.name,
            title=candidate.title,
            values={key: value for key, value in candidate.values.items() if key in varied},
            figures={name: figure_of(name, values.of[name], cluster) for name in known},
            context=values.mean_context,
            left_after=gone.after if gone else 0,
            aside_after=came.aside.get(candidate.name, 0),
            better=titles.get(gone.better, "") if gone else "",
            measure=gone.measure if gone else "",
            why=gone.why if gone else broken(self.space.constraints, values),
            failed=len(values.failed),
        )

    def _needed(self, came: RaceResult, entries: Sequence[Entry], measure: str) -> int:
        """Return how many questions a paired test needs to see the smallest difference that matters, with 80 %."""
        first, *others = [came.values[entry.name].of.get(measure, {}) for entry in entries if entry.name in came.values]
        spreads = []
        for other in others[:5]:
            both = [first[name] - other[name] for name in first if name in other]
            if len(both) > 1:
                spreads.append(clustered_spread_of(both))
        gap = self.space.margin or _SMALLEST_GAP
        # (1.96 + 0.84)² sd² / gap²: two-sided 5 %, power 80 %.
        return ceil((2.80 * max(spreads, default=0.0) / gap) ** 2)


def _about(name: str, group: Sequence[Case]) -> tuple[Case, ...]:
    measure = measure_named(name)
    return tuple(case for case in group if not measure.applies(case))


def _rank(entry: Entry, measure: str, lower: bool) -> tuple[bool, bool, bool, float, float]:
    """Sort those that stayed first, the best first; of equals the one that gives less to the model."""
    known = entry.figures.get(measure)
    value = known.value if known else (1.0 if lower else 0.0)
    return (
        bool(entry.left_after),
        bool(entry.why),
        bool(entry.aside_after),
        round(value if lower else -value, 9),
        entry.context,
    )


def _part(space: Space, share: float) -> float:
    """Return the confidence of claims that may take a share of the chance of a wrong one."""
    return 1 - (1 - space.confidence) * share


def _nobody(space: Space, entries: Sequence[Entry]) -> str:
    said = "; ".join(f"{entry.title}: {entry.why}" for entry in entries[:3] if entry.why)
    asked = ", ".join(map(constraint_text, space.constraints))
    return f"{space.where}: no configuration keeps to {asked}. {said}."


def check_tuned(file: Path, settings: Settings) -> None:
    """Make sure, before a race, that its result can be written to ``file`` and used as an experiment.

    Raises:
        SettingsError: the file is a folder, or its name is none for an experiment, or that of another one.
    """
    if file.is_dir():
        raise SettingsError(f"-o {file} is a folder. Name a file in it: -o {file / 'tuned.toml'}")
    check_name(file.stem, f"-o {file}")
    others = known_experiments(replace(settings, configurations=()))
    if file.stem in others:
        raise SettingsError(f"-o {file}: {file.stem!r} is the name of an experiment that there is. Choose another.")


def write_tuned(file: Path, outcome: RaceOutcome, winner: Contender) -> None:
    """Write ``file``. All values are written out, so that it stays what it is where options change."""
    lines = [*_comments(outcome, file), *_content(winner)]
    write_atomically(file, "".join(f"{line}\n" for line in lines).encode())


def _comments(outcome: RaceOutcome, file: Path) -> Iterator[str]:
    said = f"Found by rag-harness tune {outcome.space}. An experiment: pytest --rag-config={file.name}"
    for sentence in (said, *sentences(outcome)):
        yield f"# {_on_one_line(sentence)}"


def _on_one_line(text: str) -> str:
    """Return a text as a comment may have it: TOML allows no control characters in it."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def _content(winner: Contender) -> Iterator[str]:
    if winner.spec.experiment:
        yield f"experiment = {_toml(winner.spec.experiment)}"
    yield ""
    yield "[parameters]"
    values = winner.spec.by_name if winner.spec.experiment else winner.values
    for name, value in sorted(values.items()):
        yield f"{_key(name)} = {_toml(value)}"


def _key(name: str) -> str:
    # In quotes a dot parts no tables, so "body.values" stays one name.
    return name if name.isascii() and name.isidentifier() else _toml(name)


def _toml(value: ParameterValue) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    # A text of JSON is one of TOML, too, as long as no character is written as two.
    # It allows every character of JSON but one.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f") if isinstance(value, str) else repr(value)


# Makes a space of the causes of a run: what is tried is what its failures ask for, and a comment says why.

_MISS, _LOGIC = "Retrieval Miss", "Logic Failure"
_NOT_FOUND, _BELOW, _CUT = (_MISS, "not found"), (_MISS, "found but ranked below k"), (_MISS, "cut by a chunk border")
_WITHOUT, _RERANKED = (_MISS, "the page came without the passage"), (_MISS, "lost in reranking")
_DISTRACTED, _UNREAD = (_LOGIC, "distracted"), (_LOGIC, "not read where it stood")


class _RequestedParameter(NamedTuple):
    """A parameter, and the causes that ask for it."""

    name: str
    causes: tuple[tuple[str, str], ...]


_ASKED = (
    _RequestedParameter("retriever", (_NOT_FOUND,)),
    _RequestedParameter("chunk_size", (_NOT_FOUND, _CUT, _WITHOUT)),
    _RequestedParameter("chunk_overlap", (_CUT,)),
    _RequestedParameter("rerank", (_BELOW, _RERANKED, _DISTRACTED, _UNREAD)),
    _RequestedParameter("candidates", (_BELOW, _RERANKED)),
    _RequestedParameter("top_k", (_BELOW, _RERANKED, _DISTRACTED, _UNREAD)),
)
_MORE, _FEWER = {_BELOW, _RERANKED}, {_DISTRACTED, _UNREAD}


def suggest_space(output: Path, file: Path, schema: Path | None = None) -> int:
    """Write a space for the causes of the run in ``output``; return the number of trials that ask for something.

    ``schema`` is the file by which editors complete a space; the written one begins with it.

    Raises:
        SettingsError: the file is there already.
        DataError: nobody has looked for the causes, or none of them is of what a configuration changes.
    """
    if file.exists():
        raise SettingsError(f"{file} is there already. Name another file: -o space.toml")
    settings = read_manifest(output).settings
    if not (output / CAUSES).is_file():
        raise DataError(
            f"{output / CAUSES} is not there: why trials of this run failed was not looked into. Run it with "
            f"--rag-attribute, or rag-harness explain {output}."
        )
    lines = read_causes(output)
    known = Counter((line.reviewed_cause or line.cause, line.detail) for line in lines)
    wanted = {cause for each in _ASKED for cause in each.causes if known[cause]}
    if not wanted:
        found = ", ".join(f"{n} of {_said(cause)}" for cause, n in known.most_common(3)) or "no trial failed"
        raise DataError(
            f"{output}: none of its {len(lines)} causes is of what a configuration changes ({found}). "
            f"What to do about them: rag-harness explain {output}."
        )
    completed = [f"#:schema {_from_beside(schema, file)}"] if schema is not None else []
    text = "".join(f"{line}\n" for line in [*completed, *_suggested_space(output, lines, known, settings)])
    write_atomically(file, text.encode())
    return sum(known[cause] for cause in wanted)


def _from_beside(schema: Path, file: Path) -> str:
    """Return the path of a schema as it is seen from a file."""
    found = Path(relpath(schema, file.parent)).as_posix()
    return found if found.startswith("..") else f"./{found}"


def _suggested_space(
    output: Path, lines: Iterable[CauseLine], known: Mapping[tuple[str, str], int], settings: Mapping[str, Any]
) -> Iterator[str]:
    names = ", ".join(dict.fromkeys(line.experiment for line in lines))
    yield f"# {escaped(f'Suggested by rag-harness tune --suggest {output}: by why trials of {names} failed.')}"
    yield 'objective = "evidence_recall"'
    yield ""
    yield "[parameters]"
    for each in _ASKED:
        causes = [cause for cause in each.causes if known[cause]]
        if causes:
            yield f"# {'; '.join(f'{_trials(known[cause])} {_said(cause)}' for cause in causes)}"
            yield f"{each.name} = {_values(each.name, set(causes), settings)}"


def _values(name: str, causes: set[tuple[str, str]], settings: Mapping[str, Any]) -> str:
    """Return the values of a parameter as TOML: today's, and those that the causes ask for."""
    defaults = load_settings({}, {})
    of_run = {key: settings.get(key) or getattr(defaults, key) for key in ("chunk_size", "top_k", "candidates")}
    size, top, deep = (int(of_run[key]) for key in ("chunk_size", "top_k", "candidates"))
    if name == "retriever":
        return '["dense", "bm25", "hybrid"]'
    if name == "rerank":
        return "[false, true]"
    if name == "chunk_size":
        return _listed([size, 2 * size, *([size // 2] if _NOT_FOUND in causes else [])])
    if name == "chunk_overlap":
        return _listed([int(settings.get("chunk_overlap") or 0), size // 8, size // 4])
    if name == "candidates":
        return f"{{ values = {_listed([deep, 2 * deep])}, if = {{ rerank = true }} }}"
    more, fewer = [2 * top] if causes & _MORE else [], [max(1, top // 2)] if causes & _FEWER else []
    return _listed([top, *more, *fewer])


def _listed(values: Iterable[int]) -> str:
    return f"[{', '.join(map(str, sorted(set(values))))}]"


def _trials(count: int) -> str:
    return "1 trial:" if count == 1 else f"{count} trials:"


def _said(cause: tuple[str, str]) -> str:
    return ", ".join(filter(None, cause))
