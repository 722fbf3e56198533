"""A run in brief as lines for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from textwrap import wrap
from typing import Literal, NamedTuple

from rag_harness.evaluation.measures.correctness import CORRECT
from rag_harness.runs.gates.verdict import bounds, value_said
from rag_harness.tables.answer_warnings import count_wrong, describe_wrong_alone, verdicts_of
from rag_harness.tables.brief import Answered, Brief, Shortfall
from rag_harness.tables.brief_sentences import (
    EACH_IS_BEST,
    NONE_IS_BEST,
    Sentence,
    describe_unmeasured,
    equals_said,
    first_sentences,
    more_said,
    surest,
    whose_causes,
    winners_said,
)
from rag_harness.tables.conversations import FEW_TURNS, Drift, by_turn, drift_of, has_turns, turns_said
from rag_harness.tables.gate_states import BAD, FEW_GATES, STATE_WORDS, GateLine, GatesState
from rag_harness.tables.golden_suite import LookedUp
from rag_harness.tables.standings import Field, Lead
from rag_harness.tables.suite_table import SuiteTable
from rag_harness.tables.summary import made_up, table
from rag_harness.tables.wording import CUT, beginning_that_fits, counted, end_that_fits, listed, short

Colour = Literal["", "red", "green", "yellow"]
LABEL = 9
"""Columns of a label."""
_HEAD, _END = 2, 3
"""Lines at the beginning and at the end of a text that is cut in its middle."""
TIE = "\N{NO-BREAK SPACE}"
"""A space that no line breaks at; it is printed as a space."""


class Line(NamedTuple):
    """A line of the terminal, with its colour."""

    text: str
    colour: Colour = ""


class LineWriter:
    """Wraps text behind a label."""

    def __init__(self, width: int) -> None:
        self.width = width

    def labelled(self, label: str, text: str, colour: Colour = "", most: int = 2) -> list[Line]:
        """Return the text in at most so many lines; a longer one is cut between clauses."""
        body = self._wrapped(beginning_that_fits(text, lambda said: len(self._wrapped(said)) <= most) or text, most)
        heads = [label, *[""] * (len(body) - 1)]
        return [
            Line(f"{head:<{LABEL}}{part}".replace(TIE, " ").rstrip(), colour)
            for head, part in zip(heads, body, strict=True)
        ]

    def to_its_end(self, label: str, text: str, colour: Colour = "") -> list[Line]:
        """Return the text in at most ``_HEAD + _END`` lines; a longer one is cut in its middle, between clauses.

        What to do is the end of a message.
        """
        body = self._wrapped(text)
        if len(body) <= _HEAD + _END:
            return self.labelled(label, text, colour, most=_HEAD + _END)
        end = end_that_fits(text, lambda said: len(self._wrapped(said)) <= _END) or " ".join(body[-_END:])
        return [
            *self.labelled(label, text, colour, most=_HEAD),
            *self.labelled("", end.removeprefix(f"{CUT.strip()} "), colour, most=_END),
        ]

    def _wrapped(self, text: str, most: int | None = None) -> list[str]:
        room = self.width - LABEL
        return wrap(text, room, max_lines=most, placeholder=CUT, break_on_hyphens=False) or [""]

    def cut(self, text: str, indent: int = 0) -> str:
        """Return the text in one line."""
        room = self.width - indent
        return text if len(text) <= room else f"{text[: room - 1]}…"


# Lines about experiments: the figures of one, a table of several.

_WIDEST_NAME, _FEW_ROWS = 24, 8
_FEW_MEASURES = 4
_VERDICTS = ("wrong, 95 %", "declined", "wrongly")
"""Columns of answers that are wrong, that decline, and that do so wrongly."""
_MEASURES = (
    "recall@5",
    "evidence_recall",
    "factuality",
    "hri",
    "g_mean",
    "answer_correctness",
    "expectations",
    "token_f1",
    "faithfulness",
    "answer_relevancy",
)
_SPELT = {"hri": "hallucination risk"}
"""Measures whose names nobody can guess."""
_SHORT = {
    "hri": "risk",
    "evidence_recall": "evidence",
    "expectations": "expected",
    "answer_correctness": "claims",
    "answer_relevancy": "relevancy",
    "faithfulness": "faithful",
}
_MEANINGS = {
    "evidence_recall": "quotes of evidence that were retrieved",
    "hri": "hallucination risk, lower is better",
    "g_mean": "mean of precision, faithfulness and relevancy",
    "expectations": "share of expectations kept",
    "answer_correctness": "claims shared with the ground truth",
}
"""What is measured where the head of a column does not say so."""


def main_measure(found: SuiteTable) -> str:
    """Return the first measure that says something of an experiment."""
    return next((name for name in (CORRECT, *_MEASURES) if _tells(found, name)), "recall@5")


def quality_lines(found: SuiteTable, writer: LineWriter) -> Iterator[Line]:
    """Yield the main measures of one experiment with their intervals."""
    said = []
    for name in [each for each in _MEASURES if _tells(found, each)][:_FEW_MEASURES]:
        unit, between = found.columns[name].measure.unit, found.interval(name)
        mean = value_said(found.aggregate([name])[name] or 0.0, unit)
        interval = f" {bounds(*between, unit)}" if between else ""
        said.append(f"{_SPELT.get(name, name)} {mean}{interval}".replace(" ", TIE))
    if said:
        yield from writer.labelled("quality", f"{TIE} ".join(said))


def _tells(found: SuiteTable, name: str) -> bool:
    """Whether a measure has values. Expectations of fewer than half of the questions are left to the report."""
    return found.has(name) and (name != "expectations" or 2 * len(found.values(name, {})) >= len(found.ids))


def turn_lines(brief: Brief, writer: LineWriter) -> list[Line]:
    """Return the first measure of each experiment that has conversations, by turn, and its drift."""
    found = []
    for name, each in brief.tables.items():
        measure = next((measure for measure in _MEASURES if _tells(each, measure)), "") if has_turns(each) else ""
        if measure:
            drift = drift_of(each, measure)
            slope = f" {drift.slope:+.2f} a turn{_between(drift)}".replace(" ", TIE) if drift else ""
            said = f"{short(name)}  {measure} by turn  {turns_said(by_turn(each, measure, FEW_TURNS))} "
            found.append(f"{said.replace(' ', TIE)} {slope.strip(TIE)}")
    return [line for n, said in enumerate(found[:_FEW_ROWS]) for line in writer.labelled("" if n else "turns", said)]


def _between(drift: Drift) -> str:
    return f" {bounds(*drift.interval, 'score', signed=True)}" if drift.interval else ""


def _verdict_cells(found: SuiteTable) -> list[str]:
    """Return the share of wrong answers, and how many questions were declined, and wrongly so."""
    verdicts, declined = verdicts_of(found), f"{found.totals.abstained:,}"
    return ["-", declined, "-"] if verdicts is None else [verdicts.share_said, declined, f"{verdicts.declined:,}"]


def table_lines(brief: Brief, writer: LineWriter) -> Iterator[Line]:
    """Yield a table with a row an experiment; those that are equal in everything share one."""
    tables = brief.tables
    columns = [name for name in _MEASURES if any(_tells(found, name) for found in tables.values())]
    groups = [group for field in brief.fields for group in field.groups]
    rows = [["", *_VERDICTS, *(_SHORT.get(each, each) for each in columns)]]
    for name, *same in groups[:_FEW_ROWS]:
        found = tables[name]
        means = found.aggregate([each for each in columns if each in found.columns])
        cells = ["-" if means.get(each) is None else value_said(means[each] or 0.0) for each in columns]
        title = " = ".join([name, *same]) if len(same) < 3 else f"{name} = {len(same)} others"
        rows.append([title, *_verdict_cells(found), *cells])
    widths = [max(len(row[n]) for row in rows) + 2 for n in range(1, len(rows[0]))]
    wanted = min(max(len(row[0]) for row in rows), _WIDEST_NAME)
    while len(widths) > len(_VERDICTS) + 1 and wanted + sum(widths) > writer.width:
        rows = [row[:-1] for row in rows]  # the last measure gives way
        del widths[-1]
    room = writer.width - sum(widths)
    yield from (Line(line.rstrip()) for line in table([[short(row[0], room), *row[1:]] for row in rows]))
    if (more := len(groups) - _FEW_ROWS) > 0:
        yield Line(f"… and {more} more: -v")
    shown = columns[: len(rows[0]) - len(_VERDICTS) - 1]
    yield from writer.labelled("", _legend(shown)) if _legend(shown) else ()


def _legend(columns: Sequence[str]) -> str:
    """Return what the columns mean whose heads do not say so."""
    return "; ".join(f"{_SHORT.get(each, each)}: {_MEANINGS[each]}" for each in columns if each in _MEANINGS)


_COLOURS: Mapping[str, Colour] = {"FAIL": "red", "PASS": "green"}
_FEW_NEEDED, _FEW_EXPECTED = 2, 2


def failed_gate_lines(state: GatesState, writer: LineWriter) -> Iterator[Line]:
    """Yield the failed gates, each with its worst trial, and the first that is undecided."""
    for gate in state.failed[:FEW_GATES]:
        yield from _gate(gate.state.upper(), gate, "red", writer)
        if gate.figures and gate.reason and (gate.is_good_enough or gate.state == "stale"):
            # Cases were lost, or could not be measured, or are too old, or an expected failure did not come.
            yield from writer.to_its_end("", gate.reason, "red")
        elif gate.worst:
            why = f": {gate.worst_why}" if gate.worst_why else ""
            yield Line(writer.cut(f"{'':<{LABEL}}worst: {gate.worst}{why}"), "red")
    if more := len(state.failed) - FEW_GATES:
        yield from [Line(f"{'':<{LABEL}}and {counted(more, 'failed gate')} more: -v", "red")] if more > 0 else []
    for gate in state.undecided[:1]:
        yield from _gate("UNDECIDED", gate, "yellow", writer)


def _gate(label: str, gate: GateLine, colour: Colour, writer: LineWriter) -> Iterator[Line]:
    # UNDECIDED is as wide as the column. It is one word everywhere, so it takes the space behind the column, too.
    head = f"{label} ".ljust(LABEL)
    whole = f"{gate.condition}   {gate.figures or gate.reason}".rstrip()
    if len(whole) <= writer.width - len(head):
        yield Line(f"{head}{whole}", colour)
    else:
        yield Line(f"{head}{writer.cut(gate.condition, len(head))}", colour)
        yield from writer.to_its_end("", gate.figures or gate.reason, colour)


def gate_count_lines(state: GatesState, writer: LineWriter, example: str) -> list[Line]:
    """Return how many gates have each verdict, and which passed most closely; of no gate an example of one."""
    if not state.total:
        one = example.replace(" ", TIE)
        return writer.labelled("gates", f"none: nothing stops a release. Set rag_gate, e.g. {one}", "yellow")
    if state.are_elsewhere and not state.strict:
        return writer.labelled("gates", _none_judged(state), "yellow")
    counts = state.counts
    bad = sum(counts.get(name, 0) for name in BAD)
    said = [f"{counts.get('passed', 0)} passed", f"{bad} failed"]
    said += [f"{counts[name]} {word}" for name, word in STATE_WORDS.items() if counts.get(name) and name != "passed"]
    said += [state.part] if state.part else []
    needs = f" ({listed(state.needed, _FEW_NEEDED)} did not run)" if state.needed and counts.get("not judged") else ""
    why = f" ({', '.join(state.strict)})" if state.strict else ""
    colour = _COLOURS.get(state.verdict, "yellow")
    word = f"{state.verdict}{TIE}{TIE} " if state.verdict else ""
    lines = writer.labelled("gates", f"{word}{', '.join(said)}{needs}{why}", colour)
    if state.closest is not None and not state.failed:
        near = replace(state.closest, condition=f"nearest to failing: {state.closest.condition}")
        lines += _gate("", near, "", writer)
    return lines + _expected(state.expected_failures, writer)


def _none_judged(state: GatesState) -> str:
    which = "the only one is" if state.total == 1 else f"all {state.total:,} are"
    return f"none judged: {which} on {listed(state.needed, _FEW_NEEDED)}, which did not run"


def _expected(gates: Sequence[str], writer: LineWriter) -> list[Line]:
    """Name the gates that failed as expected; of many the first."""
    more = [f"and {len(gates) - _FEW_EXPECTED} more"] if len(gates) > _FEW_EXPECTED else []
    said = "; ".join([*gates[:_FEW_EXPECTED], *more])
    return writer.labelled("", f"failed as expected: {said}") if gates else []


_WIDEST, _FEW_FIELDS = 100, 2
_NOTHING = "nothing can be compared: no measure has values of two experiments"
_ALIKE = "the measures below do not tell the experiments apart"
_CORRECTED = "Intervals by Holm, unlike a gate's."
_OPEN = "not judged: the run ended early"
_CAUSES = {"Judge Doubtful": "misjudged", "Gold Doubtful": "wrong gold"}
"""Causes whose names do not say what they mean."""


def brief_lines(
    brief: Brief,
    output: str,
    width: int = 80,
    *,
    has_report: bool = False,
    is_open: bool = False,
    notes: Sequence[Line] = (),
) -> list[Line]:
    """Return the lines.

    Args:
        brief: the run.
        output: the folder of its results, for commands.
        width: columns of the terminal.
        has_report: whether the run writes a report itself.
        is_open: whether the run ended before its gates were judged.
        notes: what else has to be known of the run; each is wrapped.
    """
    writer = LineWriter(min(width, _WIDEST))
    several = any(len(field.names) > 1 for field in brief.fields)
    lines = [*failed_gate_lines(brief.gates, writer), *_asked(brief, writer)]
    lines += [part for note in notes for part in writer.to_its_end("note", note.text, note.colour)]
    lines += writer.labelled("note", _earlier_said(brief.answered), "yellow") if brief.answered.earlier else []
    lines += writer.labelled("note", said, "yellow") if (said := describe_unmeasured(brief)) else []
    lines += writer.labelled("gates", _OPEN, "yellow") if is_open else _gates(brief, writer)
    if several:
        lines += [*table_lines(brief, writer), *_best(brief, writer)]
    elif brief.answered.rows:
        for found in brief.tables.values():
            lines += [*_wrong_lines(found, writer), *quality_lines(found, writer)]
    lines += turn_lines(brief, writer)
    following = [] if brief.causes_are_due else _next(brief, output, has_report, writer)
    return [*lines, *_why(brief, writer), *following]


def _wrong_lines(found: SuiteTable, writer: LineWriter) -> list[Line]:
    """Return how many answers of the only experiment are wrong, wrongly declined and correct."""
    verdicts = verdicts_of(found)
    if verdicts is None:
        said = f"{found.totals.abstained:,} of {found.totals.answered:,} declined; correctness not checked"
        return writer.labelled("answers", said)
    return writer.labelled("wrong", describe_wrong_alone(verdicts))


def cause_lines(brief: Brief, output: str, width: int = 80, *, has_report: bool = False) -> list[Line]:
    """Return why answers are wrong, and what to do next: what is known when causes are worked out."""
    writer = LineWriter(min(width, _WIDEST))
    return [*_why(brief, writer), *_next(brief, output, has_report, writer)]


def quiet_lines(
    brief: Brief, output: str, width: int = 80, *, origins: Sequence[Line] = (), notes: Sequence[Line] = ()
) -> list[Line]:
    """Return what is left with -q: where answers come from, what touches a verdict, gates, answers, what to do.

    Args:
        brief: the run.
        output: the folder of its results, for commands.
        width: columns of the terminal.
        origins: where the answers come from, and how old they are; never cut.
        notes: without what a verdict is misread; each is wrapped.
    """
    writer = LineWriter(min(width, _WIDEST))
    wrapped = [part for note in notes for part in writer.to_its_end("note", note.text, note.colour)]
    return [*origins, *wrapped, *_verdicts(brief, writer), *_in_short(brief, output, writer)]


def _verdicts(brief: Brief, writer: LineWriter) -> list[Line]:
    """Return how the gates came out, without the names of those that passed, or failed as expected.

    Where none is set, that alone is said.
    """
    lines = _gates(replace(brief, gates=replace(brief.gates, closest=None, expected_failures=())), writer)
    return lines if brief.gates.total else lines[:1]


def _in_short(brief: Brief, output: str, writer: LineWriter) -> list[Line]:
    """Return what was answered, or found, in a line, and the next command in another."""
    several = [field for field in brief.fields if len(field.names) > 1]
    best = "".join(f"; {_on(each, brief)}{_within(winners_said(each)) or 'all are equal'}" for each in several)
    following = Line(f"{'next':<{LABEL}}{[*_commands(brief, output), _report(output)][0]}")
    if brief.alone is not None:
        return [*_golden(brief, writer)[:1], following]
    found = brief.answered
    earlier = f" ({listed(found.earlier)} in an earlier run)" if found.earlier else ""
    words = dict.fromkeys(filter(None, map(made_up, found.authors)))
    marks = "".join(f"{TIE}({word})" for word in words)
    wrong = f", {said}" if (said := count_wrong(brief.tables)) else ""
    said = f"{found.rows:,} of {found.asked:,} answered{wrong}{marks}{earlier}{best}"
    return [*writer.labelled("rag", said, "red" if found.errors or found.lost or _wrong(brief) else ""), following]


def _within(sentence: str) -> str:
    """Return a sentence as a part of another one."""
    own = sentence in {EACH_IS_BEST, NONE_IS_BEST}
    return (sentence[:1].lower() + sentence[1:] if own else sentence).rstrip(".")


def _gates(brief: Brief, writer: LineWriter) -> list[Line]:
    """Return how the gates came out. Where none is set, the example is on something that this run has measured."""
    name, table = next(iter(brief.tables.items()), ("golden", None))
    example = f"{name}: {main_measure(table) if table is not None else 'recall@k'} >= 0.8"
    return gate_count_lines(brief.gates, writer, example)


def _asked(brief: Brief, writer: LineWriter) -> list[Line]:
    """Return what was asked and answered; of a run of the golden suite alone what was found."""
    return _run(brief, writer) if brief.tables else _golden(brief, writer)


def _run(brief: Brief, writer: LineWriter) -> list[Line]:
    found = brief.answered
    whose = f" by {len(brief.tables)} experiments" if len(brief.tables) > 1 else ""
    broken = [counted(found.errors, "error")] if found.errors else []
    broken += [f"{found.lost:,} without a result"] if found.lost else []
    broken += [f"{counted(wrong, 'answer')} failed a test"] if (wrong := _wrong(brief)) else []
    said = "; ".join([f"{found.rows:,} of {found.asked:,} answered{whose}", *broken, *_origins(found)])
    return [*writer.labelled("rag", said, "red" if broken else "", most=3), *writer.labelled("", _by(found))]


def _wrong(brief: Brief) -> int:
    """Return how many answers failed a test of theirs."""
    return sum(map(len, brief.failures.wrong.values()))


def _golden(brief: Brief, writer: LineWriter) -> list[Line]:
    """Return what the golden suite found, where no experiment ran."""
    found = brief.alone
    if found is None:
        return []
    missed = [f"{found.missed:,} missed"] if found.missed else []
    head = f"{found.found:,} of {found.asked:,} found an expected document {found.where}"
    said = ", ".join([head, *missed, *found.broken])
    return [*writer.labelled("golden", said, "red" if found.broken else ""), *_golden_means(found, writer)]


def _golden_means(found: LookedUp, writer: LineWriter) -> list[Line]:
    if found.mean is None:
        return []
    between = f" {bounds(*found.interval, 'share')}" if found.interval else ""
    mrr = f"  mrr@{found.k} {found.mrr:.3f}" if found.mrr is not None else ""
    return writer.labelled("quality", f"{found.measure} {found.mean:.3f}{between}{mrr}")


def _by(found: Answered) -> str:
    """Name the models that answered and judged. A model that is not an LLM is marked."""
    are_baselines = [*map(_no_llm, (*found.authors, *found.judges))] == [True, True]
    if are_baselines and len(found.authors) == 1 and not made_up(found.authors[0]):
        return f"by {_name(found.authors[0])}, judged by {_name(found.judges[0])}: NOT LLMs"
    by = [f"by {', '.join(map(_author, found.authors))}"] if found.authors else []
    return "; ".join([*by, f"judged by {', '.join(map(_author, found.judges))}" if found.judges else "no judge"])


def _earlier_said(found: Answered) -> str:
    """Say which experiments this run did not look at."""
    are = "is" if len(found.earlier) == 1 else "are"
    return (
        f"{listed(found.earlier)} {are} of an earlier run; this one did not look at {'it' if are == 'is' else 'them'}"
    )


def _origins(found: Answered) -> Iterator[str]:
    """Yield where answers come from; without their number where that is all of them."""
    every = f"{found.rows:,} "
    said = [each.removeprefix(every) if len(found.origins) == 1 else each for each in found.origins]
    if said:
        yield ", ".join(said).replace(" (", f"{TIE}(")


def _author(said: str) -> str:
    """Return a model's name, with three words if it is not an LLM, and with two if it is simulated."""
    if word := made_up(said):
        return f"{_name(said)}, {word}{TIE}answers"
    return f"{_name(said)}, NOT{TIE}an{TIE}LLM" if _no_llm(said) else said


def _name(said: str) -> str:
    return said.partition(" (")[0]


def _no_llm(said: str) -> bool:
    return said.endswith(("not an LLM)", "no LLM)"))


def _best(brief: Brief, writer: LineWriter) -> Iterator[Line]:
    for field in [field for field in brief.fields if len(field.names) > 1][:_FEW_FIELDS]:
        said = " ".join(filter(None, [winners_said(field), *equals_said(field, brief)]))
        said = said or (_ALIKE if field.leads else _NOTHING)
        said += f" {_CORRECTED}" if field.tests > 1 else ""
        sure = any(lead.is_sure for lead in field.leads)
        yield from writer.labelled("best", f"{_on(field, brief)}{said}", "green" if sure else "yellow", most=3)
        for lead in surest(field):
            yield from _lead(lead, writer)


def _on(field: Field, brief: Brief) -> str:
    """Return the data that experiments are compared on, where a run has several."""
    return f"{field.data}: " if len(brief.fields) > 1 else ""


def _lead(lead: Lead, writer: LineWriter) -> Iterator[Line]:
    cell, unit = lead.nearest, lead.standing.unit
    head = f"{lead.standing.measure} {value_said(lead.standing.mean, unit)}"
    if cell is None or cell.found is None:
        yield from writer.labelled("", f"all the same: {head}")
        return
    between = f" {bounds(*cell.found.interval, unit, signed=True, digits=3)}" if cell.found.interval else ""
    ahead = f"{cell.found.difference:+.3f}{between} against {short(cell.second)}"
    word: tuple[str, Colour] = ("SURE", "green") if lead.is_sure else ("NOT SURE", "yellow")
    broken = f"{cell.errors}, so neither is better" if cell.errors else ""
    more = "" if lead.is_sure else broken or more_said(lead, cell.found.n)
    text = f"{word[0]}: {listed(lead.best)}, {head}, {ahead}. {more}".removesuffix(". ")
    yield from writer.labelled("", text, word[1], most=3)


def _of(sentences: Iterable[Sentence], topic: str) -> list[Sentence]:
    return [each for each in sentences if each.topic == topic]


def _why(brief: Brief, writer: LineWriter) -> Iterator[Line]:
    found = brief.shortfall
    if found is None or not brief.answered.rows:
        for sentence in _of(first_sentences(brief), "why"):
            yield from writer.labelled("why", sentence.text, "red" if sentence.tone == "bad" else "", most=3)
        return
    yield from writer.labelled("why", _causes(found, whose_causes(brief)), most=3)
    if found.below:
        yield Line(f"{'':<{LABEL}}{found.below_said}")
    yield from writer.labelled("worst", _worst(found))


def _worst(found: Shortfall) -> str:
    """Return the worst trial with the most frequent cause, and what shows it."""
    among = f", of {found.of_main:,}{TIE}×" if found.of_main > 1 else ""
    return f"{found.worst}{among} {found.detail or found.main.lower()}: {found.evidence}"


def _causes(found: Shortfall, name: str) -> str:
    causes = ", ".join(f"{n:,} {_CAUSES.get(cause, cause.lower())}" for cause, n in found.causes.items())
    if found.is_sample:
        return f"{name}the worst {found.n:,} of {found.answers:,} were looked into: {causes}"
    without = found.n - sum(found.causes.values())
    more = f", {without:,} without a cause" if without > 0 else ""
    declined = f", {found.declined:,} wrongly declined" if found.declined else ""
    head = f"{name}{found.n - found.declined:,} wrong{declined}"
    return f"{head}: {causes}{more}" if found.n else f"{name}none wrong"


def _next(brief: Brief, output: str, has_report: bool, writer: LineWriter) -> Iterator[Line]:
    found = brief.shortfall
    remedy = writer.labelled("next", _remedy(found)) if found is not None else []
    # Commands are to be copied: they are never cut.
    commands = [*_commands(brief, output), *([] if has_report else [_report(output)])]
    heads = ["" if remedy else "next", *[""] * len(commands)]
    yield from remedy
    yield from (Line(f"{head:<{LABEL}}{command}") for head, command in zip(heads, commands, strict=False))


def _remedy(found: Shortfall) -> str:
    """Return what helps most answers, and how many these are unless they are all."""
    if found.of_main == found.n:
        return found.remedy
    return f"{found.remedy} (for{TIE}{found.of_main:,}{TIE}of{TIE}the{TIE}{found.n:,})"


def _commands(brief: Brief, output: str) -> list[str]:
    """Return the command that explains the run, where there is something to explain."""
    golden = brief.alone
    is_open = golden.missed if golden is not None else brief.may_be_explained
    return [_explain(brief, output)] if is_open else []


def _report(output: str) -> str:
    return f"rag-harness report {output} -o report.html"


def _explain(brief: Brief, output: str) -> str:
    found = brief.shortfall
    trial = found.worst if found else next((gate.worst for gate in brief.gates.failed if gate.worst), "")
    return f"rag-harness explain {output} {trial}".rstrip()
