"""The measures, written down once more from docs/reference/measures.md."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import log2
from typing import Any

from tests.unit.page.recount.rows import Suite

Row = Mapping[str, Any]
Value = float | None
LOWER = {"wrong", "hri", "hri_gold", "false_abstention_rate", "error_rate", "zero_result_rate"}
SCORED = ("answer_relevancy", "confidence")
"""Measures that are not a share: they may be negative."""
_JUDGED = ("context_precision", "faithfulness", "answer_relevancy", "factuality")
_NEEDS_RETRIEVAL = {
    *("context_precision", "faithfulness", "g_mean", "hri", "citation_recall", "evidence_recall"),
    *("zero_result_rate", "citation_rate"),
}
_NO_WORST = {"wrong", "confidence"}
_PARTS = {
    "g_mean": ("context_precision", "faithfulness", "answer_relevancy"),
    "hri": ("faithfulness", "answer_relevancy"),
    "hri_gold": ("factuality", "answer_relevancy"),
}


def values_of(suite: Suite, measure: str) -> dict[str, float]:
    """Return the value of each case that has one; an error and a lost case count the worst."""
    if measure not in suite.values:
        is_without = _is_of_retrieval(measure) and not _retrieves(suite)
        found = {case: _value(suite, case, measure) for case in suite.asked if not is_without}
        suite.values[measure] = {case: value for case, value in found.items() if value is not None}
    return suite.values[measure]


def is_measured(suite: Suite, measure: str) -> bool:
    """Return whether the suite was judged on a measure that a judge gives, or that is made of such."""
    return measure not in (*_JUDGED, *_PARTS) or measure in suite.record["judged"]


def unmeasured(suite: Suite, measure: str) -> dict[str, int]:
    """Return how many answers have no value of a judged measure that applies to them, by the reason."""
    if _is_of_retrieval(measure) and not _retrieves(suite):
        return {}
    allowed = [case for case in suite.answered if applies(suite.cases[case], measure)]
    return dict(Counter(why for case in allowed if (why := _why_none(suite, case, measure))))


def _why_none(suite: Suite, case: str, measure: str) -> str:
    for part in _PARTS.get(measure, (measure,)):
        score = suite.scores.get(case, {}).get(part)
        if score is None:
            return "no judgement"
        if score["value"] is None:
            prefix = f"{part}: " if measure in _PARTS else ""
            return "" if score["undefined"] else f"{prefix}no verdict: {score['reason']}"
    return ""


def _value(suite: Suite, case: str, measure: str) -> Value:
    if not applies(suite.cases[case], measure):
        return None
    if case not in suite.answered:
        return None if measure in _NO_WORST else float(measure in LOWER)
    return _of_answer(suite, case, measure)


def _of_answer(suite: Suite, case: str, measure: str) -> Value:
    about, row = suite.cases[case], suite.rows[case]
    if measure in _JUDGED:
        return _score(suite, case, measure)
    if measure in _PARTS:
        return _composite(measure, [_score(suite, case, part) for part in _PARTS[measure]])
    if measure == "wrong":
        return _wrong(suite, case)
    if measure == "correct":
        return _correct(suite, case)
    if measure in _OF_ANSWERS:
        return _OF_ANSWERS[measure](about, row)
    return _of_ranking(measure, _ranking(row), {page: n for page, n in about["qrels"].items() if n > 0})


def _wrong(suite: Suite, case: str) -> Value:
    """Return whether an answer is given and not right; a question that is declined has no wrong one."""
    found = _value(suite, case, "correct") if case in suite.answered else None
    declined = _value(suite, case, "false_abstention_rate") if found == 0 else None
    return None if found is None else float(found == 0 and declined != 1)


def _correct(suite: Suite, case: str) -> Value:
    """Return whether an answer is right: by declining, by a truth that stands in it or not, by a judge."""
    about, row = suite.cases[case], suite.rows[case]
    if row["abstained"] or not about["answerable"]:
        return float(row["abstained"] != about["answerable"])
    answer = row["llm_answer"].lower()
    if about["ground_truth"].lower() in answer and about["ground_truth"].strip():
        return 1.0
    if about["ground_truth"].strip() and not re.search(r"\d", re.sub(r"\[.*?\]", "", answer)):
        return 0.0
    judged = (_score(suite, case, each) for each in ("factuality", "answer_correctness"))
    return next((float(value >= 0.5) for value in judged if value is not None), None)


def applies(case: Row, measure: str) -> bool:
    if measure == "expectations":
        return "expect" in case  # the runs that are recounted expect nothing: one that did would fail as unknown
    if measure in ("token_f1", "context_precision"):
        return bool(case["answerable"] and case["ground_truth"].strip())
    if measure in ("false_abstention_rate", "zero_result_rate"):
        return bool(case["answerable"])
    if measure == "evidence_recall":
        return bool(case["evidence"])
    if measure in ("citation_recall", "factuality", "hri_gold") or "@" in measure or measure == "r_precision":
        return any(relevance > 0 for relevance in case["qrels"].values())
    return measure != "g_mean" or applies(case, "context_precision")


def _is_of_retrieval(measure: str) -> bool:
    return "@" in measure or measure == "r_precision" or measure in _NEEDS_RETRIEVAL


def _retrieves(suite: Suite) -> bool:
    return any(_ranking(row) or row["retrieval_time_ms"] is not None for row in suite.rows.values())


def _score(suite: Suite, case: str, measure: str) -> Value:
    found = suite.scores.get(case, {}).get(measure)
    return found["value"] if found and applies(suite.cases[case], measure) else None


def _composite(measure: str, parts: Sequence[Value]) -> Value:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    *others, relevancy = known
    relevancy = max(0.0, min(1.0, relevancy))
    if measure == "g_mean":
        return float((others[0] * others[1] * relevancy) ** (1 / 3))
    return (1 - others[0]) * relevancy


def _ranking(row: Row) -> list[str]:
    """Return the page of each hit, best first; a later hit of the same page keeps its place, and is nobody's."""
    if row.get("ranking") is not None:
        return list(row["ranking"])
    prompt = [chunk["chunk_id"] for chunk in row["retrieved_chunks"]]
    rest = [found for found in row["candidates"] if found["chunk_id"] not in prompt]
    if any(found["rerank_score"] is not None for found in rest):
        rest = sorted(rest, key=lambda it: float("inf") if it["rerank_score"] is None else -it["rerank_score"])
    pages = [chunk.rsplit("#", 1)[0] for chunk in [*prompt, *(found["chunk_id"] for found in rest)]]
    return [page if page not in pages[:place] else "" for place, page in enumerate(pages)]


def _of_ranking(measure: str, ranking: Sequence[str], gold: Mapping[str, int]) -> float:
    name, _, cutoff = measure.partition("@")
    k = int(cutoff) if cutoff else len(gold)
    at = [rank for rank, page in enumerate(ranking[:k], 1) if page in gold]
    share = len(at) / len(gold)
    discounted = sum(gold[ranking[rank - 1]] / log2(rank + 1) for rank in at)
    best = sum(gain / log2(rank + 1) for rank, gain in enumerate(sorted(gold.values(), reverse=True)[:k], 1))
    return {
        "recall": share,
        "precision": len(at) / k,
        "hit": float(bool(at)),
        "all": float(share == 1),
        "mrr": 1 / at[0] if at else 0.0,
        "map": sum(nth / rank for nth, rank in enumerate(at, 1)) / len(gold),
        "ndcg": discounted / best,
        "r_precision": share,
    }[name]


def _token_f1(case: Row, row: Row) -> float:
    said, right = _words(row["llm_answer"]), _words(case["ground_truth"])
    if not said or not right:
        return float(said == right)
    return 2 * sum((Counter(said) & Counter(right)).values()) / (len(said) + len(right))


def _words(text: str) -> list[str]:
    text = re.sub(r"(?i)\[\s*sources?\b[^\]]*\]", " ", text).lower()
    return [word for word in re.sub(r"\b(a|an|the)\b", " ", _unpunctuated(text)).split() if word]


def _unpunctuated(text: str) -> str:
    return "".join(letter for letter in text if letter not in string.punctuation)


def _citation_recall(case: Row, row: Row) -> float:
    needed = {page for page, relevance in case["qrels"].items() if relevance > 0}
    files = [chunk["metadata"]["filename"] for chunk in row["retrieved_chunks"]]
    cited = {files[n - 1] for n in row["citations"] if 0 < n <= len(files)}
    return len(needed & cited) / len(needed)


def _citation_rate(_: Row, row: Row) -> Value:
    if row["abstained"]:
        return None
    return float(any(0 < n <= len(row["retrieved_chunks"]) for n in row["citations"]))


def _evidence_recall(case: Row, row: Row) -> float:
    quotes = {" ".join(each["quote"].split()) for each in case["evidence"]}
    texts = [" ".join(chunk["text"].split()) for chunk in row["retrieved_chunks"]]
    return sum(any(quote in text for text in texts) for quote in quotes) / len(quotes)


_OF_ANSWERS: Mapping[str, Callable[[Row, Row], Value]] = {
    "token_f1": _token_f1,
    "citation_recall": _citation_recall,
    "citation_rate": _citation_rate,
    "zero_result_rate": lambda _, row: float(not row["retrieved_chunks"]),
    "evidence_recall": _evidence_recall,
    "abstention_rate": lambda _, row: float(row["abstained"]),
    "false_abstention_rate": lambda _, row: float(row["abstained"]),
    "error_rate": lambda _, __: 0.0,
    "confidence": lambda _, row: row["confidence"],
}


def has_kind(suite: Suite, case: str) -> bool:
    """Return whether an answer has a kind: without a context, only where declining, or not doing so, tells it."""
    return {*_PARTS["g_mean"]} <= {*suite.record["judged"]} and kind_of(suite, case) != "Unmeasured"


def kind_of(suite: Suite, case: str) -> str:
    """Return what kind of answer it is."""
    row = suite.rows[case]
    if row["abstained"]:
        return "Wrong Abstention" if suite.cases[case]["answerable"] else "Correct Abstention"
    if not suite.cases[case]["answerable"]:
        return "Answered Unanswerable"
    parts = [_score(suite, case, part) for part in _PARTS["g_mean"]]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return "Unmeasured"
    cp, f, ar = known
    kinds = {
        "Clean Pass": min(cp, f, ar) > 0.7,
        "Hallucination": cp > 0.6 and f < 0.4,
        "Retrieval Failure": cp < 0.4 and f > 0.7,
        "Irrelevant": ar < 0.4 and f > 0.7,
        "Total Failure": max(cp, f, ar) < 0.4,
    }
    return next((kind for kind, holds in kinds.items() if holds), "Unclassified")
