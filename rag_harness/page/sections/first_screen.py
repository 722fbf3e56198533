"""The first screen: which experiment is best, how sure that is, why answers are wrong, what to do; then the gates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag_harness.page.caveats import caveats
from rag_harness.page.content import Block, Prose, Section, Tone, Topic, Topics
from rag_harness.page.drawings.compared_means import figure as compared
from rag_harness.page.outcome import SIGNS, last_run_lines, run_outcome
from rag_harness.page.run import Run
from rag_harness.page.sections.diff import first_change
from rag_harness.page.sections.gate_tables import gates_said
from rag_harness.report.brief import Sentence, first_sentences
from rag_harness.report.wording import counted

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
"""Most sets of data that are spoken of first. The others stand in their sections."""
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
