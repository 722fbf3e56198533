"""Decides without an LLM whether an answer is right, by ``words.answer_match``.

It is compared with the ground truth, or else with the vital quotes of the evidence: an answer in the words of the page
is as right as one in the words of the gold. ``measures.judged.nuggets.vital`` decides which quotes are vital.

The limits are those of comparing words. An answer in other words is not checked. An answer with all words and
figures in the wrong roles ("A costs more than B") may be called right. The purpose is to find what *changed* between
two answers to one question; the quality of an answer is told by a judge's scores.
"""

from __future__ import annotations

from dataclasses import dataclass

from rag_harness.measures.judged.nuggets import vital
from rag_harness.types import Case
from rag_harness.words.abstention import declines
from rag_harness.words.answer_match import answer_match
from rag_harness.words.citation_marks import CITATION
from rag_harness.words.comparison import compared_words
from rag_harness.words.language import unruled
from rag_harness.words.terms import NUMBER_WORDS, terms, written_numbers

LEAST_FIGURES, LEAST_WORDS = 2 / 3, 0.5
"""Least shares of the figures and of the content words of a text that an answer must have."""


@dataclass(frozen=True, slots=True)
class Rightness:
    """The rightness of an answer.

    Attributes:
        value: mean share of the parts of the gold that the answer has, in [0, 1]; None where the case has no gold, or
            where the rule cannot tell whether the answer is right.
        right: whether the answer says what the gold says; for an unanswerable case, whether the answer declines.
    """

    value: float | None
    right: bool


def rightness(case: Case, answer: str, abstained: bool) -> Rightness:
    """Return the rightness of ``answer`` by the gold of its case."""
    declined = abstained or declines(answer)
    if not case.answerable:
        return Rightness(None, False) if not declined and unruled(answer) else Rightness(float(declined), declined)
    wanted = [text for text in (case.ground_truth, _vital_quotes(case)) if compared_words(text)]
    if not wanted:
        return Rightness(None, False)
    if declined or not answer.strip():
        return Rightness(0.0, False)
    found = [answer_match(case.query.text, text, answer) for text in wanted]
    told = [Rightness(each.share, each.agrees) for each in found if each.agrees is not None]
    return max(told, key=lambda each: (each.right, each.value), default=Rightness(None, False))


def needed_quotes(case: Case) -> list[str]:
    """Return the quotes that the ground truth depends on, as written; all quotes where none is vital."""
    quotes = [one.quote for one in case.evidence if one.quote.strip()]
    return [quote for quote in quotes if vital(quote, case.ground_truth)] or quotes


def carries(text: str, wanted: str) -> bool:
    """Return whether a text has enough of the figures and content words of ``wanted``."""
    return bool(text) and bool(plain_terms(wanted) or written_numbers(wanted)) and _carried(text, wanted).right


def plain_terms(text: str) -> frozenset[str]:
    """Return the content words of a text, stemmed, without figures and citations."""
    return frozenset(
        word for word in terms(CITATION.sub(" ", text)) if not word[0].isdigit() and word not in NUMBER_WORDS
    )


def share_within(part: frozenset[str], whole: frozenset[str]) -> float:
    """Return the share of ``whole`` that is in ``part``; 1 where ``whole`` is empty."""
    return len(part & whole) / len(whole) if whole else 1.0


def _carried(answer: str, text: str) -> Rightness:
    numbers, words = written_numbers(text), plain_terms(text)
    in_figures, in_words = share_within(written_numbers(answer), numbers), share_within(plain_terms(answer), words)
    value = (in_figures + in_words) / 2 if numbers else in_words
    return Rightness(value, in_figures >= LEAST_FIGURES and in_words >= LEAST_WORDS)


def _vital_quotes(case: Case) -> str:
    return " ".join(quote for quote in needed_quotes(case) if vital(quote, case.ground_truth))
