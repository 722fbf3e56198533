"""What a conversation has spoken of, so that "it" and "the search" can be understood."""

from __future__ import annotations

import re

from rag_harness.authoring.questions.clauses import AUXILIARIES
from rag_harness.authoring.questions.conversing.talk import Talk
from rag_harness.authoring.questions.facts import Fact
from rag_harness.authoring.questions.quotable_passages import seen
from rag_harness.authoring.questions.verbs import BASES, THIRD
from rag_harness.authoring.questions.wordlists import word_set

_THE = re.compile(r"\bthe ([a-z]+)(?:[,?.]|$| ([a-z]+))", re.I)
_BEHIND = AUXILIARIES | BASES | THIRD.keys() | word_set("at in on with by from to after before until within for and or")


def is_it(subject: str, talk: Talk) -> bool:
    """Whether "it" can only be a subject: the last answer was about it, or it begins what was asked."""
    last = talk.focus.fact
    if last is None or not talk.focus.is_one:
        return False
    bare, parts = _bare(subject), last.parts
    if talk.focus.thing:
        return f" {_bare(talk.focus.thing)}".endswith(f" {bare}")
    if "subject" in parts:
        return _bare(parts["subject"]) == bare
    ends = re.search(
        rf" {re.escape(bare)}(?:$| (?:with|to|for|from|in|by|via|using)\b)", parts.get("purpose", "").casefold()
    )
    return bool(ends) or _bare(parts.get("condition", "")).startswith(f"{bare} ")


def _bare(name: str) -> str:
    return re.sub(r"^(?:the|an?|my|your|each|every) ", "", name.strip().casefold())


def is_introduced(asked: str, fact: Fact, talk: Talk) -> bool:
    """Whether each "the …" of a question was spoken of, or stands in the title; "the parcel seal" says it itself.

    What stands in one section with the last answer counts as spoken of.
    """
    last = talk.focus.fact if talk.focuses else None
    if last is not None and last.doc_id == fact.doc_id and last.section == fact.section:
        return True
    title = seen(talk.collection.by_id[fact.doc_id].title)
    said = " ".join((title, *(f"{turn.text} {turn.alone.text} {turn.alone.ground_truth}" for turn in talk.turns)))
    known = talk.collection.terms(said)
    lone = (found[1] for found in _THE.finditer(asked) if not found[2] or found[2].lower() in _BEHIND)
    return all(talk.collection.terms(word) <= known for word in lone)
