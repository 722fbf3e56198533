"""The baseline reader: it quotes the context's best units with citations, or says that there is no answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_harness.models.reader.findings import Findings, gather
from rag_harness.models.reader.prompt import parse_prompt
from rag_harness.models.reader.prompt_languages import languages_in
from rag_harness.models.reader.question import read_question
from rag_harness.models.reader.steps import explain
from rag_harness.words.citation_marks import without_marks
from rag_harness.words.languages import rules_of

NOT_IN_CONTEXT = "I don't know. The provided context does not answer this."
WITHOUT_CONTEXT = "I don't know."

MIN_SUPPORT = 0.6
"""Least support of an answer. ``benchmarks/reader_calibration.py`` chose it on a half of MTRAG-UN, never on the study.

The rule: thresholds are 0.05 apart. Of those with a balanced accuracy within a standard error of the best, the lowest
is chosen, because it refuses least. On the held-out half, with the last turn alone, it refuses 16 % of the answerable
and 34 % of the unanswerable tasks (balanced accuracy 0.59; with 0.5 and no story weight 19 %, 25 % and 0.53). With a
letter around the question it refuses 39 % and 36 % (0.49: no better than chance; before, it refused all).
"""


@dataclass(frozen=True, slots=True)
class ReaderAnswer:
    """The result. ``support`` is the share of the question's weight that the answer's units and their source cover."""

    answer: str
    steps: tuple[str, ...] = ()
    supported: bool = False
    support: float = 0.0
    citations: tuple[int, ...] = ()


def reader_answer(messages: Sequence[Mapping[str, Any]], wants_steps: bool = False) -> ReaderAnswer:
    """Answer the last user message from its own context. The same messages give the same reading."""
    prompt = parse_prompt(messages)
    languages = languages_in(prompt)
    question = read_question(prompt.question, languages.question)
    findings = gather(prompt, question, languages.sources)
    supported = findings.support >= MIN_SUPPORT
    cited = tuple(dict.fromkeys(c.unit.source for c in findings.chosen)) if supported else ()
    refusal = _refusal(languages.question, with_context=bool(prompt.sources))
    return ReaderAnswer(
        answer=_quote(findings) if supported else refusal,
        steps=explain(prompt, question, findings, cited) if wants_steps else (),
        supported=supported,
        support=findings.support,
        citations=cited,
    )


def _refusal(language: str, with_context: bool) -> str:
    """Return how the reader says that it does not know: in the question's language, or in English without its rules."""
    rules = rules_of(language)
    if rules:
        return f"{rules.refusal} {rules.about_context}" if with_context else rules.refusal
    return NOT_IN_CONTEXT if with_context else WITHOUT_CONTEXT


def _quote(findings: Findings) -> str:
    """Join sentences in one paragraph. A row or item gets a line of its own; the first one follows its lead-in."""
    written, introduced, flows = "", set[str](), True
    for unit in (candidate.unit for candidate in findings.chosen):
        lead = unit.above[-1] if unit.above[-1].endswith(":") and unit.above[-1] not in introduced else ""
        introduced.add(lead)
        flowed, flows = flows, unit.text.endswith((".", "!", "?"))
        gap = (" " if flowed and flows else "\n") if written else ""
        # Removing markup, or writing a table as a line, may create a citation mark.
        quoted = without_marks(f"{lead}{' ' if lead else ''}{unit.text}")
        written += f"{gap}{quoted} [Source {unit.source}]"
    return written
