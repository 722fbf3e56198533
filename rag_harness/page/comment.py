"""The comment on a pull request: verdict, experiments, changes, worst trials, the race, and folded details."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from math import inf
from pathlib import Path
from typing import TypeAlias

from rag_harness.core.errors import DataError
from rag_harness.core.escaping import markdown_code_block, markdown_text
from rag_harness.core.types import GOLDEN, TrialId
from rag_harness.diagnosis.failures import suspects
from rag_harness.diagnosis.tuning.outcome import RaceOutcome, read_outcome
from rag_harness.diagnosis.tuning.outcome import sentences as outcome_sentences
from rag_harness.page.content import NONE, Code, Links, Room, below, table_rows
from rag_harness.page.run import SIGNS, Run, caveats, last_run_lines, run_outcome
from rag_harness.page.sections.comparison import HEAD, race_rows
from rag_harness.page.sections.first_screen import sureness_head
from rag_harness.page.sections.method import again
from rag_harness.records.scores import CauseLine
from rag_harness.runs.gates.verdict import bounds, told_apart, value_said
from rag_harness.tables.answer_warnings import WRONG, check_whole, provenance_lines, verdicts_of
from rag_harness.tables.brief import Brief, wrong_answers
from rag_harness.tables.brief_sentences import Sentence, first_sentences
from rag_harness.tables.comparison import Comparison, MeasureChange, compare, on_common_data, unit_named
from rag_harness.tables.comparison_lines import p_or_seen
from rag_harness.tables.gate_states import BAD, GateLine
from rag_harness.tables.golden_suite import GOLDEN_MEASURES
from rag_harness.tables.reader import SavedRun, check_as_written, load_saved_run
from rag_harness.tables.run_diff import RunDiff, assumed_said, run_diff, sentences, talks_said
from rag_harness.tables.standings import Lead
from rag_harness.tables.suite_table import SuiteTable
from rag_harness.tables.wording import counted


def verdict_line(brief: Brief, run: Run) -> str:
    """Return how the run came out, with what failed, and the number of gates of each verdict."""
    word, said = run_outcome(brief, run)
    return f"## {SIGNS[word]} {word}: {said}"


def run_line(brief: Brief, run: Run, room: Room) -> str:
    """Return what was run, how many questions were answered, by whom, and who judged."""
    found = brief.answered
    parts = [f"RAG evaluation of {room.first(list(brief.tables or run.selected)) or 'nothing: no trial was selected'}"]
    if found.asked:
        parts[0] += f": **{found.rows:,} of {found.asked:,} answered**"
    if brief.alone is not None:
        golden = brief.alone
        parts[0] += f": **{golden.found:,} of {counted(golden.asked, 'question')} found an expected document**"
        parts += [f"❌ {each}" for each in golden.broken]
    parts += [f"❌ {counted(found.errors, 'error')}"] if found.errors else []
    parts += [f"❌ {found.lost:,} without a result"] if found.lost else []
    parts += [room.short(", ".join(found.origins))] if found.origins else []
    parts += [f"by {room.short(' and '.join(found.authors))}"] if found.authors else []
    if brief.tables:
        parts.append(f"judged by {room.short(' and '.join(found.judges))}" if found.judges else "judged by nobody")
    return f"{'; '.join(parts)}."


def gate_lines(brief: Brief, run: Run, room: Room, links: Links) -> Iterator[str]:
    """Yield the gates that fail the run, then the undecided ones, as a table."""
    lines = [*brief.gates.failed, *brief.gates.undecided]
    if not lines:
        return
    to_do = {gate["gate"]: str(gate["otherwise"]) for gate in run.gates if gate.get("otherwise")}
    rows = [_row(line, to_do.get(line.condition, ""), room, links) for line in lines[: room.rows]]
    head = ("gate", "verdict", f"value, {sureness_head(run.gates)}", "why", "worst trial", "what to do")
    kept = [n for n in range(len(head)) if any(row[n] for row in rows)]
    yield from table_rows([head[n] for n in kept], [[row[n] for n in kept] for row in rows])
    if more := lines[room.rows :]:
        failed = sum(line.state in BAD for line in more)
        counts = f"{failed:,} failed, {len(more) - failed:,} undecided"
        yield from below(f"… and {counted(len(more), 'gate')} more: {counts}.")


def _row(line: GateLine, to_do: str, room: Room, links: Links) -> list[str]:
    is_bad = line.state in BAD
    verdict = f"❌ {line.state}" if is_bad else "❔ undecided"
    then = room.short(to_do if is_bad else f"if it does not hold: {to_do}") if to_do else ""
    worst = links.to(line.worst, room, in_table=True) if line.worst else ""
    return [room.named(line.condition, 2), verdict, room.short(line.figures), room.short(line.reason), worst, then]


# The table of experiments: what each finds, what it answers, how often it declines and is wrong.

_MEASURES = (
    *("recall@5", "evidence_recall", "context_precision", "answer_correctness", "nugget_recall", "token_f1"),
    *("factuality", "hri", "g_mean", "faithfulness", "answer_relevancy"),
)
_MOST_MEASURES = 6
_VERDICTS = ("wrong, 95 %", "declined", "wrongly declined")
_LEGEND = "Bold: the best mean. ★: surely better than all others (95 %)."


def experiment_lines(brief: Brief, run: Run, room: Room) -> Iterator[str]:
    """Yield a row for each experiment; those that are equal on every measure share a row."""
    tables = brief.tables or run.selected
    if not tables:
        return
    groups = [group for field in brief.fields for group in field.groups] or [[name] for name in tables]
    measures = _measures(brief, tables)
    shown = groups if len(groups) <= room.rows else _best_first(groups, brief)[: room.rows]
    rows = [_experiment_row(group, measures, brief, tables[group[0]], room) for group in shown]
    head = ["experiment", "answered", *_VERDICTS, *measures]
    # Of the golden suite, where nothing is answered, there are measures only.
    kept = [n for n, name in enumerate(head) if brief.tables or name not in ("answered", *_VERDICTS)]
    yield from table_rows([head[n] for n in kept], [[row[n] for n in kept] for row in rows])
    left = len(groups) - len(shown)
    more = f"… and {counted(left, 'experiment')} more. " if left else ""
    yield from below(f"{more}{_LEGEND if _leads(brief) else ''}".strip())


def _leads(brief: Brief) -> list[Lead]:
    return [lead for field in brief.fields for lead in field.leads if not lead.is_level]


def _measures(brief: Brief, tables: Mapping[str, SuiteTable]) -> list[str]:
    """Return the measures of the table: those that decide first."""
    # The measure of the cutoff comes first: it is the one that the sentences and most gates are about.
    known = dict.fromkeys([brief.alone.measure, *GOLDEN_MEASURES]) if brief.alone is not None else _MEASURES
    there = [name for name in known if any(found.has(name) for found in tables.values())]
    decide = [lead.standing.measure for lead in _leads(brief) if lead.standing.measure != WRONG]
    wanted = [*dict.fromkeys([*(name for name in decide if name in there), *there])][:_MOST_MEASURES]
    return [name for name in there if name in wanted]


def _best_first(groups: Sequence[Sequence[str]], brief: Brief) -> list[Sequence[str]]:
    """Return groups by the mean of the measure that is spoken of first, the best first."""
    lead = next((lead for lead in brief.fields[0].leads if not lead.is_level), None)
    if lead is None:
        return list(groups)
    measure, sign = lead.standing.measure, 1 if lead.standing.is_lower else -1

    def place(group: Sequence[str]) -> float:
        found = brief.tables[group[0]]
        mean = found.aggregate([measure])[measure] if found.has(measure) else None
        return inf if mean is None else sign * mean

    return sorted(groups, key=place)


def _experiment_row(
    group: Sequence[str], measures: Sequence[str], brief: Brief, found: SuiteTable, room: Room
) -> list[str]:
    best = {lead.standing.measure: lead for lead in _leads(brief) if group[0] in lead.best}
    cells = [_cell(found, name, name in best, name in best and best[name].is_sure) for name in measures]
    n = found.selected_of({})
    answered = f"{n - found.totals.errors - found.lost_of({}):,} of {n:,}"
    verdicts = verdicts_of(found)
    wrong, wrongly = (verdicts.share_said, f"{verdicts.declined:,}") if verdicts is not None else (NONE, NONE)
    names = " = ".join(room.named(name) for name in group[:3])
    more = f" = {len(group) - 3} more" if len(group) > 3 else ""
    return [f"{names}{more}", answered, markdown_text(wrong), f"{found.totals.abstained:,}", wrongly, *cells]


def _cell(found: SuiteTable, measure: str, is_best: bool, is_sure: bool) -> str:
    """Return the mean; of a best one the interval, too. A star says that it is surely the best."""
    mean = found.aggregate([measure])[measure] if found.has(measure) else None
    if mean is None:
        return NONE
    unit, between = found.columns[measure].measure.unit, found.interval(measure)
    said = value_said(mean, unit)
    if not is_best:
        return said
    return f"**{said}**{' ★' if is_sure else ''}{f' {markdown_text(bounds(*between, unit))}' if between else ''}"


_SIGNS = {"good": "✅ ", "bad": "❌ ", "unsure": "❔ "}
_RUNS, _SENTENCES, _ROWS = 2, 2, 5
_Before: TypeAlias = "tuple[str, str, Callable[[], Comparison]]"
"""Name and date of what this run is set against, and the comparison."""


@dataclass(frozen=True, slots=True)
class Change:
    """What changed since a run before: ``found``, or why both cannot be compared."""

    name: str
    date: str
    found: RunDiff | None
    why_not: str = ""


def changes_in_comment(runs: Sequence[Run]) -> Iterator[Change]:
    """Yield what changed since each run before, and since the saved run that this one was compared with."""
    now = runs[0]
    before: list[_Before] = [(run.name, run.manifest.date, partial(now.compared_with, run)) for run in runs[1:]]
    for name, date, compared in [*before, *_baseline(now)][:_RUNS]:
        try:
            found = compared()
        except DataError as error:
            yield Change(name, date, None, str(error))
        else:
            yield Change(name, date, run_diff(found))


def change_lines(changes: Sequence[Change], room: Room, links: Links) -> Iterator[str]:
    """Yield what changed: sentences, then a table of what changed more than chance explains.

    Of several runs before only the first has a table.
    """
    for number, change in enumerate(changes):
        yield from ("",) * bool(number)
        yield f"**Changes since {room.named(change.name)}**, of {markdown_text(change.date)}:"
        if change.found is None:
            yield f"- ❔ Not compared. {room.said(change.why_not)}"
            continue
        yield from _said(change.found, room)
        yield from _talks(change.found, room, links)
        yield from _table(change.found, room) if not number else ()


def _said(found: RunDiff, room: Room) -> Iterator[str]:
    shown = sentences(found)[: min(_SENTENCES, room.few)]
    for sentence in [*shown, *(each for each in assumed_said(found) if each not in shown)]:
        yield f"- {_SIGNS.get(sentence.tone, '')}{room.said(sentence.text)}"


def _talks(found: RunDiff, room: Room, links: Links) -> Iterator[str]:
    """Yield the conversations that got worse, with a link to the first turn of the one that did most."""
    changes = [] if found.found.is_same_run else found.worse_talks
    for change in changes[: room.few]:
        said = talks_said(change)
        assert change.conversations
        first = str(TrialId(change.suite, change.conversations.worse[0].case))
        yield f"- {_SIGNS[said.tone]}{room.said(said.text)} See {links.to(first, room)}"


def _table(found: RunDiff, room: Room) -> Iterator[str]:
    changes = [] if found.found.is_same_run else [*found.answers, *found.spent]
    if not changes:
        return
    rows = [_change_row(change, room) for change in changes[: min(_ROWS, room.rows)]]
    more = f", {len(rows)} of {len(changes)} that changed" if len(changes) > len(rows) else ""
    yield ""
    yield from table_rows([f"measure{more}", "before", "now", "change, interval", "p", "questions"], rows)


def _change_row(change: MeasureChange, room: Room) -> list[str]:
    sign = {"better": "✅", "worse": "❌", "changed": ""}[change.direction]
    before, now = told_apart(change.before, change.now, unit_named(change.measure), same=not change.difference)
    between = f" [{change.interval.low:+.3f}, {change.interval.high:+.3f}]" if change.interval else ""
    moved = f"{sign} {markdown_text(f'{change.difference:+.3f}{between}')}".strip()
    name = room.named(f"{change.suite}: {change.measure}")
    return [name, markdown_text(before), markdown_text(now), moved, markdown_text(p_or_seen(change)), f"{change.n:,}"]


def _baseline(now: Run) -> Iterator[_Before]:
    """Yield the saved run that this one was compared with, where its file is still there and is not of this run."""
    settings = now.manifest.settings
    name = str(settings.get("compare") or "")
    if not name:
        return
    file = Path(str(settings.get("rootdir") or "."), str(settings.get("project") or ""), "baselines", f"{name}.json")
    try:
        check_as_written(file)
        saved = load_saved_run(file)
    except (DataError, OSError):
        return
    if saved.date != now.manifest.date:
        yield name, saved.date, partial(_against_saved, now, now.saved, saved)


def _against_saved(run: Run, now: SavedRun, before: SavedRun) -> Comparison:
    check_whole(run.output)
    return compare(*on_common_data(now, before))


_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Worst:
    """A trial that failed, for people."""

    trial: TrialId
    query: str
    expected: str
    cause: str
    evidence: str


def worst_of(brief: Brief, run: Run) -> Iterator[Worst]:
    """Yield the three worst trials of one experiment: those that ended in an error, then those whose test failed, then
    those with a cause, and where none is known those whose answers are worth least.

    It is the first experiment with an error or a failed test; where there is none, the one that the sentences speak of.
    """
    # Where the one that the sentences speak of has no cause, the next one with causes is shown.
    name = next((each for each in (brief.subject, *brief.shortfalls) if each in brief.shortfalls), brief.subject)
    if not name:
        yield from _missed(run)
        return
    broken = (
        each for each in (name, *brief.tables) if brief.tables[each].totals.errors or brief.failures.wrong.get(each)
    )
    name = next(broken, name)
    failed = {each.trial: each for each in _failed(name, brief, run)}
    others = (each for each in _wrong(name, brief, run) if each.trial not in failed)
    yield from islice([*failed.values(), *others], _SHOWN)


def _failed(name: str, brief: Brief, run: Run) -> Iterator[Worst]:
    """Yield trials that ended in an error, then answers that failed their test."""
    table, prefix = brief.tables[name], f"{name}-"
    for trial, why in table.totals.first_errors[:_SHOWN]:
        case = trial.removeprefix(prefix)
        yield Worst(TrialId(name, case), *_asked(name, case, run), "error", why)
    for case in brief.failures.wrong.get(name, ())[:_SHOWN]:
        yield Worst(TrialId(name, case), *_asked(name, case, run), "its test failed", _figures(table, case))


def _wrong(name: str, brief: Brief, run: Run) -> Iterator[Worst]:
    """Yield trials with a cause; where none is known, those whose answers are worth least."""
    explained = [line for line in run.causes.values() if line.experiment == name][:_SHOWN]
    if explained:
        yield from (_explained(line, run) for line in explained)
        return
    table = brief.tables[name]
    wrong = wrong_answers(table)
    for each in suspects(table, _SHOWN).values():
        if not (each.category or each.query_id in wrong):
            continue
        query, expected = _asked(name, each.query_id, run)
        said = _figures(table, each.query_id)
        yield Worst(TrialId(name, each.query_id), query, expected, "cause not known", said)


def _figures(table: SuiteTable, case: str) -> str:
    values = {m: table.values(m, {}).get(case) for m in ("token_f1", "evidence_recall") if table.has(m)}
    return ", ".join(f"{measure} {value_said(value)}" for measure, value in values.items() if value is not None)


def worst_lines(found: Sequence[Worst], room: Room, links: Links) -> Iterator[str]:
    """Yield a line for each trial."""
    if not found:
        return
    yield f"**Worst {'trial' if len(found) == 1 else 'trials'} of {room.named(found[0].trial.experiment)}**"
    for each in found:
        parts = [f"- {links.to(str(each.trial), room)}: {room.said(each.query) or '(no text)'}"]
        parts += [f"Expected: {room.said(each.expected)}"] if each.expected else []
        evidence = f". {room.short(each.evidence)}" if each.evidence else ""
        yield "<br>".join([*parts, f"**{room.short(each.cause)}**{evidence}"])


def _missed(run: Run) -> Iterator[Worst]:
    """Yield the questions of the golden suite whose documents were found last, or not at all."""
    table = run.selected.get(GOLDEN)
    found = table.values("mrr@10", {}) if table is not None and table.has("mrr@10") else {}
    for case_id, value in sorted(found.items(), key=lambda each: each[1])[:_SHOWN]:
        if value < 1:
            query, expected = _asked(GOLDEN, case_id, run)
            rank = f"first found at rank {round(1 / value)}" if value else "not among the first 10"
            yield Worst(TrialId(GOLDEN, case_id), query, expected, rank, "")


def _explained(line: CauseLine, run: Run) -> Worst:
    query, expected = _asked(line.experiment, line.query_id, run)
    cause = line.reviewed_cause or ": ".join(filter(None, [line.cause, line.detail]))
    return Worst(line.trial, line.query or query, expected, cause, line.evidence)


def _asked(experiment: str, case_id: str, run: Run) -> tuple[str, str]:
    """Return the text of a case's query, and what was expected; empty where the data do not say."""
    cases = run.cases_of(experiment)
    place = cases.position.get(case_id)
    try:
        case = cases[place].case if place is not None else None
    finally:
        cases.close()
    if case is None:
        return "", ""
    gold = case.ground_truth or ", ".join(case.context_reference)
    query = run.query_of(experiment, case_id)
    return query, gold if case.answerable else f"to decline, because no page answers it. {gold}".strip()


# What a reader has to know before trusting the figures: experiments of earlier runs, and verdicts on other rows.


def note_lines(run: Run, room: Room) -> Iterator[str]:
    """Yield the notes; of many the first."""
    notes = [*caveats(run)]
    yield from (f"- ❔ {room.said(note)}" for note in notes[: room.few])
    if len(notes) > room.few:
        yield f"- ❔ … and {len(notes) - room.few:,} more notes of this kind; the report has them."


_LONGEST = 400
"""Characters of a command. A part of a command is of no use."""
_REPORT = "see the report"
_SETTINGS = ("profile", "mode", "chat_model", "embed_model")


def folded_lines(brief: Brief, run: Run, room: Room) -> Iterator[str]:
    """Yield the details. GitHub reads Markdown inside them only between empty lines."""
    yield "<details><summary>Details: gates without a verdict, categories, origins, how to repeat it</summary>"
    yield ""
    yield from _not_judged(run, room)
    yield from _kinds(brief, room)
    yield from _origins(run, room)
    yield f"- {room.said(_made(run))}"
    yield ""
    commands = next((block.lines for block in again(run) if isinstance(block, Code)), ())
    yield from markdown_code_block(
        [line if len(line) <= _LONGEST else f"# a long command: {_REPORT}" for line in commands]
    )
    yield ""
    yield "</details>"


def _not_judged(run: Run, room: Room) -> Iterator[str]:
    """Yield why gates were not judged, each reason once, and how many gates have it."""
    reasons = Counter(gate.get("reason") or "no reason is kept" for gate in run.gates if gate["state"] == "not judged")
    found = reasons.most_common()
    if found:
        few = [f"{reason} ({n:,})" if n > 1 else reason for reason, n in found[: room.few]]
        more = f"; and {counted(len(found) - room.few, 'more reason')}" if len(found) > room.few else ""
        yield f"- Not judged, {reasons.total():,}: {room.said('; '.join(few))}{more}"


def _kinds(brief: Brief, room: Room) -> Iterator[str]:
    """Yield the kinds of answers of each experiment with a context, the most frequent first.

    Without a context declines alone have a kind, and the report counts those.
    """
    kinds = {name: found.kinds() for name, found in brief.tables.items() if found.totals.retrieves}
    known = {name: found for name, found in kinds.items() if found}
    # The one that the sentences speak of comes first.
    for name, found in sorted(known.items(), key=lambda each: each[0] != brief.subject)[: room.few]:
        said = ", ".join(f"{n:,} {kind}" for kind, n in found.most_common())
        yield f"- Answers of {room.named(name)}: {markdown_text(said)}"
    if len(known) > room.few:
        yield f"- Answers of {counted(len(known) - room.few, 'more experiment')}: {_REPORT}"


def _origins(run: Run, room: Room) -> Iterator[str]:
    lines = provenance_lines(run.selected, run.manifest.date)
    yield from (f"- {room.said(f'{line[:1].upper()}{line[1:]}')}" for line in lines[: room.few])
    if len(lines) > room.few:
        yield f"- Origins of other answers: {_REPORT}"


def _made(run: Run) -> str:
    manifest, settings = run.manifest, run.manifest.settings
    at = f" at commit {manifest.commit[:12]}" if manifest.commit else ""
    parts = [f"Run of {manifest.date}{at}"]
    parts += [f"{name} {settings[name]}" for name in _SETTINGS if settings.get(name)]
    parts += [f"{name} {digest[:12]}" for name, digest in sorted(manifest.digests.items()) if digest]
    return "; ".join(parts)


# The race of ``rag-harness tune`` in Markdown: its sentences, and the table of its configurations.


def race_lines(run: Run, room: Room) -> Iterator[str]:
    """Yield the race in the folder of a run, folded; nothing where there was none.

    Raises:
        DataError: the file of the race cannot be read.
    """
    outcome = read_outcome(run.output)
    if outcome is None:
        return
    first, *others = outcome_sentences(outcome)
    # A comment has a number of lines for all of it. The page and race_text have every configuration.
    yield f"<details><summary>The race of configurations: {room.said(first)}</summary>"
    yield ""
    yield " ".join(room.said(each) for each in others)
    yield ""
    shown = race_rows(outcome)[: room.few]
    yield from table_rows(_head(outcome), [[room.named(name, 2), *map(room.short, more)] for name, *more in shown])
    yield ""
    if len(outcome.entries) > len(shown):
        yield f"… and {counted(len(outcome.entries) - len(shown), 'configuration')} more."
        yield ""
    yield "</details>"


def race_text(outcome: RaceOutcome) -> str:
    """Return the whole race as Markdown where the folder has no run."""
    said = [f"- {markdown_text(each)}" for each in outcome_sentences(outcome)]
    rows = [list(map(markdown_text, row)) for row in race_rows(outcome)]
    lines = ["## The race of configurations", "", *said, "", *table_rows(_head(outcome), rows)]
    return "".join(f"{line}\n" for line in lines)


def _head(outcome: RaceOutcome) -> list[str]:
    return ["configuration", *map(markdown_text, outcome.objective), *HEAD]


# Puts the parts of a comment together, so that it is never too long.

MOST_LINES, MOST_CHARACTERS = 60, 8_000
"""A reader of a pull request reads no more. GitHub takes 65,536 characters."""
_ROW_LIMITS = (10, 8, 7, 6, 5, 4, 3, 2)
_TEXTS = ((80, 600), (60, 450), (50, 330), (40, 240), (30, 180), (24, 120))
"""Room for rows, and for names and sentences. The most generous that fits is taken; the last always fits."""
_TOPICS = {
    "found": "What was found",
    "wrong": "Wrong answers",
    "best": "Which is best",
    "sure": "How sure",
    "why": "Why",
    "next": "Next",
}
_SENTENCES_EACH = 2


def comment_of(runs: Sequence[Run], report: str = "") -> str:
    """Return the comment on the first run, set against the others.

    Args:
        runs: the runs, that of now first.
        report: address of the report as a page, for links to its trials; empty where it is not known.

    Raises:
        DataError: the cases of a run are missing or damaged, or its causes are.
    """
    run = runs[0]
    brief = run.brief
    found = _CommentContent(
        brief, first_sentences(brief), run, [*changes_in_comment(runs)], [*worst_of(brief, run)], Links(run, report)
    )
    # How many lines there are does not depend on how long they are.
    narrow = _TEXTS[-1]
    rows = next((n for n in _ROW_LIMITS if found.text(Room(n, *narrow)).count("\n") <= MOST_LINES), _ROW_LIMITS[-1])
    rooms = [Room(n, *widths) for n in (rows, _ROW_LIMITS[-1]) for widths in _TEXTS]
    return next((text for text in map(found.text, rooms) if len(text) <= MOST_CHARACTERS), found.text(rooms[-1]))


@dataclass(frozen=True, slots=True)
class _CommentContent:
    """What a comment is about."""

    brief: Brief
    sentences: Sequence[Sentence]
    run: Run
    changes: Sequence[Change]
    worst: Sequence[Worst]
    links: Links

    def text(self, room: Room) -> str:
        """Return the comment."""
        return "\n\n".join("\n".join(part) for part in self._parts(room) if part) + "\n"

    def _parts(self, room: Room) -> Iterator[list[str]]:
        brief, run = self.brief, self.run
        yield [verdict_line(brief, run)]
        yield [room.said(each) for each in last_run_lines(run)]
        yield [run_line(brief, run, room)]
        yield [*gate_lines(brief, run, room, self.links)]
        yield [*_sentences(self.sentences, room), *note_lines(run, room)]
        yield [*experiment_lines(brief, run, room)]
        yield [*change_lines(self.changes, room, self.links)]
        yield [*worst_lines(self.worst, room, self.links)]
        yield [*race_lines(run, room)]
        yield [*folded_lines(brief, run, room)]


def _sentences(sentences: Sequence[Sentence], room: Room) -> Iterator[str]:
    """Yield which is best, how sure, why answers are wrong, and what to do next; for the first data."""
    for topic, title in _TOPICS.items():
        said = [sentence for sentence in sentences if sentence.topic == topic]
        for sentence in said[: min(_SENTENCES_EACH, room.few)]:
            yield f"- {_SIGNS.get(sentence.tone, '')}**{title}:** {room.said(sentence.text)}"
