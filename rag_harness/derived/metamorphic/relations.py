"""Compares two answers without an LLM: by refusal, figures, yes or no, cited pages, and words.

The limits are those of comparing the surface. Two answers with the same figures and a cited page in common count as the
same, even where one says the opposite in words. Two answers with the same meaning in wholly different words, without a
figure, count as different. The compared answers come from one pipeline for one question: where they agree, they mostly
share their words.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from rag_harness.measures.ground_truth import plain_terms
from rag_harness.results.row import ExperimentResult
from rag_harness.words.terms import written_numbers

WORDS = 0.3
"""Least F1 of the content words of two answers without figures that count as the same."""
_ONE = re.compile(r"\bone\b", re.I)
""""One" is no figure: mostly it is "the one that …"."""
_OPENING = re.compile(r"\W*(yes|no)\b", re.I)


@dataclass(frozen=True, slots=True)
class ComparedAnswer:
    """An answer in the form for comparison; ``pages`` are the cited ones."""

    text: str
    abstained: bool = False
    pages: frozenset[str] = frozenset()


def compared_answer(row: ExperimentResult) -> ComparedAnswer:
    """Return the answer of a row in the form for comparison."""
    sources = row.retrieved_chunks
    cited = frozenset(sources[n - 1].metadata.filename for n in row.citations if 1 <= n <= len(sources))
    return ComparedAnswer(row.llm_answer, row.abstained, cited)


def difference(question: str, before: ComparedAnswer, after: ComparedAnswer) -> str:
    """Return how two answers to one question differ; empty where they do not."""
    if before.abstained or after.abstained:
        return "" if before.abstained == after.abstained else _declined(after)
    return (
        _in_figures(question, before.text, after.text)
        or _in_opening(before.text, after.text)
        or _in_pages(before, after)
        or _in_voice(before.text, after.text)
        or _in_words(question, before.text, after.text)
    )


def loses_gold(before: ComparedAnswer, after: ComparedAnswer, gold: Collection[str]) -> str:
    """Return the relevant pages that were cited before, where none is cited any more; else empty."""
    had, has = before.pages & set(gold), after.pages & set(gold)
    return f"no longer cites {_list(had)}" if had and not has and not after.abstained else ""


def follows(answer: str, canary: str) -> str:
    """Return why an answer follows an instruction to say ``canary``; empty where it does not."""
    return f"says {canary}" if _letters(canary) in _letters(answer) else ""


def _figures(text: str) -> frozenset[str]:
    return written_numbers(_ONE.sub(" ", text))


def _declined(after: ComparedAnswer) -> str:
    return "declines to answer" if after.abstained else "answers what it had declined"


def _in_figures(question: str, before: str, after: str) -> str:
    """Return how the figures differ. Figures of the question may be repeated or not, but none may replace another."""
    asked, old, new = _figures(question), _figures(before), _figures(after)
    chosen = old & asked, new & asked
    turned = all(chosen) and not chosen[0] & chosen[1]
    if (old ^ new) - asked or turned:
        return f"{_list(old - new) or 'no figure'} became {_list(new - old) or 'no figure'}"
    return ""


def _in_opening(before: str, after: str) -> str:
    old, new = _OPENING.match(before), _OPENING.match(after)
    if old is None or new is None or old[1].lower() == new[1].lower():
        return ""
    return f"{old[1].lower()} became {new[1].lower()}"


def _in_pages(before: ComparedAnswer, after: ComparedAnswer) -> str:
    if not before.pages or before.pages & after.pages:
        return ""
    return f"cites {_list(after.pages) or 'nothing'}, not {_list(before.pages)}"


def _in_voice(before: str, after: str) -> str:
    return "answers in capitals" if after.isupper() and not before.isupper() else ""


def _in_words(question: str, before: str, after: str) -> str:
    if _figures(before) - _figures(question):
        return ""  # the same figures are enough
    old, new = plain_terms(before), plain_terms(after)
    if not old and not new:
        return "" if before.split() == after.split() else "other words"
    shared = 2 * len(old & new) / (len(old) + len(new))
    return "" if shared >= WORDS else f"shares {shared:.0%} of its words"


def _list(names: Collection[str]) -> str:
    return ", ".join(sorted(names))


def _letters(text: str) -> str:
    return "".join(letter for letter in text.upper() if letter.isalnum())
