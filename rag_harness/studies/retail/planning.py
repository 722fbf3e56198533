"""Plans what to search for: with a model of role ``rewrite`` if there is one, else by rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rag_harness.models.replies import json_of
from rag_harness.pipelines.trace import Trace
from rag_harness.protocols import ChatModel
from rag_harness.studies.retail.subquestions import MOST_SEARCHES, subquestions
from rag_harness.types import Decision, Message
from rag_harness.words.language import asked_language
from rag_harness.words.languages import ENGLISH

LONGEST_SEARCH = 500
"""The most characters of a search. A longer text is no query."""
SYSTEM = (
    "You plan the searches of a retail support assistant, before anything is looked up. The customer's question itself "
    f"is searched already. Name at most {MOST_SEARCHES - 1} further searches for what the answer needs to know: one "
    "for each "
    "part of a question that asks several things, one for each side of a comparison, and where rules may have changed "
    "one for the version of the policy that is current, and its date. Each must make sense by itself. Do not answer. "
    'Where the question needs no further search, give it back as the only one. Reply as JSON: {"searches": ["..."]}'
)
FORMAT = {
    "type": "json_schema",
    "json_schema": {
        "name": "plan",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"searches": {"type": "array", "items": {"type": "string"}}},
            "required": ["searches"],
            "additionalProperties": False,
        },
    },
}


async def planned(question: str, rewriter: ChatModel | None, trace: Trace) -> list[str]:
    """Return what to search for, the question itself first; at most ``MOST_SEARCHES`` searches.

    The plan is noted in ``trace``: the stage ``plan`` has the searches, and a decision says who made them. If a reply
    cannot be used, the rules plan, and the decision says why. A failed call fails the trial.
    """
    if rewriter is None:
        return _by_rules(question, trace, "no model of role rewrite is configured")
    said = await trace.complete(rewriter, _messages(question), FORMAT, stage="plan", role="rewrite")
    searches, why_not = searches_in(said.text)
    if why_not:
        return _by_rules(question, trace, f"the reply of the model of role rewrite cannot be used: {why_not}")
    further = [search for search in searches if _same(search) != _same(question)]
    return _noted([question, *further], "by model", "", trace)


def searches_in(reply: str) -> tuple[list[str], str]:
    """Return the searches in a reply; or none, and why the reply cannot be used."""
    named = (json_of(reply) or {}).get("searches")
    if not isinstance(named, list):
        return [], 'it is no JSON with a list "searches"'
    texts = [" ".join(search.split()) for search in named if isinstance(search, str)]
    return ([], fault) if (fault := _fault(named, texts)) else (texts, "")


def _fault(named: Sequence[Any], texts: Sequence[str]) -> str:
    if not named:
        return "it names no search"
    if len(texts) < len(named) or not all(texts):
        return "a search is empty or no text"
    if len(named) >= MOST_SEARCHES:
        return f"it names {len(named)} searches, and {MOST_SEARCHES - 1} were asked for"
    if max(map(len, texts)) > LONGEST_SEARCH:
        return f"a search has more than {LONGEST_SEARCH} characters"
    return "it names a search twice" if len(set(map(_same, texts))) < len(texts) else ""


def _messages(question: str) -> list[Message]:
    return [Message("system", SYSTEM), Message("user", f"Question: {question}")]


def _by_rules(question: str, trace: Trace, why: str) -> list[str]:
    with trace.stage("plan"):
        searches = subquestions(question)
    language = asked_language(question)
    if language != ENGLISH:
        why = f"{why}; no rules for {language}: a question is split in English alone"
    return _noted(searches, "by rules", why, trace)


def _noted(searches: list[str], outcome: str, why: str, trace: Trace) -> list[str]:
    said = f"{len(searches)} searches" if len(searches) > 1 else "the question is searched as it is"
    trace.note("plan", searches=searches)
    trace.decisions.append(
        Decision("plan", outcome, float(len(searches)), MOST_SEARCHES, "; ".join(filter(None, (said, why))))
    )
    return searches


def _same(search: str) -> str:
    return " ".join(search.casefold().split())
