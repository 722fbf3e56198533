"""Say in a few sentences how an answer came about; the reasoning of a baseline reader, written from its own numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rag_harness.reader.evidence import Conflict, Evidence
from rag_harness.reader.prompt import Prompt
from rag_harness.reader.question import Question

SHOWN = 5


def explain(prompt: Prompt, question: Question, evidence: Evidence, cited: tuple[int, ...]) -> tuple[str, ...]:
    """Return the steps: what to check, key terms, sources, conflicts, completeness, conclusion."""
    names = {source.number: f"source {source.number} ({source.filename})" for source in prompt.sources}
    return (
        f"Check what the {len(names)} sources say{_wanted(question)}." if names else "There is no context to check.",
        f"Key terms of the question: {_listed(question.words.values())}.",
        _relevance(question, evidence, names),
        *_conflicts(evidence, names),
        _completeness(question, evidence),
        _conclusion(evidence, cited, names),
    )


def _wanted(question: Question) -> str:
    return f" and look for {question.kind}" if question.kind else ""


def _relevance(question: Question, evidence: Evidence, names: Mapping[int, str]) -> str:
    order = sorted(evidence.relevant, key=lambda number: (-len(evidence.relevant[number]), number))[:SHOWN]
    said = [f"{names[n]} covers {_listed(_asked(question, evidence.relevant[n]))}" for n in order]
    return f"Relevant: {'; '.join(said)}." if said else "No source is relevant: none holds a key term."


def _conflicts(evidence: Evidence, names: Mapping[int, str]) -> tuple[str, ...]:
    if evidence.conflicts:
        return tuple(_conflict(conflict, names) for conflict in evidence.conflicts[:SHOWN])
    used = sorted({candidate.unit.source for candidate in evidence.chosen})
    return (f"No conflicts between sources {' and '.join(map(str, used))}.",) if len(used) > 1 else ("No conflicts.",)


def _conflict(conflict: Conflict, names: Mapping[int, str]) -> str:
    pair = f"{names[conflict.first]} and {names[conflict.second]}"
    if not conflict.kept:
        return f"Possible conflict: {pair} give different figures, and nothing says which is current."
    old = conflict.first + conflict.second - conflict.kept
    return f"Conflict: {pair} are two versions; {names[conflict.kept]} is current, so source {old} is set aside."


def _completeness(question: Question, evidence: Evidence) -> str:
    missing = _asked(question, question.terms - evidence.covered.share.keys())
    lacks_kind = bool(question.kind) and not evidence.covered.kind
    gaps = [f"not covered: {_listed(missing)}"] * bool(missing) + [f"{question.kind} was not found"] * lacks_kind
    return f"Completeness: {'; '.join(gaps) or 'every key term is covered'}."


def _conclusion(evidence: Evidence, cited: tuple[int, ...], names: Mapping[int, str]) -> str:
    percent = f"{evidence.support:.0%} of the question's weight"
    if not cited:
        return f"Conclusion: the context supports only {percent}, too little to answer."
    verb = "support" if len(cited) > 1 else "supports"
    return f"Conclusion: {' and '.join(names[number] for number in cited)} {verb} {percent}; answer from there."


def _asked(question: Question, keys: Iterable[str]) -> list[str]:
    wanted = frozenset(keys)
    return [word for key, word in question.words.items() if key in wanted]


def _listed(words: Iterable[str]) -> str:
    shown = list(words)
    more = f" and {len(shown) - 2 * SHOWN} more" if len(shown) > 2 * SHOWN else ""
    return ", ".join(shown[: 2 * SHOWN]) + more or "none"
