"""Writes a run in brief for the terminal: at most 80 columns, 16 lines for one experiment, 24 for four."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from rag_harness.gates.units import bounds, value_said
from rag_harness.report.brief.answered import Answered
from rag_harness.report.brief.brief import Brief
from rag_harness.report.brief.experiment_lines import (
    main_measure,
    quality_lines,
    table_lines,
    turn_lines,
)
from rag_harness.report.brief.gate_lines import failed_gate_lines, gate_count_lines
from rag_harness.report.brief.leads import Field, Lead
from rag_harness.report.brief.looked_up import LookedUp
from rag_harness.report.brief.sentences import (
    Sentence,
    describe_unmeasured,
    equals_said,
    first_sentences,
    more_said,
    surest,
    winners_said,
)
from rag_harness.report.brief.shortfalls import Shortfall
from rag_harness.report.brief.writer import LABEL, TIE, Colour, Line, LineWriter
from rag_harness.report.suite_table import SuiteTable
from rag_harness.report.summary import made_up
from rag_harness.report.wording import counted, listed, short
from rag_harness.report.wrong import count_wrong, describe_wrong_alone, verdicts_of

_WIDEST, _FEW_FIELDS = 100, 2
_NOTHING = "nothing can be compared: no measure has values of two experiments"
_ALIKE = "the measures below do not tell the experiments apart"
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
    """Return how the gates came out, without the one that passed most closely; where none is set, that alone."""
    lines = _gates(replace(brief, gates=replace(brief.gates, closest=None)), writer)
    return lines if brief.gates.total else lines[:1]


def _in_short(brief: Brief, output: str, writer: LineWriter) -> list[Line]:
    """Return what was answered, or found, in a line, and the next command in another."""
    several = [field for field in brief.fields if len(field.names) > 1]
    best = "".join(f"; {_on(each, brief)}{winners_said(each) or 'all are equal'}".rstrip(".") for each in several)
    if brief.alone is not None:
        commands = [*_commands(brief, output), _report(output)]
        return [*_golden(brief, writer)[:1], Line(f"{'next':<{LABEL}}{commands[0]}")]
    found = brief.answered
    earlier = f" ({listed(found.earlier)} in an earlier run)" if found.earlier else ""
    words = dict.fromkeys(filter(None, map(made_up, found.authors)))
    marks = "".join(f"{TIE}({word})" for word in words)
    wrong = f", {said}" if (said := count_wrong(brief.tables)) else ""
    said = f"{found.rows:,} of {found.asked:,} answered{wrong}{marks}{earlier}{best}"
    return [
        *writer.labelled("rag", said, "red" if found.errors or found.lost or _wrong(brief) else "", most=1),
        Line(f"{'next':<{LABEL}}{_explain(brief, output)}"),
    ]


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
    return [*writer.labelled("rag", said, "red" if broken else ""), *writer.labelled("", _by(found))]


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
    """Say who answered and who judged. That somebody is no LLM is said."""
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
    """Return a model's name. That it is no LLM is said in three words, and that it is made up in two."""
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
    ahead = f"{cell.found.difference:+.3f}{between} over {short(cell.second)}"
    word: tuple[str, Colour] = ("SURE", "green") if lead.is_sure else ("NOT SURE", "yellow")
    broken = f"{cell.errors}, so neither is better" if cell.errors else ""
    more = "" if lead.is_sure else broken or more_said(lead, cell.found.n)
    text = f"{word[0]}: {listed(lead.best)}, {head}, {ahead}. {more}".removesuffix(". ")
    yield from writer.labelled("", text, word[1])


def _of(sentences: Iterable[Sentence], topic: str) -> list[Sentence]:
    return [each for each in sentences if each.topic == topic]


def _why(brief: Brief, writer: LineWriter) -> Iterator[Line]:
    found = brief.shortfall
    if found is None or not brief.answered.rows:
        for sentence in _of(first_sentences(brief), "why"):
            yield from writer.labelled("why", sentence.text, "red" if sentence.tone == "bad" else "", most=3)
        return
    yield from writer.labelled("why", _causes(found, is_alone=len(brief.tables) == 1))
    if found.below:
        yield Line(f"{'':<{LABEL}}{found.below_said}")
    yield Line(writer.cut(f"{'worst':<{LABEL}}{found.worst}  {found.detail}: {found.evidence}"))


def _causes(found: Shortfall, is_alone: bool) -> str:
    causes = ", ".join(f"{n:,} {_CAUSES.get(cause, cause.lower())}" for cause, n in found.causes.items())
    name = "" if is_alone else f"{short(found.experiment)}: "
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
    is_open = golden.missed if golden is not None else brief.answered.rows
    return [_explain(brief, output)] if is_open else []


def _report(output: str) -> str:
    return f"rag-harness report {output} -o report.html"


def _explain(brief: Brief, output: str) -> str:
    found = brief.shortfall
    trial = found.worst if found else next((gate.worst for gate in brief.gates.failed if gate.worst), "")
    return f"rag-harness explain {output} {trial}".rstrip()
