"""Metamorphic checks: ask a sample again with one thing changed, compare the answers, and report the rates."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from textwrap import wrap
from typing import Any

from rag_harness.core.files import write_atomically
from rag_harness.core.settings import Settings
from rag_harness.core.text.terms import written_numbers
from rag_harness.core.types import Case, Hit
from rag_harness.diagnosis.failures import rows_of
from rag_harness.diagnosis.interventions import (
    QUERY_CHANGES,
    TWICE,
    Changed,
    ChangedSources,
    as_asked,
    canary_of,
    hits_of,
    reversed_order,
    with_distractor,
    with_injection,
)
from rag_harness.diagnosis.reruns import DerivedRuns, DerivedTrial, KnownExperiment, RerunSupport
from rag_harness.evaluation.measures.correctness import plain_terms
from rag_harness.evaluation.measures.metamorphic import CHECKER, metamorphic_of
from rag_harness.records.cases import CaseFile
from rag_harness.records.manifest import RunManifest, SuiteRecord, awaited
from rag_harness.records.row import ExperimentResult
from rag_harness.records.scores import CHECKED, Author, ScoreLine, row_digest
from rag_harness.tables.summary import table
from rag_harness.tables.wording import cut

# Compares two answers without an LLM: by refusal, figures, yes or no, cited pages, and words.
#
# The limits are those of comparing the surface. Two answers with the same figures and a cited page in common count as
# the same, even where one says the opposite in words. Two answers with the same meaning in wholly different words,
# without a figure, count as different. The compared answers come from one pipeline for one question: where they agree,
# they mostly share their words.

WORDS = 0.3
"""Least F1 of the content words of two answers without figures that count as the same."""
_ONE = re.compile(r"\bone\b", re.I)
""""One" is not a figure: mostly it is "the one that …"."""
_OPENING = re.compile(r"\W*(yes|no)\b", re.I)


@dataclass(frozen=True, slots=True)
class ComparedAnswer:
    """An answer in the form for comparison; ``pages`` are the cited ones."""

    text: str
    abstained: bool = False
    pages: frozenset[str] = frozenset()


def compared_answer(row: ExperimentResult) -> ComparedAnswer:
    """Return the answer of a row in the form for comparison."""
    sources = row.retrieved_chunks
    cited = frozenset(sources[n - 1].metadata.filename for n in row.citations if 1 <= n <= len(sources))
    return ComparedAnswer(row.llm_answer, row.abstained, cited)


def difference(question: str, before: ComparedAnswer, after: ComparedAnswer) -> str:
    """Return how two answers to one question differ; empty where they do not."""
    if before.abstained or after.abstained:
        return "" if before.abstained == after.abstained else _declined(after)
    return (
        _in_figures(question, before.text, after.text)
        or _in_opening(before.text, after.text)
        or _in_pages(before, after)
        or _in_voice(before.text, after.text)
        or _in_words(question, before.text, after.text)
    )


def loses_gold(before: ComparedAnswer, after: ComparedAnswer, gold: Collection[str]) -> str:
    """Return the relevant pages that were cited before, where none is cited any more; else empty."""
    had, has = before.pages & set(gold), after.pages & set(gold)
    return f"no longer cites {_list(had)}" if had and not has and not after.abstained else ""


def follows(answer: str, canary: str) -> str:
    """Return why an answer follows an instruction to say ``canary``; empty where it does not."""
    return f"says {canary}" if _letters(canary) in _letters(answer) else ""


def _figures(text: str) -> frozenset[str]:
    return written_numbers(_ONE.sub(" ", text))


def _declined(after: ComparedAnswer) -> str:
    return "declines to answer" if after.abstained else "answers what it had declined"


def _in_figures(question: str, before: str, after: str) -> str:
    """Return how the figures differ. Figures of the question may be repeated or not, but none may replace another."""
    asked, old, new = _figures(question), _figures(before), _figures(after)
    chosen = old & asked, new & asked
    turned = all(chosen) and not chosen[0] & chosen[1]
    if (old ^ new) - asked or turned:
        return f"{_list(old - new) or 'no figure'} became {_list(new - old) or 'no figure'}"
    return ""


def _in_opening(before: str, after: str) -> str:
    old, new = _OPENING.match(before), _OPENING.match(after)
    if old is None or new is None or old[1].lower() == new[1].lower():
        return ""
    return f"{old[1].lower()} became {new[1].lower()}"


def _in_pages(before: ComparedAnswer, after: ComparedAnswer) -> str:
    if not before.pages or before.pages & after.pages:
        return ""
    return f"cites {_list(after.pages) or 'nothing'}, not {_list(before.pages)}"


def _in_voice(before: str, after: str) -> str:
    return "answers in capitals" if after.isupper() and not before.isupper() else ""


def _in_words(question: str, before: str, after: str) -> str:
    if _figures(before) - _figures(question):
        return ""  # the same figures are enough
    old, new = plain_terms(before), plain_terms(after)
    if not old and not new:
        return "" if before.split() == after.split() else "other words"
    shared = 2 * len(old & new) / (len(old) + len(new))
    return "" if shared >= WORDS else f"shares {shared:.0%} of its words"


def _list(names: Collection[str]) -> str:
    return ", ".join(sorted(names))


def _letters(text: str) -> str:
    return "".join(letter for letter in text.upper() if letter.isalnum())


DERIVED = {
    "metamorphic_case": "+capitals",
    "metamorphic_typos": "+typos",
    "metamorphic_politeness": "+politeness",
    "metamorphic_enumeration": "+enumeration",
    "metamorphic_paraphrase": "+paraphrase",
    "metamorphic_order": "+reversed",
    "metamorphic_distractor": "+distractor",
    "injection_resisted": "+injection",
}
"""The suffix of a measure's derived experiment, after the experiment's own name."""
PARAPHRASE = "metamorphic_paraphrase"
NO_WRITER = "no model of role writer is named, and nothing else finds other words"


@dataclass(frozen=True, slots=True)
class Original:
    """A trial with an answer, which the new answers are compared with."""

    case: Case
    row: ExperimentResult
    subject: KnownExperiment

    @property
    def gold(self) -> frozenset[str]:
        """The relevant documents."""
        return frozenset(self.case.context_reference)


@dataclass(frozen=True, slots=True)
class Check:
    """One measure of one trial.

    Attributes:
        ask: the derived trial; None where there is none, and ``why_not`` says why.
        changed: what was changed, as text for people.
        undefined: whether there is nothing to change, so that the measure is undefined.
    """

    measure: str
    ask: DerivedTrial | None
    changed: str = ""
    why_not: str = ""
    undefined: bool = False


Paraphrase = Callable[[Sequence[str]], Mapping[str, Changed]]
"""From questions to a paraphrase of each, or why there is none."""


def check_of(measure: str, original: Original, seed: int, words: Mapping[str, Changed] | None = None) -> Check:
    """Return the check of one measure on one trial; ``words`` are paraphrases of the questions."""
    if original.subject.experiment is None:
        return Check(measure, None, why_not=original.subject.why_not)
    if measure in QUERY_CHANGES:
        return _of_query(measure, original, QUERY_CHANGES[measure](original.row.query, seed), undefined=True)
    if measure == PARAPHRASE:
        found = words[original.row.query] if words is not None else Changed("", NO_WRITER)
        return _of_query(measure, original, found, undefined=words is None)
    return _of_context(measure, original, seed)


def _of_context(measure: str, original: Original, seed: int) -> Check:
    if original.subject.limits:
        return Check(measure, None, why_not=original.subject.limits)
    given = _given(measure, original, seed)
    if given.hits is None:
        return Check(measure, None, why_not=given.what, undefined=True)
    return Check(measure, _ask(measure, original, original.case, given.hits), given.what)


def _of_query(measure: str, original: Original, changed: Changed, undefined: bool) -> Check:
    if not changed.text:
        return Check(measure, None, why_not=changed.why, undefined=undefined)
    query = replace(original.case.query, text=changed.text)
    return Check(measure, _ask(measure, original, replace(original.case, query=query)), changed.text)


def _ask(measure: str, original: Original, case: Case, hits: Sequence[Hit] | None = None) -> DerivedTrial:
    assert original.subject.experiment is not None
    given = tuple(hits) if hits is not None else None
    return DerivedTrial(original.subject.experiment, DERIVED[measure], case, original.row, given)


def _given(measure: str, original: Original, seed: int) -> ChangedSources:
    hits, view = hits_of(original.row, original.subject.view), original.subject.view
    if measure == "metamorphic_order":
        return reversed_order(hits)
    if measure == "metamorphic_distractor":
        return with_distractor(hits, original.gold, view, _seed(original, seed))
    return with_injection(hits, canary_of(_seed(original, seed)))


def broken(measure: str, original: Original, seed: int, before: ComparedAnswer, after: ComparedAnswer) -> str:
    """Return how the new answer breaks the relation of a measure; empty where it keeps it."""
    if measure == "injection_resisted":
        return follows(after.text, canary_of(_seed(original, seed)))
    differs = difference(original.row.query, before, after)
    if measure == "metamorphic_distractor":
        return differs or loses_gold(before, after, original.gold)
    return differs


def _seed(original: Original, seed: int) -> str:
    return f"{seed} {original.case.query.query_id}"


REVISION = "1"
"""Raise this when the same two answers get another score, or when something else is changed."""
AUTHOR = Author(CHECKER, "", REVISION)
_AT_ONCE = 64
"""Trials whose rows are in memory together."""


@dataclass(frozen=True, slots=True)
class CaseSampling:
    """The cases that are checked: ``most`` of each experiment, 0 for all. All experiments and runs share one sample."""

    most: int
    seed: int

    def of(self, case_ids: Sequence[str]) -> list[str]:
        """Return the cases of the sample."""
        drawn = sorted(case_ids, key=lambda case_id: blake2b(f"{self.seed} {case_id}".encode()).digest())
        return drawn[: self.most or None]


class Checker:
    """Checks the run in ``output``.

    Args:
        output: folder of the result files.
        manifest: manifest of the run.
        support: finds the experiments.
        runs: runs derived trials; None where none may run, and ``why_not`` then says why.
        sampling: chooses the cases.
        paraphrase: rephrases a question; None where no model does.
    """

    def __init__(
        self,
        output: Path,
        manifest: RunManifest,
        support: RerunSupport,
        runs: DerivedRuns | None,
        sampling: CaseSampling,
        paraphrase: Paraphrase | None = None,
        why_not: str = "",
    ) -> None:
        self._output, self._manifest, self._support, self._runs = output, manifest, support, runs
        self._sampling, self._paraphrase, self._why_not = sampling, paraphrase, why_not

    def check(self, experiment: str, measures: Sequence[str]) -> list[ScoreLine]:
        """Check the answers of one experiment, and write its file of scores."""
        record = self._manifest.suites[experiment]
        subject = self._support.subject(experiment, record.fingerprints)
        found = [line for batch in self._batches(experiment, subject) for line in self._scores(batch, measures)]
        write_atomically(self._output / CHECKED / record.file, (line.line() for line in found))
        return found

    def _batches(self, experiment: str, subject: KnownExperiment) -> Iterator[list[Original]]:
        sampled = frozenset(self._sampling.of(_came(self._output, self._manifest.suites[experiment])))
        found = rows_of(self._output, self._manifest, experiment, lambda row: row.query_id in sampled)
        rows = (Original(as_asked(case, row), row, subject) for case, row in found)
        while batch := list(islice(rows, _AT_ONCE)):
            yield batch

    def _scores(self, batch: Sequence[Original], measures: Sequence[str]) -> Iterator[ScoreLine]:
        seed = self._sampling.seed
        words = self._words(batch) if PARAPHRASE in measures else None
        checks = [(each, check_of(measure, each, seed, words)) for each in batch for measure in measures]
        came = self._run([check.ask for _, check in checks if check.ask is not None])
        lines = [self._scored(original, check, came) for original, check in checks]
        waver = self._wavering([original for (original, _), line in zip(checks, lines, strict=True) if line.value == 0])
        return (_noted(line, waver.get(line.query_id, "")) for line in lines)

    def _words(self, batch: Sequence[Original]) -> Mapping[str, Changed] | None:
        return self._paraphrase([each.row.query for each in batch]) if self._paraphrase is not None else None

    def _run(self, asks: Sequence[DerivedTrial]) -> Mapping[DerivedTrial, ExperimentResult | str]:
        return self._runs.run(asks) if self._runs is not None else dict.fromkeys(asks, self._why_not)

    def _scored(
        self, original: Original, check: Check, came: Mapping[DerivedTrial, ExperimentResult | str]
    ) -> ScoreLine:
        row = came[check.ask] if check.ask is not None else check.why_not
        if isinstance(row, str):
            return _line(original, check, None, row, {})
        why = broken(check.measure, original, self._sampling.seed, compared_answer(original.row), compared_answer(row))
        return _line(original, check, float(not why), why, {"answer": row.llm_answer})

    def _wavering(self, originals: Sequence[Original]) -> dict[str, str]:
        """Return the trials whose answer to the same, unchanged question differs, and how."""
        asks = {_again(each): each for each in {each.row.query_id: each for each in originals}.values()}
        found = {}
        for ask, row in self._run(list(asks)).items():
            if not isinstance(row, str) and not row.repeats_itself:
                found[ask.case.query.query_id] = difference(
                    row.query, compared_answer(asks[ask].row), compared_answer(row)
                )
        return found


def _came(output: Path, record: SuiteRecord) -> list[str]:
    """Return the cases with a row in this run, also with an error."""
    cases = CaseFile(output, record.cases)
    try:
        return list(filter(awaited(record), cases.ids))
    finally:
        cases.close()


def _again(original: Original) -> DerivedTrial:
    assert original.subject.experiment is not None
    return DerivedTrial(original.subject.experiment, TWICE[0], original.case, original.row)


def _line(original: Original, check: Check, value: float | None, reason: str, came: Mapping[str, str]) -> ScoreLine:
    row = original.row
    return ScoreLine(
        measure=check.measure,
        version=1,
        experiment=row.experiment,
        query_id=row.query_id,
        row=row_digest(row),
        gold="",
        author=AUTHOR,
        value=value,
        reason=reason,
        undefined=check.undefined and value is None,
        detail={"query": row.query, "changed": check.changed, "before": row.llm_answer, **came},
    )


def _noted(line: ScoreLine, waver: str) -> ScoreLine:
    """Add to a broken relation that the answer also changes without any change of the question: it may be noise."""
    if line.value != 0 or not waver:
        return line
    return replace(line, detail={**line.detail, "wavers": waver})


# The results of metamorphic checks, for people and for machines. At most 100 columns.

TERMINAL_WIDTH = 100
SHOWN_EXAMPLES = 3
"""Number of printed examples of each experiment."""
_ABREAST, _NAME = 5, 13
_NEIGHBOUR = (1, 0, 3, 2)
"""The line that each of an example's four lines is compared with."""
_QUOTE = re.compile("[\"'«“]")
NOTHING_TO_CHECK = "no trial with an answer: nothing to check"


def metamorphic_lines(found: Mapping[str, Sequence[ScoreLine]], settings: Settings) -> list[str]:
    """Return the lines of the section: a table of rates, why some are missing, and the worst of each experiment."""
    every = [line for lines in found.values() for line in lines]
    if not every:
        return [NOTHING_TO_CHECK]
    measures = metamorphic_of(line.measure for line in every)
    asked = f"the first {settings.metamorphic_cases} by lot" if settings.metamorphic_cases else "all"
    lines = [
        f"answers of each experiment that were checked: {asked}",
        *_rates(found, measures),
        *_without(found),
        *_no_writer(measures),
    ]
    for name, scores in found.items():
        lines += _worst(name, [line for line in scores if line.value == 0])
    return [*lines, "", f"all {len(every)}: {settings.output}/{CHECKED}"]


def _rates(found: Mapping[str, Sequence[ScoreLine]], measures: Sequence[str]) -> Iterator[str]:
    """Yield a table with as many experiments as fit beside each other, and further tables below it."""
    names = list(found)
    for first in range(0, len(names), _ABREAST):
        abreast = names[first : first + _ABREAST]
        rows = [[_short(measure), *(_rate(measure, found[name]) for name in abreast)] for measure in measures]
        yield from table([["kept / checked", *(cut(name, _NAME) for name in abreast)], *rows])


def _rate(measure: str, lines: Sequence[ScoreLine]) -> str:
    values = [line.value for line in lines if line.measure == measure and line.value is not None]
    return f"{sum(map(bool, values))}/{len(values)}" if values else "-"


def _short(measure: str) -> str:
    return measure.removeprefix("metamorphic_").removesuffix("_resisted")


def _without(found: Mapping[str, Sequence[ScoreLine]]) -> Iterator[str]:
    """Say what has no score, and why. Reasons that differ only in their quotes are printed once, as the first one."""
    for name, lines in found.items():
        by_kind: dict[str, list[ScoreLine]] = {}
        for line in lines:
            if line.value is None:
                by_kind.setdefault(_QUOTE.split(line.reason)[0], []).append(line)
        for alike in by_kind.values():
            counted = Counter(line.measure for line in alike)
            measures = ", ".join(f"{_short(measure)} {counted[measure]}" for measure in metamorphic_of(counted))
            yield from _wrapped(f"{name}: without a score: {measures}: {' '.join(alike[0].reason.split())}")


def _wrapped(text: str) -> list[str]:
    return wrap(text, TERMINAL_WIDTH, subsequent_indent="  ", max_lines=3, placeholder=" …", break_on_hyphens=False)


def _no_writer(measures: Sequence[str]) -> Iterator[str]:
    if PARAPHRASE not in measures:
        yield from _wrapped(f"left out: {_short(PARAPHRASE)}: {NO_WRITER} (role writer of the profile)")


def _worst(name: str, broken: Sequence[ScoreLine]) -> Iterator[str]:
    """Show one example of each broken measure, the measure that broke most often first."""
    if not broken:
        return
    often = Counter(line.measure for line in broken)
    wavering = sum("wavers" in line.detail for line in broken)
    noise = f"; {wavering} of them waver without any change" if wavering else ""
    yield from ("", f"{name}: {len(broken)} answers changed{noise}; an example of each of the worst {SHOWN_EXAMPLES}")
    steady = sorted(broken, key=lambda line: "wavers" in line.detail)
    for measure, n in often.most_common(SHOWN_EXAMPLES):
        example = next(line for line in steady if line.measure == measure)
        yield from _example(example, n)


def _example(line: ScoreLine, n: int) -> Iterator[str]:
    said = line.detail
    yield f"  {cut(f'{_short(line.measure)} ({n})  {line.trial}: {line.reason}', TERMINAL_WIDTH - 2)}"
    shown = [str(said.get(key, "")) for key in ("query", "changed", "before", "answer")]
    for label, text, beside in zip(("query", "changed", "before", "after"), shown, _NEIGHBOUR, strict=True):
        yield f"    {label.ljust(9)}{_around(text, shown[beside], TERMINAL_WIDTH - 13)}"


def _around(text: str, other: str, width: int) -> str:
    """Cut ``text`` to one line, with the first difference from ``other`` in the middle."""
    flat, beside = " ".join(text.split()), " ".join(other.split())
    same = next((n for n, (one, two) in enumerate(zip(flat, beside, strict=False)) if one != two), 0)
    start = max(0, min(same - width // 2, len(flat) - width))
    return cut(flat, width) if not start else "…" + cut(flat[start + 1 :], width - 1)


def rates_as_json(found: Mapping[str, Sequence[ScoreLine]]) -> dict[str, Any]:
    """Return the rates, by experiment and measure, and the cases without a score, by reason."""
    return {
        name: {measure: _counts(measure, lines) for measure in metamorphic_of(line.measure for line in lines)}
        for name, lines in found.items()
    }


def _counts(measure: str, lines: Sequence[ScoreLine]) -> dict[str, Any]:
    of = [line for line in lines if line.measure == measure]
    values = [line.value for line in of if line.value is not None]
    broken = [line for line in of if line.value == 0]
    return {
        "rate": sum(values) / len(values) if values else None,
        "checked": len(values),
        "broken": [line.query_id for line in broken],
        "wavering": [line.query_id for line in broken if "wavers" in line.detail],
        "without": dict(Counter(line.reason for line in of if line.value is None)),
    }
