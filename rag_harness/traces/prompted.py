"""Which documents stood in the prompt of the answer: what was found is not always what a model was given."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise, takewhile

from rag_harness.traces.found_documents import FoundDocument
from rag_harness.traces.model_calls import ModelCall
from rag_harness.words.same_words import words_of

_BEGIN = 30
"""Words of a document that must stand in the prompt: the end of a long one may be cut off there. Documents that begin
alike need more: as many as tell them apart."""
_PASSED_ON = 4
"""Fewest words of a reply that is recognised in the prompt of another call."""
_MOST_CALLS = 50
_MOST_DOCUMENTS = 1000
"""More are not compared: what was left after the last reranker counts as given."""
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})|\\[nrt]")


def prompted(
    documents: Sequence[FoundDocument], calls: Sequence[ModelCall], prompts: Sequence[str], answer: str
) -> list[int] | None:
    """Return the documents that a model was given for the answer, by number, in the order of the prompt.

    They stand in the prompt of the call that gave the answer, or of a call whose reply stands in that prompt.

    Args:
        documents: what was found.
        calls: the calls of models that are no part of a search, in their order.
        prompts: prompts that were made; they count where no call tells its own.
        answer: the answer of the app.

    Returns:
        None: prompts or texts are not told. Empty: a prompt is told, and no document stands in it.
    """
    if not documents or len(documents) > _MOST_DOCUMENTS:
        return None
    texts = [_words(each.text) for each in documents]
    given = _prompts_of(calls[-_MOST_CALLS:], answer) or [_words(text) for text in prompts[-1:]]
    if not all(text.strip() for text in texts) or not any(prompt.strip() for prompt in given):
        return None
    begins, apart = _begins(texts)
    places: list[tuple[int, int, int]] = []
    for number, prompt in enumerate(given):
        found = {at: place for at, begin in enumerate(apart) if (place := prompt.find(begin)) >= 0}
        told_apart = {begins[at] for at in found}
        for at, begin in enumerate(begins):
            # Where the prompt has cut off what tells documents apart, each of them may be meant.
            if begin not in told_apart and (place := prompt.find(begin)) >= 0:
                found[at] = place
        places += [(number, place, at) for at, place in found.items()]
    return list(dict.fromkeys(at for *_, at in sorted(places)))


def _begins(texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the first words of each text, and as many of them as no other text begins with."""
    words = [text.split() for text in texts]
    most = [_BEGIN] * len(words)
    order = sorted(range(len(words)), key=words.__getitem__)
    for one, other in pairwise(order):
        # In this order, those that begin most alike are neighbours.
        alike = takewhile(lambda pair: pair[0] == pair[1], zip(words[one], words[other], strict=False))
        shared = sum(1 for _ in alike)
        most[one], most[other] = (max(most[at], shared + 1) for at in (one, other))
    begins = [f" {' '.join(each[:_BEGIN])} " for each in words]
    return begins, [f" {' '.join(each[:count])} " for each, count in zip(words, most, strict=True)]


def _prompts_of(calls: Sequence[ModelCall], answer: str) -> list[str]:
    """Return the prompts of the call that gave the answer and of those whose replies went into it, in their order."""
    words = [(_words(call.prompt), _words(call.reply)) for call in calls]
    said = _words(answer)
    gave = [at for at, (_, reply) in enumerate(words) if reply.strip() and (reply in said or said in reply)]
    last = gave[-1] if gave else len(words) - 1
    used: list[str] = []
    for prompt, reply in reversed(words[: last + 1]):
        is_passed_on = len(reply.split()) >= _PASSED_ON and any(reply in later for later in used)
        if not used or is_passed_on:
            used.append(prompt)
    return [prompt for prompt in reversed(used) if prompt.strip()]


def _words(text: str) -> str:
    # What a tool returned may stand in a prompt as JSON.
    words = words_of(_ESCAPED.sub(lambda found: chr(int(found[1], 16)) if found[1] else " ", text))
    return f" {' '.join(words)} "
