"""Measures of an answer that need no model."""

from __future__ import annotations

import re
import string
from collections import Counter
from typing import ClassVar
from unicodedata import category

from rag_harness.measures.hits import document_in
from rag_harness.measures.measure import RowMeasure, Score
from rag_harness.measures.quotes import as_shown
from rag_harness.results.row import ExperimentResult
from rag_harness.types import Case
from rag_harness.words.citation_marks import CITATION
from rag_harness.words.comparison import divided, folded, quotable
from rag_harness.words.language import unruled

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_NOT_ANSWERABLE = "no answer in the documents"


def normalised(text: str) -> list[str]:
    """Return the words that SQuAD's script compares (Rajpurkar 2016): lower case, no punctuation, no articles.

    Citations such as ``[Source 1]`` are removed first, because the ground truth has none. In scripts without blanks,
    such as Chinese, each character is a word, as in the scripts of CMRC 2018 and MLQA.
    """
    bare = _bare(folded(CITATION.sub(" ", text)))
    return divided(_ARTICLES.sub(" ", bare).split(), 1)


def _bare(text: str) -> str:
    """Return a text without punctuation. Other marks than those of ASCII divide words: 。 has no blank behind it."""
    text = text.translate(_NO_PUNCTUATION)
    return text if text.isascii() else "".join(" " if category(each)[0] == "P" else each for each in text)


class TokenF1(RowMeasure):
    """2PR / (P + R) over the words shared with the ground truth, counted with repeats (SQuAD, Rajpurkar et al. 2016).

    P is the shared part of the answer's words, R that of the ground truth's. Where either has no words, the value is 1
    if both have none, else 0 (SQuAD 2.0's script).
    """

    called, needs = "token_f1", ("answer",)

    def applies(self, case: Case) -> str:
        """Return why there is no ground truth to compare with."""
        return _NOT_ANSWERABLE if not case.answerable else "" if case.ground_truth.strip() else "no ground truth"

    def score(self, case: Case, row: ExperimentResult) -> Score:
        said, right = normalised(row.llm_answer), normalised(case.ground_truth)
        if not said or not right:
            return Score(float(said == right))
        shared = (Counter(said) & Counter(right)).total()
        return Score(2 * shared / (len(said) + len(right)))


class CitationRecall(RowMeasure):
    """Needed pages that the answer cites / needed pages: ALCE's citation recall (Gao et al. 2023), but by page."""

    called, needs = "citation_recall", ("answer", "retrieval")
    by_name: ClassVar[bool] = True

    def applies(self, case: Case) -> str:
        """Return why there is no page to cite."""
        return "" if case.context_reference else "no relevant document"

    def score(self, case: Case, row: ExperimentResult) -> Score:
        needed = set(case.context_reference)
        inside = (n for n in row.citations if 1 <= n <= len(row.retrieved_chunks))
        cited = {document_in(case, row.retrieved_chunks[n - 1]) for n in inside}
        return Score(len(needed & cited) / len(needed))


class EvidenceRecall(RowMeasure):
    """Quotes that stand in one of the chunks of the prompt / quotes, white space folded; case and punctuation count.

    TREC calls this nugget recall; here matches are exact. A quote that a chunk border divides is not found.
    Where a row's chunks have lost their Markdown marks, the quotes are compared without theirs.
    """

    called, needs = "evidence_recall", ("retrieval",)

    def applies(self, case: Case) -> str:
        """Return why there is no quote to look for."""
        return "" if _quotes(case) else "no evidence quotes"

    def score(self, case: Case, row: ExperimentResult) -> Score:
        quotes, texts = _quotes(as_shown(case, row)), [quotable(chunk.text) for chunk in row.retrieved_chunks]
        return Score(sum(any(quote in text for text in texts) for quote in quotes) / len(quotes))


class AbstentionRate(RowMeasure):
    """1 if the answer says that it does not know. The wanted value is 1 on negative queries: gate that slice.

    English and six other languages have phrases (``words.languages``). An answer in a language without any has no
    score, unless its service says whether it abstains.
    """

    called, needs = "abstention_rate", ("answer",)

    def score(self, case: Case, row: ExperimentResult) -> Score:  # noqa: ARG002
        return _abstention(row)


class FalseAbstentionRate(RowMeasure):
    """1 if the answer says that it does not know though the documents have it.

    It is decided as for ``AbstentionRate``.
    """

    called, better, worst, needs = "false_abstention_rate", "lower", 1.0, ("answer",)

    def applies(self, case: Case) -> str:
        """Return why an abstention is correct for this case."""
        return "" if case.answerable else _NOT_ANSWERABLE

    def score(self, case: Case, row: ExperimentResult) -> Score:  # noqa: ARG002
        return _abstention(row)


class Confidence(RowMeasure):
    """How sure the pipeline says it is of its answer, 0 to 1."""

    called, unit, worst, needs = "confidence", "score", None, ("answer",)

    def score(self, case: Case, row: ExperimentResult) -> Score:  # noqa: ARG002
        if row.confidence is None:
            return Score(None, "no confidence", undefined=True)
        return Score(row.confidence)


class ErrorRate(RowMeasure):
    """1 if the trial has no answer."""

    called, better, worst = "error_rate", "lower", 1.0

    def score(self, case: Case, row: ExperimentResult) -> Score:  # noqa: ARG002
        return Score(float(not row.ok))


def _abstention(row: ExperimentResult) -> Score:
    told = any("abstained" in stage.detail for stage in row.stages)
    why = "" if told or row.abstained else unruled(row.llm_answer)
    return Score(None, why) if why else Score(float(row.abstained))


def _quotes(case: Case) -> set[str]:
    return {quotable(quote.quote) for quote in case.evidence} - {""}
