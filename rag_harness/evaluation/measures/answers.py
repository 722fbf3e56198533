"""Measures that need no model: of an answer itself, and of the time, cost and tokens of its trial."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple
from unicodedata import category

from rag_harness.core.text.comparison import content_words, divided, folded, quotable
from rag_harness.core.text.language_detection import unruled
from rag_harness.core.text.terms import CITATION
from rag_harness.core.types import UNMARKED, Case
from rag_harness.evaluation.measures.measure import RowMeasure, Score
from rag_harness.evaluation.measures.opinion import ABSTAINED, NOT_ANSWERABLE
from rag_harness.records.document_ranking import document_in
from rag_harness.records.row import ExperimentResult


def as_shown(case: Case, row: ExperimentResult) -> Case:
    """Return ``case`` with quotes without Markdown marks, where the chunks of ``row`` have none.

    A quote is taken from the page as it is written: "**30 days**" is in no chunk that has lost its marks. For all other
    rows the case is returned unchanged.
    """
    if not any(chunk.metadata.markup == UNMARKED for chunk in row.retrieved_chunks):
        return case
    from rag_harness.retrieval.chunking.markdown import unmarked  # imported here: only these rows need the parser

    return replace(case, evidence=tuple(replace(one, quote=unmarked(one.quote)) for one in case.evidence))


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

    P is the shared part of the answer's words, R the shared part of the ground truth's words. Where either has no
    words, the value is 1 if both have none, else 0 (SQuAD 2.0's script).
    """

    called, needs = "token_f1", ("answer",)

    def applies(self, case: Case) -> str:
        """Return why the case lacks a ground truth to compare with."""
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
        """Return why the case lacks a page to cite."""
        return "" if case.context_reference else "no relevant document"

    def score(self, case: Case, row: ExperimentResult) -> Score:
        needed = set(case.context_reference)
        inside = (n for n in row.citations if 1 <= n <= len(row.retrieved_chunks))
        cited = {document_in(case, row.retrieved_chunks[n - 1]) for n in inside}
        return Score(len(needed & cited) / len(needed))


class EvidenceRecall(RowMeasure):
    """Quotes that are in one of the chunks of the prompt / quotes, white space folded; case and punctuation count.

    TREC calls this nugget recall; here matches are exact. A quote that a chunk border divides is not found.
    Where a row's chunks have lost their Markdown marks, the quotes are compared without theirs.
    """

    called, needs = "evidence_recall", ("retrieval",)

    def applies(self, case: Case) -> str:
        """Return why the case lacks a quote to look for."""
        return "" if _quotes(case) else "no evidence quotes"

    def score(self, case: Case, row: ExperimentResult) -> Score:
        quotes, texts = _quotes(as_shown(case, row)), [quotable(chunk.text) for chunk in row.retrieved_chunks]
        return Score(sum(any(quote in text for text in texts) for quote in quotes) / len(quotes))


class AbstentionRate(RowMeasure):
    """1 if the answer says that it does not know. The wanted value is 1 on negative queries: gate that slice.

    English and six other languages have phrases (``core.text.languages``). An answer in a language without any has no
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


class ZeroResultRate(RowMeasure):
    """1 if no chunk reached the prompt though the documents have the answer: nothing found, or all below a floor."""

    called, better, worst, needs = "zero_result_rate", "lower", 1.0, ("retrieval", "answer")

    def applies(self, case: Case) -> str:
        """Return why there was nothing to find."""
        return "" if case.answerable else NOT_ANSWERABLE

    def score(self, case: Case, row: ExperimentResult) -> Score:  # noqa: ARG002
        return Score(float(not row.retrieved_chunks))


class CitationRate(RowMeasure):
    """1 if the answer cites at least one chunk of its prompt. An abstention has nothing to cite."""

    called, needs = "citation_rate", ("retrieval", "answer")

    def score(self, case: Case, row: ExperimentResult) -> Score:  # noqa: ARG002
        if row.abstained:
            return Score(None, ABSTAINED, undefined=True)
        return Score(float(any(1 <= n <= len(row.retrieved_chunks) for n in row.citations)))


# Data rot: a page was replaced but the old one is still there, and answers repeat what only the old page says.
#
# Neither case nor row says which page has replaced which. So the case needs it in its metadata::
#
#     {"query_id": "q1", …, "metadata": {"version_pair": "returns", "superseded": [{"outdated_statement": "Most items
#         can be returned within 30 days.", "current_statement": "Most items can be returned within 45 days."}]}}
#
# The keys are those of ``version_pairs`` in a knowledge base's ``structure.json``. A rate for one version pair is a
# slice: ``e3[version_pair=returns]: stale_answer <= 0.05``.

SUPERSEDED = "superseded"
_NUMBER = r"\d+(?:[.,]\d+)*"
_FIGURE = re.compile(rf"([€$£]?)\s?(?<![\d.,])({_NUMBER})((?:[\s\-–]+[^\W\d_]+){{0,2}})(?:\s?([€$£%]))?")
_LETTERS = re.compile(r"[^\W\d_]+")
_NOTHING = "no superseded statement"


class Versions(NamedTuple):
    """One fact in two versions, word for word."""

    outdated: str
    current: str


class StaleAnswer(RowMeasure):
    """1 if the answer carries what only a superseded statement says, and nothing of what only the current one says.

    The figures in which the two versions differ are compared: the answer must have all of the old ones, and none of the
    new. A figure is a number with the currency beside it and the words after it, of which one must be the same: "24
    months" is not found in "24 May". Where the versions have the same figures, their other words of four letters and
    more are compared: over half of the old ones, and a larger share than of the new. The measure does not see figures
    in words, paraphrases, or the same figure about something else. An answer with both versions is not stale, and one
    that declines carries nothing.
    """

    called, better, worst, needs = "stale_answer", "lower", 1.0, ("answer",)

    def score(self, case: Case, row: ExperimentResult) -> Score:  # noqa: ARG002
        versions, why = versions_of(row)
        if not versions:
            return Score(None, why, undefined=True)
        stale = [each.outdated for each in versions if not row.abstained and _is_stale(row.llm_answer, each)]
        return Score(float(bool(stale)), detail={"stale": stale})


class VersionConflict(RowMeasure):
    """1 if the prompt says both versions of a fact, each in one of its chunks, white space folded; case counts.

    It is about the reader's sources, not about its choice. It does not see a statement in other words, or one that a
    chunk border divides.
    """

    called, better, worst, needs = "version_conflict", "lower", 1.0, ("retrieval",)

    def score(self, case: Case, row: ExperimentResult) -> Score:  # noqa: ARG002
        versions, why = versions_of(row)
        if not versions:
            return Score(None, why, undefined=True)
        chunks = [quotable(chunk.text) for chunk in row.retrieved_chunks]
        both = [each.outdated for each in versions if all(_is_in(statement, chunks) for statement in each)]
        return Score(float(bool(both)), detail={"conflicts": both})


def versions_of(row: ExperimentResult) -> tuple[list[Versions], str]:
    """Return the facts in two versions from the case's metadata, or why none can be used."""
    given = row.metadata.get(SUPERSEDED)
    if not given:
        return [], _NOTHING
    try:
        found = list(_read(given))
    except (TypeError, KeyError, AttributeError):
        return [], f"metadata.{SUPERSEDED} that is not a list of outdated_statement and current_statement"
    differing = [each for each in found if quotable(each.outdated) != quotable(each.current)]
    return differing, "two versions that say the same"


def _read(given: Any) -> Iterator[Versions]:
    for fact in given if isinstance(given, list) else [given]:
        statements = fact["outdated_statement"], fact["current_statement"]
        if not all(isinstance(statement, str) and statement.strip() for statement in statements):
            raise TypeError("a statement is not text")
        yield Versions(*statements)


def _is_stale(answer: str, fact: Versions) -> bool:
    said = CITATION.sub(" ", answer)
    old, new = _figures(fact.outdated).keys(), _figures(fact.current).keys()
    if old - new:
        there = [_found(fact.outdated, said, number) for number in old - new]
        return all(there) and not any(_found(fact.current, said, number) for number in new - old)
    before, now, words = content_words(fact.outdated), content_words(fact.current), content_words(said)
    return _share(before - now, words) > max(0.5, _share(now - before, words))


def _share(wanted: set[str], words: set[str]) -> float:
    return len(wanted & words) / len(wanted) if wanted else 0.0


def _figures(text: str) -> dict[str, set[str]]:
    """Return the numbers with their units or currencies; ``1,000`` becomes ``1000`` and ``3.50`` becomes ``3.5``."""
    found: dict[str, set[str]] = {}
    for before, number, words, behind in _FIGURE.findall(text):
        units = {before, behind, *(word.lower()[:3] for word in _LETTERS.findall(words))} - {""}
        found.setdefault(_number(number), set()).update(units)
    return found


def _found(statement: str, answer: str, number: str) -> bool:
    units, said = _figures(statement)[number], _figures(answer)
    return number in said and (not units or bool(units & said[number]))


def _number(figure: str) -> str:
    plain = re.sub(r"[.,](?=\d{3}(?!\d))", "", figure).replace(",", ".")
    whole, point, rest = plain.partition(".")
    return f"{int(whole)}{point}{rest}".rstrip("0").rstrip(".") if point else str(int(whole))


def _is_in(statement: str, chunks: list[str]) -> bool:
    return any(quotable(statement) in chunk for chunk in chunks)


class _SpendMeasure(RowMeasure):
    """Lower is better."""

    better = "lower"
    worst = None
    missing: ClassVar[str]

    def score(self, case: Case, row: ExperimentResult) -> Score:  # noqa: ARG002
        value = self.read(row)
        return Score(value, "" if value is not None else self.missing)

    def read(self, row: ExperimentResult) -> float | None:
        """Return the value in the row; None where it has none."""
        raise NotImplementedError


class TotalMs(_SpendMeasure):
    """Sum of the stages, without waiting for other trials in flight; wall time where no stage is timed."""

    called, unit, missing = "total_ms", "ms", "no time"

    def read(self, row: ExperimentResult) -> float | None:
        return row.total_time_ms


class RetrievalMs(_SpendMeasure):
    """Time of the first stage; where trials share a batch, a share of it."""

    called, unit, missing, needs = "retrieval_ms", "ms", "no time of a retrieval", ("retrieval",)

    def read(self, row: ExperimentResult) -> float | None:
        return row.retrieval_time_ms


class RerankMs(_SpendMeasure):
    """Time of the reranker; where trials share a batch, a share of it."""

    called, unit, missing, needs = "rerank_ms", "ms", "no time of a reranker", ("retrieval",)

    def read(self, row: ExperimentResult) -> float | None:
        return row.rerank_time_ms


class LlmMs(_SpendMeasure):
    """Time of all stages that asked a model; of a replayed answer, what the recorded calls took."""

    called, unit, missing, needs = "llm_ms", "ms", "no time of a model call", ("answer",)

    def read(self, row: ExperimentResult) -> float | None:
        return row.llm_time_ms


class TtftMs(_SpendMeasure):
    """Time to the first token."""

    called, unit, missing, needs = "ttft_ms", "ms", "no streamed answer", ("answer",)

    def read(self, row: ExperimentResult) -> float | None:
        return row.ttft_ms


class CostUsd(_SpendMeasure):
    """What the calls cost; where the answer was replayed, what the recorded ones cost."""

    called, unit, missing, needs = "cost_usd", "usd", "no known price", ("answer",)

    def read(self, row: ExperimentResult) -> float | None:
        return row.cost_usd


class PromptTokens(_SpendMeasure):
    """Tokens of the prompts, as the models' servers counted them."""

    called, unit, missing, needs = "prompt_tokens", "tokens", "no counted tokens", ("answer",)

    def read(self, row: ExperimentResult) -> float | None:
        return row.usage.prompt_tokens if row.usage.calls else None


class CompletionTokens(_SpendMeasure):
    """Tokens of the answers, as the models' servers counted them."""

    called, unit, missing, needs = "completion_tokens", "tokens", "no counted tokens", ("answer",)

    def read(self, row: ExperimentResult) -> float | None:
        return row.usage.completion_tokens if row.usage.calls else None


class Tokens(_SpendMeasure):
    """Tokens of prompts and answers."""

    called, unit, missing, needs = "tokens", "tokens", "no counted tokens", ("answer",)

    def read(self, row: ExperimentResult) -> float | None:
        return row.usage.prompt_tokens + row.usage.completion_tokens if row.usage.calls else None
