"""Measures of an answer that need no model: a row and the quotes that carry the answer -> a value in [0, 1].

None means that the measure does not apply to the case. A case that raised, or that a crash took, counts ``worst``.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from rag_harness.results.row import ExperimentResult

Quotes = Sequence[str]

_CITATION = re.compile(r"\[\s*sources?\b[^\]]*\]", re.IGNORECASE)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


class Needs(Enum):
    """What a case must have for a measure to apply, also when the row of the case was lost."""

    NOTHING = "nothing"
    ANSWERABLE = "a query that the documents answer"
    PAGES = "needed pages"
    EVIDENCE = "evidence quotes"


@dataclass(frozen=True, slots=True)
class AnswerMeasure:
    """A measure; ``worst`` is what a case without an answer counts. Where that is 1, lower is better."""

    score: Callable[[ExperimentResult, Quotes], float | None]
    worst: float
    needs: Needs


def normalised(text: str) -> list[str]:
    """Return the words that SQuAD's script compares (Rajpurkar 2016): lower case, no punctuation, no articles.

    Citations such as ``[Source 1]`` go first, because the ground truth has none.
    """
    plain = _CITATION.sub(" ", text).lower().translate(_NO_PUNCTUATION)
    return _ARTICLES.sub(" ", plain).split()


def token_f1(row: ExperimentResult, evidence: Quotes = ()) -> float | None:  # noqa: ARG001 - all measures look alike
    """2PR / (P + R) over the words shared with the ground truth, counted with repeats (SQuAD, Rajpurkar et al. 2016).

    P is their share of the answer's words, R of the ground truth's. Where either has no words, 1 if both have none
    (SQuAD 2.0's script). None for negative queries and without ground truth.
    """
    if not row.answerable or not row.ground_truth.strip():
        return None
    said, right = normalised(row.llm_answer), normalised(row.ground_truth)
    if not said or not right:
        return float(said == right)
    shared = (Counter(said) & Counter(right)).total()
    return 2 * shared / (len(said) + len(right))


def citation_recall(row: ExperimentResult, evidence: Quotes = ()) -> float | None:  # noqa: ARG001
    """Needed pages that the answer cites / needed pages: ALCE's citation recall (Gao et al. 2023), but by page.

    None for a query that needs no page.
    """
    needed = set(row.context_reference)
    inside = (n for n in row.citations if 1 <= n <= len(row.retrieved_chunks))
    cited = {row.retrieved_chunks[n - 1].metadata.filename for n in inside}
    return len(needed & cited) / len(needed) if needed else None


def evidence_recall(row: ExperimentResult, evidence: Quotes) -> float | None:
    """Quotes that stand in one of the chunks of the prompt / quotes, white space folded; case and punctuation count.

    What TREC calls nugget recall, by exact match. A quote that a chunk border cuts is not found: no chunk says it. None
    without quotes.
    """
    quotes = {_folded(quote) for quote in evidence} - {""}
    texts = [_folded(chunk.text) for chunk in row.retrieved_chunks]
    return sum(any(quote in text for text in texts) for quote in quotes) / len(quotes) if quotes else None


def abstention_rate(row: ExperimentResult, evidence: Quotes = ()) -> float | None:  # noqa: ARG001
    """1 if the answer says that it does not know. The wanted value is 1 on negative queries: gate that slice."""
    return float(row.abstained)


def false_abstention_rate(row: ExperimentResult, evidence: Quotes = ()) -> float | None:  # noqa: ARG001
    """1 if the answer says that it does not know though the documents have it. None for negative queries."""
    return None if not row.answerable else float(row.abstained)


def error_rate(row: ExperimentResult, evidence: Quotes = ()) -> float | None:  # noqa: ARG001
    """1 if the trial has no answer."""
    return float(not row.ok)


ANSWER_MEASURES: Mapping[str, AnswerMeasure] = MappingProxyType(
    {
        "token_f1": AnswerMeasure(token_f1, 0.0, Needs.ANSWERABLE),
        "citation_recall": AnswerMeasure(citation_recall, 0.0, Needs.PAGES),
        "evidence_recall": AnswerMeasure(evidence_recall, 0.0, Needs.EVIDENCE),
        "abstention_rate": AnswerMeasure(abstention_rate, 0.0, Needs.NOTHING),
        "false_abstention_rate": AnswerMeasure(false_abstention_rate, 1.0, Needs.ANSWERABLE),
        "error_rate": AnswerMeasure(error_rate, 1.0, Needs.NOTHING),
    }
)


def _folded(text: str) -> str:
    return " ".join(text.split())
