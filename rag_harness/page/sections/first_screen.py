"""The first screen of the report, the tables of gates, and the decisions behind gates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rag_harness.core.types import GOLDEN
from rag_harness.page.content import NONE, Block, Cell, More, Prose, Section, Table, Tone, Topic, Topics, word_cells
from rag_harness.page.drawings import figure as compared
from rag_harness.page.estimates import gate_bar
from rag_harness.page.run import SIGNS, Run, caveats, last_run_lines, run_outcome
from rag_harness.page.sections.comparison import first_change
from rag_harness.runs.gates import Gate as GatesGate
from rag_harness.runs.gates import Reference
from rag_harness.runs.gates.configuration import gate_or_none
from rag_harness.runs.gates.evidence import beside_bounds, how_sure
from rag_harness.runs.gates.verdict import equal, limit_said, told_apart
from rag_harness.tables.brief_sentences import Sentence, first_sentences
from rag_harness.tables.gate_states import BAD
from rag_harness.tables.wording import counted, listed

# Reads a gate from ``summary.json``: its text, and how sure its value is.

TONES: Mapping[str, Tone] = {
    "passed": "good",
    "failed": "bad",
    "stale": "bad",
    "xpassed": "bad",
    "undecided": "unsure",
    "xfailed": "unsure",
}


def cutoff(run: Run) -> int:
    """Return the run's k, the value of ``@k``."""
    return int(run.manifest.settings.get("k") or 10)


def sureness_head(gates: Sequence[Mapping[str, Any]]) -> str:
    """Return the name of the column of ``sureness``."""
    return "95 % interval or bound" if any(gate.get("bounds") for gate in gates) else "95 % interval"


def sureness(said: Mapping[str, Any], gate: GatesGate | None) -> str:
    """Return the bound that decides a gate with ``@``, of any other the 95 % interval of its value or difference."""
    return how_sure(said, gate, digits=3) or NONE


def counted_cases(said: Mapping[str, Any]) -> str:
    """Return how many cases have a value, of how many, and on how many pages or in how many conversations they are."""
    of = f" of {said['of']:,}" if said.get("of", 0) > said["n"] else ""
    alike = f" {said['alike']}" if said.get("alike") else ""
    declined = f", {said['declined']:,} declined" if said.get("declined") else ""
    return f"{said['n']:,}{of}{alike}{declined}"


# The gates of a run: a sentence that counts them, the open and failed ones as a table, the others folded.

_ORDER = ("failed", "stale", "xpassed", "undecided", "xfailed", "passed", "not judged")
_ALWAYS = ("failed", "undecided", "not judged")
"""States that are always counted, even with no gate."""
_FOLDED = ("passed", "not judged")
_WORST = "worst trial"

Gate = Mapping[str, Any]


def gates_said(run: Run) -> Iterator[Block]:
    """Yield the count of the verdicts, those that need somebody, and the others, folded."""
    yield _sentence(run)
    # sorted is stable: gates with the same state keep their order.
    ordered = sorted(run.gates, key=lambda gate: _ORDER.index(gate["state"]) if gate["state"] in _ORDER else 0)
    loud = [gate for gate in ordered if gate["state"] not in _FOLDED]
    if loud:
        yield _table(run, "gates", loud, "Gates that did not pass, failed ones first")
    for state in _FOLDED:
        quiet = [gate for gate in ordered if gate["state"] == state]
        if quiet:
            name = f"gates-{state.replace(' ', '-')}"
            yield More(_title(run, state, len(quiet)), [_table(run, name, quiet, f"Gates: {state}")])


def _title(run: Run, state: str, n: int) -> str:
    if state == "passed":
        return f"{counted(n, 'gate')} passed"
    needs = run.brief.gates.needed
    return f"{counted(n, 'gate')} not judged" + (f": {listed(needs)} did not run here" if needs else "")


def _sentence(run: Run) -> Prose:
    """Say how many gates have each verdict, or why there are none."""
    if not run.selected and not run.gates:
        return Prose("No gates were judged: no trial was selected in this run.", "unsure")
    if not run.gates:
        return Prose(f"No gates were judged: {_why_none(run)}.", "unsure")
    states = Counter(gate["state"] for gate in run.gates)
    named = [state for state in _ORDER if state != "passed" and (states[state] or state in _ALWAYS)]
    said = ", ".join(f"{states[state]} {state}" for state in named)
    is_bad = any(states[state] for state in BAD)
    tone: Tone = "bad" if is_bad else "good" if states["passed"] and not states["undecided"] else "unsure"
    return Prose(f"{counted(states['passed'], 'gate')} passed, {said}.", tone)


def _why_none(run: Run) -> str:
    if not run.summary:
        return "there is no summary.json of this run beside its rows, which says how they came out"
    return "none is set (--rag-gate, or rag_gate in the ini file)"


def _table(run: Run, name: str, gates: Sequence[Gate], caption: str) -> Table:
    worst = {line.condition: line.worst for line in run.brief.gates.failed if line.worst}
    rows = [_row(gate, cutoff(run), f"{name}-{n}") for n, gate in enumerate(gates)]
    figures = ("value", "limit", sureness_head(gates), "n", "against the limit")
    head = ("gate", "state", *figures, "why, and what would settle it")
    if name != "gates" or not worst:
        return Table(name, head, rows, caption, list(_notes(gates)))
    found = [worst.get(gate["gate"], "") for gate in gates]
    # The page lists only trials of experiments, so those of the golden suite have no link.
    linked = [trial if trial and not trial.startswith(f"{GOLDEN}-") else "" for trial in found]
    links = [Cell(trial, trial=run.address(to) if to else "") for trial, to in zip(found, linked, strict=True)]
    rows = [[*row, link] for row, link in zip(rows, links, strict=True)]
    return Table(name, (*head, _WORST), rows, caption, list(_notes(gates)))


def _row(said: Gate, k: int, ident: str) -> list[Cell]:
    tone = TONES.get(said["state"], "mute")
    gate = gate_or_none(said["gate"], k)
    state, reason = Cell(said["state"], tone), beside_bounds(said, gate)
    if said.get("value") is None or said.get("threshold") is None:
        return [Cell(said["gate"]), state, *word_cells(NONE, NONE, NONE, str(said.get("n", 0)), "", reason)]
    value, threshold, unit = said["value"], said["threshold"], said.get("unit", "share")
    shown = told_apart(value, threshold, unit, equal(value, threshold))
    drawing = gate_bar(said, gate, tone, ident) if gate else ""
    limit = limit_said(gate, threshold, shown[1], unit)
    figures = word_cells(shown[0], limit, sureness(said, gate), counted_cases(said))
    return [Cell(said["gate"]), state, *figures, Cell("", drawing=drawing), Cell(reason)]


def _notes(gates: Sequence[Gate]) -> Iterator[str]:
    judged = [gate for gate in gates if gate["state"] != "not judged"]
    if any("confidence" not in gate for gate in judged):
        yield (
            "The interval says how far the value could move with other questions of the same kind; the value decides."
        )
    if any("confidence" in gate for gate in gates):
        yield (
            "Of a gate with @ a bound decides instead: with that confidence the value is at least, or at most, so high "
            "for questions like these. With bounds on both sides of the limit the gate is undecided."
        )


# The first screen: which experiment is best, how sure that is, why answers are wrong, what to do; then the gates.

_LABELS = {
    "found": "What was found",
    "wrong": "Wrong answers",
    "best": "Which is best",
    "sure": "How sure",
    "why": "Why answers are wrong",
    "next": "What to do next",
}
_RETRIEVAL_ALONE = (
    "This is a retrieval suite, also called the golden suite: documents were looked up for each question, and nothing "
    "was answered. Every question stands below, the misses first."
)
_MOST = 2
"""Most sets of data that are spoken of first. The others are in their sections."""
_WORST_FIRST: Sequence[Tone] = ("bad", "unsure", "good", "")


def first_screen(runs: Sequence[Run]) -> Section:
    """Return what a reader of the first run has to know in ten seconds."""
    return Section("first", "In short", list(_blocks(runs)))


def _blocks(runs: Sequence[Run]) -> Iterator[Block]:
    run = runs[0]
    yield from _outcome(run)
    topics = [*_changed(runs), *_topics(run)]
    if topics:
        yield Topics(topics)
    if run.brief.tables and topics:
        yield Prose(_answered(run), "bad" if run.brief.answered.errors or run.brief.answered.lost else "mute")
    if run.brief.alone is not None:
        yield Prose(_RETRIEVAL_ALONE, "mute")
    yield from (Prose(said, "unsure") for said in caveats(run))
    yield from gates_said(run)
    figure = compared(run)
    if figure is not None:
        yield figure


def _outcome(run: Run) -> Iterator[Block]:
    """Yield what the verdicts of its gates alone do not say: the run has failed, a later one left no results, or gates
    were judged on a part of the questions."""
    is_red = bool(run.brief.failures) or run.begun is not None
    if is_red or run.brief.gates.part:
        word, said = run_outcome(run.brief, run)
        yield Prose(f"{SIGNS[word]} {word}: {said.replace('`', '')}.", "bad" if is_red else "unsure")
    yield from (Prose(each, "bad") for each in last_run_lines(run))


def _changed(runs: Sequence[Run]) -> Iterator[Topic]:
    """Yield what changed since the run before, where there is one."""
    for said in first_change(runs):
        yield Topic("changed", "What changed", [said.text], said.tone)


def _topics(run: Run) -> list[Topic]:
    said: dict[str, list[Sentence]] = {}
    for sentence in first_sentences(run.brief):
        said.setdefault(sentence.topic, []).append(sentence)
    return [_topic(topic, said[topic], run) for topic in _LABELS if topic in said]


def _topic(topic: str, sentences: Sequence[Sentence], run: Run) -> Topic:
    texts, more = [each.text for each in sentences[:_MOST]], len(sentences) - _MOST
    if more > 0:
        texts.append(f"On {more} other sets of data: see below.")
    tone = next(tone for tone in _WORST_FIRST if any(each.tone == tone for each in sentences))
    found = run.brief.shortfall
    trial = run.address(found.worst) if topic == "next" and found is not None else ""
    return Topic(topic, _LABELS[topic], texts, tone, trial)


def _answered(run: Run) -> str:
    """Say how many questions were answered, by which model, and who judged."""
    found = run.brief.answered
    broken = [counted(found.errors, "error")] if found.errors else []
    broken += [f"{found.lost:,} without a result"] if found.lost else []
    by = f" by {', '.join(found.authors)}" if found.authors else ""
    judges = f"judged by {', '.join(found.judges)}" if found.judges else "no judge"
    return f"{'; '.join([f'{found.rows:,} of {found.asked:,} answered{by}', *broken, *found.origins, judges])}."


# The section of decisions: assumptions, measured values and agreed actions of the gates with an ``else``.

_NOTE = (
    "What to do is written behind the gate, after else. A gate that failed because values are missing decides nothing."
)


def decisions(runs: Sequence[Run]) -> Section | None:
    """Return the first run's gates that say what to do, in their order; None where there are none."""
    run = runs[0]
    gates = [gate for gate in run.gates if gate.get("otherwise")]
    if not gates:
        return None
    rows = [_decision_row(gate, cutoff(run)) for gate in gates]
    head = ("assumption", "measured", sureness_head(gates), "n", "verdict", "what to do")
    caption = "Assumptions, and what was agreed to do where one does not hold"
    return Section("decisions", "Decisions", [Table("decisions", head, rows, caption, [_NOTE])])


def _decision_row(said: Mapping[str, Any], k: int) -> list[Cell]:
    gate, state = gate_or_none(said["gate"], k), said["state"]
    verdict, to_do = Cell(state, TONES.get(state, "mute")), Cell(_to_do(said, gate))
    if said.get("value") is None or said.get("threshold") is None:
        return [*word_cells(said["gate"], NONE, NONE, str(said.get("n", 0))), verdict, to_do]
    unit = said.get("unit", "share")
    figures = word_cells(said["gate"], _measured(said, unit, gate), sureness(said, gate), counted_cases(said))
    return [*figures, verdict, to_do]


def _measured(said: Mapping[str, Any], unit: str, gate: GatesGate | None) -> str:
    """Return the measured value, or both values of two suites because the gate's text has neither."""
    value, threshold = said["value"], said["threshold"]
    shown = told_apart(value, threshold, unit, equal(value, threshold))
    if gate is None or not isinstance(gate.right, Reference):
        return shown[0]
    return f"{shown[0]} against {limit_said(gate, threshold, shown[1], unit)}"


def _to_do(said: Mapping[str, Any], gate: GatesGate | None) -> str:
    state, reason, text = said["state"], beside_bounds(said, gate), str(said["otherwise"])
    if state == "passed":
        return "keep"
    if state not in ("failed", "undecided"):
        return reason
    return text if said.get("due") else f"undecided{f': {reason}' if reason else ''}; if it does not hold: {text}"
