"""The reasoning steps of the baseline reader: a few sentences about an answer, written from its numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rag_harness.models.reader.findings import Conflict, Findings
from rag_harness.models.reader.prompt import Prompt
from rag_harness.models.reader.question import QuestionTerms

SHOWN_PER_STEP = 5


def explain(prompt: Prompt, question: QuestionTerms, findings: Findings, cited: tuple[int, ...]) -> tuple[str, ...]:
    """Return the steps: what to check, key terms, sources, conflicts, completeness, conclusion."""
    names = {source.number: f"source {source.number} ({source.filename})" for source in prompt.sources}
    return (
        f"Check what the {len(names)} sources say{_wanted(question)}." if names else "There is no context to check.",
        f"Key terms of the question: {_listed(question.words.values())}.",
        _relevance(question, findings, names),
        *_conflicts(findings, names),
        _completeness(question, findings),
        _conclusion(findings, cited, names),
    )


def _wanted(question: QuestionTerms) -> str:
    return f" and look for {question.kind}" if question.kind else ""


def _relevance(question: QuestionTerms, findings: Findings, names: Mapping[int, str]) -> str:
    order = sorted(findings.relevant, key=lambda number: (-len(findings.relevant[number]), number))[:SHOWN_PER_STEP]
    said = [f"{names[n]} covers {_listed(_asked(question, findings.relevant[n]))}" for n in order]
    return f"Relevant: {'; '.join(said)}." if said else "No source is relevant: none holds a key term."


def _conflicts(findings: Findings, names: Mapping[int, str]) -> tuple[str, ...]:
    if findings.conflicts:
        return tuple(_conflict(conflict, names) for conflict in findings.conflicts[:SHOWN_PER_STEP])
    used = sorted({candidate.unit.source for candidate in findings.chosen})
    return (f"No conflicts between sources {' and '.join(map(str, used))}.",) if len(used) > 1 else ("No conflicts.",)


def _conflict(conflict: Conflict, names: Mapping[int, str]) -> str:
    pair = f"{names[conflict.first]} and {names[conflict.second]}"
    if not conflict.kept:
        return f"Possible conflict: {pair} give different figures, and nothing says which is current."
    old = conflict.first + conflict.second - conflict.kept
    return f"Conflict: {pair} are two versions; {names[conflict.kept]} is current, so source {old} is set aside."


def _completeness(question: QuestionTerms, findings: Findings) -> str:
    missing = _asked(question, question.terms - findings.covered.share.keys())
    lacks_kind = bool(question.kind) and not findings.covered.kind
    gaps = [f"not covered: {_listed(missing)}"] * bool(missing) + [f"{question.kind} was not found"] * lacks_kind
    return f"Completeness: {'; '.join(gaps) or 'every key term is covered'}."


def _conclusion(findings: Findings, cited: tuple[int, ...], names: Mapping[int, str]) -> str:
    percent = f"{findings.support:.0%} of the question's weight"
    if not cited:
        return f"Conclusion: the context supports only {percent}, too little to answer."
    verb = "support" if len(cited) > 1 else "supports"
    return f"Conclusion: {' and '.join(names[number] for number in cited)} {verb} {percent}; answer from there."


def _asked(question: QuestionTerms, keys: Iterable[str]) -> list[str]:
    wanted = frozenset(keys)
    return [word for key, word in question.words.items() if key in wanted]


def _listed(words: Iterable[str]) -> str:
    shown = list(words)
    more = f" and {len(shown) - 2 * SHOWN_PER_STEP} more" if len(shown) > 2 * SHOWN_PER_STEP else ""
    return ", ".join(shown[: 2 * SHOWN_PER_STEP]) + more or "none"
