"""Which documents stood in the prompt of the answer: what was found is not always what a model was given."""

from __future__ import annotations

from collections.abc import Sequence

from rag_harness.traces.found_documents import FoundDocument
from rag_harness.traces.model_calls import ModelCall
from rag_harness.words.same_words import words_of

_BEGIN = 30
"""Words of a document that must stand in the prompt: the end of a long one may be cut off there."""
_PASSED_ON = 4
"""Fewest words of a reply that is recognised in the prompt of another call."""
_MOST_CALLS = 50
_MOST_DOCUMENTS = 1000
"""More are not compared: what was left after the last reranker counts as given."""


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
        None: prompts or texts are not told, or no document stands in them.
    """
    if not documents or len(documents) > _MOST_DOCUMENTS or not all(each.text for each in documents):
        return None
    given = _prompts_of(calls[-_MOST_CALLS:], answer) or [_words(text) for text in prompts[-1:]]
    begins = [f" {' '.join(words_of(each.text)[:_BEGIN])} " for each in documents]
    places = [
        (number, place, at)
        for at, begin in enumerate(begins)
        for number, prompt in enumerate(given)
        if (place := prompt.find(begin)) >= 0 and begin.strip()
    ]
    return list(dict.fromkeys(at for *_, at in sorted(places))) or None


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
    words = words_of(text.replace("\\n", " "))
    return f" {' '.join(words)} "
