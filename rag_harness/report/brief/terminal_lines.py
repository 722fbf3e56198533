"""Writes a run in brief for the terminal: at most 80 columns, 15 lines for one experiment, 22 for four."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from textwrap import wrap
from typing import Literal, NamedTuple

from rag_harness.gates.units import bounds, value_said
from rag_harness.measures.judged.categories import (
    ANSWERED_UNANSWERABLE,
    CORRECT_ABSTENTION,
    UNCLASSIFIED,
    UNMEASURED,
    WRONG_ABSTENTION,
)
from rag_harness.report.brief.answered import Answered
from rag_harness.report.brief.brief import Brief
from rag_harness.report.brief.gates_state import GateLine, GatesState
from rag_harness.report.brief.leads import RETRIEVAL, Lead
from rag_harness.report.brief.sentences import (
    Sentence,
    equals_said,
    first_sentences,
    listed,
    percent,
    surest,
    winners_said,
)
from rag_harness.report.brief.shortfalls import Shortfall
from rag_harness.report.suite_table import SuiteTable
from rag_harness.report.summary import table

Colour = Literal["", "red", "green", "yellow"]
_LABEL = 9
_FEW_GATES, _FEW_ROWS, _FEW_NEEDED, _FEW_FIELDS = 3, 8, 2, 2
_WIDEST_NAME = 24
_FEW_MEASURES, _FEW_KINDS = 4, 5
_TIE = "\N{NO-BREAK SPACE}"
_MEASURES = ("recall@5", "evidence_recall", "answer_correctness", "token_f1", "faithfulness", "answer_relevancy")
_SHORT = {
    "evidence_recall": "evidence",
    "answer_correctness": "correct",
    "answer_relevancy": "relevancy",
    "faithfulness": "faithful",
}
_KINDS = {
    "Clean Pass": "clean",
    CORRECT_ABSTENTION: "rightly declined",
    WRONG_ABSTENTION: "WRONGLY declined",
    ANSWERED_UNANSWERABLE: "answered what no page answers",
    "Hallucination": "made up",
    "Retrieval Failure": "from wrong passages",
    "Irrelevant": "beside the question",
    "Total Failure": "wrong in every way",
    UNCLASSIFIED: "in between",
    UNMEASURED: "not measured",
}
"""Kinds of answers in plain words."""


class Line(NamedTuple):
    """A line of the terminal, with its colour."""

    text: str
    colour: Colour = ""


def brief_lines(brief: Brief, output: str, report: str = "", width: int = 80) -> list[Line]:
    """Return the lines.

    Args:
        brief: the run.
        output: the folder of its results, for commands.
        report: the file of its report; empty where none was written.
        width: columns of the terminal.
    """
    writer = _Writer(min(width, 100))
    several = any(len(field.names) > 1 for field in brief.fields)
    lines = [*_failed(brief.gates, writer), *_run(brief, writer), *_gates(brief.gates, writer)]
    if several:
        lines += [*_table(brief, writer), *_best(brief, writer)]
    else:
        for found in brief.tables.values():
            lines += [*_quality(found, writer), *_kinds(found, writer)]
    return [*lines, *_why(brief, writer), *_next(brief, output, report, writer)]


def three_lines(brief: Brief, output: str, width: int = 80) -> list[Line]:
    """Return the run in three lines: gates, answers, what to do."""
    writer = _Writer(min(width, 100))
    several = [field for field in brief.fields if len(field.names) > 1]
    best = f"; {winners_said(several[0]) or 'all are equal'}".rstrip(".") if several else ""
    found = brief.answered
    said = f"{found.rows:,} of {found.asked:,} answered{best}"
    return [
        *_gates(brief.gates, writer)[:1],
        *writer.labelled("rag", said, "red" if found.errors or found.lost else "", most=1),
        Line(f"{'next':<{_LABEL}}{_explain(brief, output)}"),
    ]


class _Writer:
    """Wraps text behind a label."""

    def __init__(self, width: int) -> None:
        self.width = width

    def labelled(self, label: str, text: str, colour: Colour = "", most: int = 2) -> list[Line]:
        """Return the text in at most so many lines."""
        room = self.width - _LABEL
        body = wrap(text, room, max_lines=most, placeholder=" …", break_on_hyphens=False) or [""]
        heads = [label, *[""] * (len(body) - 1)]
        return [
            Line(f"{head:<{_LABEL}}{part}".replace(_TIE, " ").rstrip(), colour)
            for head, part in zip(heads, body, strict=True)
        ]

    def cut(self, text: str, indent: int = 0) -> str:
        """Return the text in one line."""
        room = self.width - indent
        return text if len(text) <= room else f"{text[: room - 1]}…"


def _failed(state: GatesState, writer: _Writer) -> Iterator[Line]:
    for gate in state.failed[:_FEW_GATES]:
        yield from _gate(gate.state.upper(), gate, "red", writer)
        if gate.worst:
            yield Line(f"{'':<{_LABEL}}worst: {gate.worst}", "red")
    if more := len(state.failed) - _FEW_GATES:
        yield from [Line(f"{'':<{_LABEL}}and {plural(more, 'failed gate')} more: -v", "red")] if more > 0 else []
    for gate in state.undecided[:1]:
        yield from _gate("UNSURE", gate, "yellow", writer)


def _gate(label: str, gate: GateLine, colour: Colour, writer: _Writer) -> Iterator[Line]:
    if len(label) >= _LABEL:
        label = label.lower()[: _LABEL - 1]
    whole = f"{gate.condition}   {gate.figures or gate.reason}".rstrip()
    if len(whole) <= writer.width - _LABEL:
        yield Line(f"{label:<{_LABEL}}{whole}", colour)
    else:
        yield Line(f"{label:<{_LABEL}}{writer.cut(gate.condition, _LABEL)}", colour)
        yield Line(f"{'':<{_LABEL}}{writer.cut(gate.figures or gate.reason, _LABEL)}", colour)


def _run(brief: Brief, writer: _Writer) -> list[Line]:
    found = brief.answered
    whose = f" by {len(brief.tables)} experiments" if len(brief.tables) > 1 else ""
    broken = [plural(found.errors, "error")] if found.errors else []
    broken += [f"{found.lost:,} without a result"] if found.lost else []
    said = "; ".join([f"{found.rows:,} of {found.asked:,} answered{whose}", *broken, *_origins(found)])
    return [*writer.labelled("rag", said, "red" if broken else ""), *writer.labelled("", _by(found))]


def _by(found: Answered) -> str:
    """Say who answered and who judged. That somebody is no LLM is said."""
    if len(found.authors) == 1 == len(found.judges) and _no_llm(found.authors[0]) and _no_llm(found.judges[0]):
        return f"by {_name(found.authors[0])}, judged by {_name(found.judges[0])}: NOT LLMs"
    by = [f"by {', '.join(map(_author, found.authors))}"] if found.authors else []
    return "; ".join([*by, f"judged by {', '.join(map(_author, found.judges))}" if found.judges else "no judge"])


def _origins(found: Answered) -> Iterator[str]:
    """Yield where answers come from; without their number where that is all of them."""
    every = f"{found.rows:,} "
    said = [each.removeprefix(every) if len(found.origins) == 1 else each for each in found.origins]
    if said:
        yield ", ".join(said).replace(" (", f"{_TIE}(")


def _author(said: str) -> str:
    """Return a model's name. That it is no LLM is said in three words."""
    return f"{_name(said)}, NOT{_TIE}an{_TIE}LLM" if _no_llm(said) else said


def _name(said: str) -> str:
    return said.partition(" (")[0]


def _no_llm(said: str) -> bool:
    return said.endswith(("not an LLM)", "no LLM)"))


def _gates(state: GatesState, writer: _Writer) -> list[Line]:
    if not state.total:
        return writer.labelled("gates", f"none: nothing stops a release. Set rag_gate, e.g. {_EXAMPLE}", "yellow")
    counts = state.counts
    bad = sum(counts.get(name, 0) for name in ("failed", "stale", "xpassed"))
    said = [f"{counts.get('passed', 0)} passed", f"{bad} failed"]
    said += [f"{counts[name]} {words}" for name, words in _OTHER_STATES.items() if counts.get(name)]
    needs = f" (need {listed(state.needed, _FEW_NEEDED)})" if state.needed and counts.get("not judged") else ""
    colour = _COLOURS.get(state.verdict, "yellow")
    word = f"{state.verdict}{_TIE}{_TIE} " if state.verdict else ""
    lines = writer.labelled("gates", f"{word}{', '.join(said)}{needs}", colour)
    if state.closest is not None and not state.failed:
        lines += _gate("closest", state.closest, "", writer)
    return lines


_EXAMPLE = "e3: recall@5 >= 0.8"
_COLOURS: Mapping[str, Colour] = {"FAIL": "red", "PASS": "green"}
_OTHER_STATES = {"inconclusive": "undecided", "xfailed": "failed as expected", "not judged": "not judged"}


def _quality(found: SuiteTable, writer: _Writer) -> Iterator[Line]:
    said = []
    for name in [each for each in _MEASURES if found.has(each)][:_FEW_MEASURES]:
        unit, between = found.columns[name].measure.unit, found.interval(name)
        mean = value_said(found.aggregate([name])[name] or 0.0, unit)
        said.append(f"{name} {mean}{f' {bounds(*between, unit)}' if between else ''}".replace(" ", _TIE))
    if said:
        yield from writer.labelled("quality", f"{_TIE} ".join(said))


def _kinds(found: SuiteTable, writer: _Writer) -> list[Line]:
    shares = {kind: share for kind, share in found.shares().items() if share}
    if not shares:
        declined = found.totals.abstained
        return writer.labelled("answers", f"{declined:,} of {found.totals.answered:,} declined; kinds need a judge")
    good = [kind for kind in ("Clean Pass", CORRECT_ABSTENTION) if kind in shares]
    ordered = [*good, *sorted((kind for kind in shares if kind not in good), key=lambda kind: -shares[kind])]
    said = [f"{percent(shares[kind])} {_KINDS.get(kind, kind.lower())}" for kind in ordered[:_FEW_KINDS]]
    rest = sum(shares[kind] for kind in ordered[_FEW_KINDS:])
    said += [f"{percent(rest)} others"] if rest else []
    return writer.labelled("answers", ", ".join(said).replace(" %", f"{_TIE}%"))


def _table(brief: Brief, writer: _Writer) -> Iterator[Line]:
    tables = brief.tables
    columns = [name for name in _MEASURES if any(found.has(name) for found in tables.values())]
    names = [name for field in brief.fields for name in field.names]
    twins = {name: group[0] for field in brief.fields for group in field.equals for name in group[1:]}
    rows = [["", *(_SHORT.get(each, each) for each in columns), "declined", "short"]]
    shown = [name for name in names if name not in twins][:_FEW_ROWS]
    for name in shown:
        found, short = tables[name], brief.shortfalls.get(name)
        means = found.aggregate([each for each in columns if each in found.columns])
        cells = ["-" if means.get(each) is None else value_said(means[each] or 0.0) for each in columns]
        fell = "-" if short is None or short.is_sample else f"{short.n}"
        same = [twin for twin, first in twins.items() if first == name]
        title = " = ".join([name, *same]) if len(same) < 3 else f"{name} = {len(same)} others"
        rows.append([title, *cells, f"{found.totals.abstained}", fell])
    widths = [max(len(row[n]) for row in rows) + 2 for n in range(1, len(rows[0]))]
    wanted = min(max(len(row[0]) for row in rows), _WIDEST_NAME)
    while len(widths) > 3 and wanted + sum(widths) > writer.width:
        # The last measure gives way: declined answers and those that fall short say more.
        rows = [[*row[:-3], *row[-2:]] for row in rows]
        del widths[-3]
    room = writer.width - sum(widths)
    yield from (Line(line.rstrip()) for line in table([[_middle(row[0], room), *row[1:]] for row in rows]))
    if more := len(names) - len(twins) - len(shown):
        yield Line(f"… and {more} more: -v")


def _middle(name: str, room: int) -> str:
    """Return a name in at most so many columns, cut in its middle: variants differ at the end."""
    return name if len(name) <= room else f"{name[: room // 2 - 1]}…{name[-(room - room // 2) :]}"


def _best(brief: Brief, writer: _Writer) -> Iterator[Line]:
    for field in [field for field in brief.fields if len(field.names) > 1][:_FEW_FIELDS]:
        on = f"{field.data}: " if len(brief.fields) > 1 else ""
        said = " ".join(filter(None, [winners_said(field), *equals_said(field, brief)]))
        sure = any(lead.is_sure for lead in field.leads)
        yield from writer.labelled("best", f"{on}{said}", "green" if sure else "yellow", most=3)
        for lead in surest(field):
            yield from _lead(lead, writer)


def _lead(lead: Lead, writer: _Writer) -> Iterator[Line]:
    cell, unit = lead.nearest, lead.standing.unit
    label = "  finds" if lead.standing.measure in RETRIEVAL else "  says"
    head = f"{lead.standing.measure} {value_said(lead.standing.mean, unit)}"
    if cell is None or cell.found is None:
        yield from writer.labelled(label, f"all the same: {head}")
        return
    between = f" {bounds(*cell.found.interval, unit, signed=True)}" if cell.found.interval else ""
    ahead = f"{cell.found.difference:+.3f}{between} over {cell.second}"
    word: tuple[str, Colour] = ("SURE", "green") if lead.is_sure else ("NOT SURE", "yellow")
    more = f"; {lead.more:,} more questions would settle it" if lead.more and not lead.is_sure else ""
    yield from writer.labelled(label, f"{word[0]}: {listed(lead.best)}, {head}, {ahead}{more}", word[1])


def _of(sentences: Iterable[Sentence], topic: str) -> list[Sentence]:
    return [each for each in sentences if each.topic == topic]


def _why(brief: Brief, writer: _Writer) -> Iterator[Line]:
    if not brief.shortfalls:
        for sentence in _of(first_sentences(brief), "why"):
            yield from writer.labelled("why", sentence.text)
        return
    found = brief.shortfalls.get(brief.subject) or next(iter(brief.shortfalls.values()))
    yield from writer.labelled("why", _causes(found), most=2)
    yield Line(writer.cut(f"{'worst':<{_LABEL}}{found.worst}  {found.evidence}"))


def _causes(found: Shortfall) -> str:
    causes = ", ".join(f"{n:,} {cause.lower()}" for cause, n in found.causes.items())
    if found.is_sample:
        return f"{found.experiment}: of the worst {found.n:,} of {found.answers:,}: {causes}"
    detail = f" (most: {found.detail})" if found.detail else ""
    return f"{found.experiment}: {found.n:,} of {found.answers:,} fall short: {causes}{detail}"


def _next(brief: Brief, output: str, report: str, writer: _Writer) -> Iterator[Line]:
    found = brief.shortfalls.get(brief.subject)
    if found is not None:
        yield from writer.labelled("next", found.remedy)
        yield Line(f"{'':<{_LABEL}}{_explain(brief, output)}")
    else:
        yield Line(f"{'next':<{_LABEL}}{_explain(brief, output)}")
    if not report:
        yield Line(f"{'':<{_LABEL}}rag-harness report {output} -o report.html")


def _explain(brief: Brief, output: str) -> str:
    found = brief.shortfalls.get(brief.subject)
    trial = found.worst if found else next((gate.worst for gate in brief.gates.failed if gate.worst), "TRIAL")
    return f"rag-harness explain {output} {trial}"


def plural(n: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
