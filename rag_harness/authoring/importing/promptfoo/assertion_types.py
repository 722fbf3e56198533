"""Types of assertions of promptfoo, and what they are here. expectations.md has the same table for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OF_TEXT: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "contains": ("contains", {"case": True}),
    "icontains": ("contains", {}),
    "starts-with": ("starts_with", {"case": True}),
    "equals": ("equals", {"case": True}),
    "regex": ("regex", {"case": True}),
    "finish-reason": ("finishes", {}),
}
"""Types whose value is a text: our kind and its options."""
OF_TEXTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "contains-any": ("contains_any", {"case": True}),
    "contains-all": ("contains_all", {"case": True}),
    "icontains-any": ("contains_any", {}),
    "icontains-all": ("contains_all", {}),
}
"""Types whose value is a list of texts."""
OF_THRESHOLD: Mapping[str, str] = {"latency": "max_ms", "cost": "max_usd"}
"""Types whose threshold is what is demanded."""
OF_LIKENESS: Mapping[str, str] = {"rouge-n": "rouge_l", "similar": "similar", "similar:cosine": "similar"}
"""Types of a text and a threshold, 0.75 where none is stated."""
OF_CRITERION = ("llm-rubric", "g-eval", "model-graded-closedqa")
"""Types of a criterion in words."""
JUDGED: Mapping[str, str] = {
    "answer-relevance": "answer_relevancy",
    "context-recall": "context_recall",
    "context-relevance": "context_precision",
    "context-faithfulness": "faithfulness",
    "factuality": "answer_correctness",
    "model-graded-factcheck": "answer_correctness",
}
"""Types that are judged measures here."""
WITH_REFERENCE = ("context-recall", "factuality", "model-graded-factcheck", "equals", "similar", "similar:cosine")
"""Types whose value is the right answer; the first of a test counts."""

_LITTLE = "it says little of answers; token_f1 and rouge_l say more"
_CODE = "code, which is not run: write a kind of expectation of your own (docs/how-to/expectations.md)"
_FORMAT = "a format that answers of a RAG system do not have"
_SERVICE = "a service of others"
_TOOLS = "calls of tools and steps are not demanded by a line of questions"
_WEB = "asks the web or an agent"
_COMPARES = "a comparison of experiments says more: rag-harness report"
_PERPLEXITY = "needs log-probabilities of the answering model"
UNMATCHED: Mapping[str, str] = {
    **dict.fromkeys(("levenshtein", "bleu", "gleu", "meteor"), _LITTLE),
    **dict.fromkeys(("javascript", "python", "ruby", "webhook"), _CODE),
    **dict.fromkeys(("is-html", "contains-html", "is-sql", "contains-sql", "is-xml", "contains-xml"), _FORMAT),
    **dict.fromkeys(("moderation", "classifier", "pi", "guardrails", "guardrail"), _SERVICE),
    **dict.fromkeys(("perplexity", "perplexity-score"), _PERPLEXITY),
    **dict.fromkeys(("select-best", "max-score"), _COMPARES),
    **dict.fromkeys(("search-rubric", "research-rubric", "agent-rubric", "video-rubric"), _WEB),
    **dict.fromkeys(
        (
            "is-valid-function-call",
            "is-valid-openai-function-call",
            "is-valid-openai-tools-call",
            "tool-call-f1",
            "skill-used",
        ),
        _TOOLS,
    ),
    "contains-json": "JSON inside other text; ask the pipeline for JSON, and is_json or json finds it",
    "conversation-relevance": "of a whole conversation; a rubric on its turns says it",
    "noise-sensitivity": "a judged measure here: --rag-measures=noise_sensitivity",
    "human": "a person: rag-harness judge sample",
    "similar:dot": "another likeness than the cosine",
    "similar:euclidean": "another likeness than the cosine",
}
"""Types without a counterpart, each with the reason."""
UNMATCHED_BEGINNINGS: Mapping[str, str] = {
    "trajectory:": _TOOLS,
    "trace-": _TOOLS,
    "promptfoo:redteam:": "an attack; docs/how-to/metamorphic.md has injections",
}
"""Beginnings of such types."""
TYPES = frozenset(
    {*OF_TEXT, *OF_TEXTS, *OF_THRESHOLD, *OF_LIKENESS, *OF_CRITERION, *JUDGED, *UNMATCHED, "is-json", "is-refusal",
     "word-count", "assert-set"}
)  # fmt: skip
"""All types that are known."""


def why_unmatched(kind: str) -> str:
    """Return why a type has no counterpart."""
    if kind in UNMATCHED:
        return UNMATCHED[kind]
    return next((why for begin, why in UNMATCHED_BEGINNINGS.items() if kind.startswith(begin)), "an unknown type")
