"""Notes at the end of a run: errors, unreviewed questions, retries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rag_harness.core.types import GOLDEN
from rag_harness.frontends.pytest_plugin.repeats import run_again_lines
from rag_harness.frontends.pytest_plugin.trial_report import not_run_lines, skipped_lines
from rag_harness.tables.answer_warnings import doubts, error_lines
from rag_harness.tables.wording import counted

if TYPE_CHECKING:
    from rag_harness.core.settings import Settings
    from rag_harness.data.datasets import Data
    from rag_harness.frontends.pytest_plugin.recorder import Recorder
    from rag_harness.frontends.pytest_plugin.run_record import RunFindings
    from rag_harness.frontends.pytest_plugin.session import RunCases
    from rag_harness.runs.gates.grammar import Gate
    from rag_harness.tables.noise import Noise
    from rag_harness.tables.suite_table import SuiteTable


_FOUND = "recall@5"


def experiments_of(findings: RunFindings) -> Mapping[str, SuiteTable]:
    """Return the tables of the suites that answer, by name."""
    return {name: table for name, table in findings.tables.items() if name != GOLDEN}


def errors_said(findings: RunFindings, settings: Settings) -> Iterator[str]:
    """Yield the first errors that differ, each once with its number, and how many more there are."""
    lines, more = error_lines(experiments_of(findings).values())
    yield from lines
    if more > 0:
        yield f"… and {more} more error{'s' * (more != 1)}, in {settings.output}/ and {settings.logs}/"


def remarks_said(findings: RunFindings, recorder: Recorder, settings: Settings, cases: RunCases) -> Iterator[str]:
    """Yield what is to be known of the rows: drafts, contexts without a document, trials not run, rows set aside."""
    tables = experiments_of(findings)
    yield from (*_stands_in(settings), *_unchecked(tables, cases), *_twice(tables, cases), *_skipped(findings))
    yield from (*_drafts(findings, settings, cases), *_placed(tables), *doubts(tables), *_settled(findings))
    yield from (said for name, each in findings.played.items() for said in each.lines(name))
    yield from _became_of_rows(recorder, tables, settings)
    yield from (*skipped_lines(findings.manifest.suites), *run_again_lines(recorder.run_again))
    yield from _stopped(findings, recorder)


def verdict_remarks(findings: RunFindings, recorder: Recorder, settings: Settings, cases: RunCases) -> Iterator[str]:
    """Yield those of them without which a verdict is misread: what it does not count, counts twice, or cannot see."""
    tables = experiments_of(findings)
    yield from (*_stands_in(settings), *_without_named_page(tables, cases), *_twice(tables, cases))
    yield from _skipped(findings)
    yield from _drafts(findings, settings, cases) if not settings.gate_unreviewed else ()
    yield from (*_placed(tables, only_missed=True), *doubts(tables), *_lost(tables))
    yield from (*skipped_lines(findings.manifest.suites), *run_again_lines(recorder.run_again))
    yield from (*not_run_lines(recorder.not_run.values()), *_stopped(findings, recorder))


def _stands_in(settings: Settings) -> Iterator[str]:
    """Say which other models a dry run has than those of its profile."""
    yield from filter(None, [settings.stands_in])


def _unchecked(tables: Mapping[str, SuiteTable], cases: RunCases) -> Iterator[str]:
    """Say that pages which questions name may be misspelt, where no folder of documents says which there are."""
    for folder in dict.fromkeys(data.folder for data in _taken_as_named(tables, cases).values()):
        said = "pages in context_reference are taken as written, and a context has to name its page to be found"
        yield f"no folder {folder}: {said}. --rag-kb=DIR checks the names, and finds contexts without one by their text"
    yield from _without_named_page(tables, cases)


def _taken_as_named(tables: Iterable[str], cases: RunCases) -> Mapping[str, Data]:
    of = {name: cases.data.get(cases.data_of(name)) for name in tables}
    return {name: data for name, data in of.items() if data.takes_pages_as_named}


def _without_named_page(tables: Mapping[str, SuiteTable], cases: RunCases) -> Iterator[str]:
    """Say of which experiments no context names a page that a question names, letter by letter."""
    for name in _taken_as_named(tables, cases):
        table = tables[name]
        found = table.values(_FOUND, {}) if table.has(_FOUND) and table.totals.depth else {}
        if found and not any(found.values()):
            yield f"{name}: no context names a page of context_reference; a name has to be the same letter by letter"


def _twice(tables: Mapping[str, SuiteTable], cases: RunCases) -> Iterator[str]:
    """Say how many questions of each data ask what another asks, in the same words and with the same inputs."""
    for name in sorted({cases.data_of(name) for name in tables}):
        first, again, read = dict[str, str](), list[str](), cases.data.get(name).cases
        for query in (case.query for case in read):
            asked = f"{' '.join(query.text.casefold().split())} {query.inputs!r}"
            if asked in first:
                again.append(f"{query.query_id} as {first[asked]}")
            first.setdefault(asked, query.query_id)
        if again:
            yield (
                f"{len(again):,} of {counted(len(read), 'question')} {'asks' if len(again) == 1 else 'ask'} what "
                f"another asks, in the same words (the first: {again[0]}). Intervals and gates count each as one more "
                "question"
            )


def _drafts(findings: RunFindings, settings: Settings, cases: RunCases) -> Iterator[str]:
    """Say how many questions nobody has reviewed, and how that is done."""
    from rag_harness.frontends.pytest_plugin.gates import how_reviewed
    from rag_harness.tables.answer_warnings import draft_lines

    review = how_reviewed(settings, cases)
    no_gate = "" if settings.gate_unreviewed else ", and gates leave them out"
    for name, table in sorted(findings.tables.items()):
        yield from (f"{line}{no_gate}: {review(name)}" for line in draft_lines({name: table}))


def _skipped(findings: RunFindings) -> Iterator[str]:
    """Say which questions could not be read and were left out."""
    for lines in findings.manifest.skipped.values():
        yield f"{lines.said}: no figure and no gate is about these questions. The log says why of each."


def _placed(tables: Mapping[str, SuiteTable], only_missed: bool = False) -> Iterator[str]:
    """Say how the documents behind a service's contexts were found; ``only_missed``: where some were not."""
    found = {name: table.totals.placed for name, table in sorted(tables.items()) if table.totals.placed}
    if not found:
        return
    from rag_harness.pipelines.endpoint.answer import BY_ID, BY_NAME, BY_NOTHING, BY_TEXT, NO_TEXT, OTHER_TEXT

    ways = {BY_ID: "id", BY_TEXT: "text", BY_NAME: "the name they tell", BY_NOTHING: "nothing"}
    for name, placed in found.items():
        if only_missed and not placed[BY_NOTHING]:
            continue
        # Whether an id's document has the words of the context is told by itself.
        counts = {**placed, BY_ID: sum(placed[how] for how in (BY_ID, NO_TEXT, OTHER_TEXT))}
        said = ", ".join(f"{counts[how]:,} by {way}" for how, way in ways.items() if counts.get(how))
        hint = "; those count as misses unless they have a quote of the gold" if placed[BY_NOTHING] else ""
        yield f"contexts of {name}: {said}{hint}"


def _settled(findings: RunFindings) -> Iterator[str]:
    left = {name: len(suite.settled) for name, suite in findings.manifest.suites.items() if suite.settled}
    for name, n in sorted(left.items()):
        yield (
            f"not run: {counted(n, 'trial')} of {name}, whose gates had their verdicts. "
            "A run without --rag-stop-early asks all."
        )


def _lost(tables: Mapping[str, SuiteTable]) -> Iterator[str]:
    """Say how many trials have no row, and how gates count them."""
    lost = sum(table.lost_of({}) for table in tables.values())
    if lost:
        trials = "1 trial was selected and has" if lost == 1 else f"{lost} trials were selected and have"
        yield f"{trials} no row, lost to a crash, say; every measure counts the worst."


def _became_of_rows(recorder: Recorder, tables: Mapping[str, SuiteTable], settings: Settings) -> Iterator[str]:
    yield from _lost(tables)
    if recorder.set_aside:
        rows = f"{counted(recorder.set_aside, 'row')} of an earlier run {_were(recorder.set_aside)}"
        yield f"{rows} moved to {settings.output}/previous/."
    if recorder.repaired:
        lines = f"{counted(recorder.repaired, 'damaged or duplicate line')} {_were(recorder.repaired)}"
        yield f"{lines} taken out of the result files, into {settings.output}/previous/."
    if recorder.adopted and recorder.adopted.rows:
        rows = f"{counted(recorder.adopted.rows, 'trial')} that a cut-off run had finished"
        yield f"{rows} {_were(recorder.adopted.rows)} reused from its journal."
    yield from not_run_lines(recorder.not_run.values())
    yield from _unrecorded(recorder)
    for address, number in sorted(recorder.broken_exports.items()):
        broke = f"{counted(number, 'request')} with spans to {address} broke off before {_it(number)} whole"
        yield f"{broke}: the exporter hung up, or waited too long. Give it more time: OTEL_EXPORTER_OTLP_TIMEOUT."


def _it(n: int) -> str:
    return "it was" if n == 1 else "they were"


def _unrecorded(recorder: Recorder) -> Iterator[str]:
    from rag_harness.models.recording.patches import unrecorded_said

    for name, counts in sorted(recorder.unrecorded.items()):
        said = unrecorded_said(counts)
        yield f"{name}: not recorded, so a replay makes them again or refuses them: {said}"


def _stopped(findings: RunFindings, recorder: Recorder) -> Iterator[str]:
    """Say how many trials were left untested because pytest was stopped."""
    left = sum(len(suite.not_run) for suite in findings.manifest.suites.values()) - len(recorder.not_run)
    if findings.manifest.stopped and left > 0:
        yield f"untested: {counted(left, 'trial')}; {findings.manifest.stopped}."


def _were(n: int) -> str:
    return "was" if n == 1 else "were"


def missing_said(noises: Sequence[Noise], output: str) -> Iterator[str]:
    """Yield how many answers after the first did not come, for each experiment that lacks some.

    Args:
        noises: what is known of the repeats.
        output: the folder of the run's files.
    """
    for noise in noises:
        if noise.missing:
            where = f"{output}/derived/{noise.experiment}+repeat2.jsonl"
            n = counted(noise.missing, "answer")
            yield f"{noise.experiment}: {n} after the first did not come; {where} and those beside it say why"


def first_answers_said(noises: Sequence[Noise], gates: Sequence[Gate]) -> Iterator[str]:
    """Yield which answers figures and gates are of, where there are several to a question."""
    most = max((noise.answers for noise in noises), default=1)
    on_answers = [gate for gate in gates if gate.suite != GOLDEN]
    if most < 2 or (on_answers and all(gate.over is not None for gate in on_answers)):
        return
    others = any(gate.over is not None for gate in on_answers)
    gated = ", and gates that are not promises over repeats," if others else " and gates" if on_answers else ""
    yield f"figures{gated} are of the first of {most} answers to a question; -v compares them"


def retries_said(tables: Mapping[str, SuiteTable]) -> Iterator[str]:
    """Yield how many tries after the first the calls of this run needed."""
    n = sum(table.totals.retries for name, table in tables.items() if name != GOLDEN)
    if n:
        yield "1 call was tried again" if n == 1 else f"calls were tried again {n:,} times"
