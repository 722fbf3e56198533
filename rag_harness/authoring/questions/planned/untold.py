"""Questions about a thing for facts that the plan states only about similar things."""

from __future__ import annotations

from collections.abc import Iterator

from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.planned.pages import FACT_KIND_OF_PLANNED
from rag_harness.authoring.questions.planned.wording import asked_of
from rag_harness.authoring.questions.silence import RAREST, nothing_says
from rag_harness.authoring.questions.wording import sentence
from rag_harness.words.terms import terms


def untold(doc_id: str, collection: DocumentCollection) -> Iterator[tuple[str, str]]:
    """Yield questions about a page's thing that similar pages answer for theirs, with the kind of the answer."""
    thing = collection.planned.things.get(doc_id, "")
    for fact in collection.planned.untold(doc_id):
        asked = asked_of(fact, collection.planned.names_of(doc_id))
        rest = terms(asked) - terms(thing) - terms(fact.value)
        if len(rest) >= RAREST and nothing_says(thing, rest, collection, is_planned=True):
            yield sentence(asked), FACT_KIND_OF_PLANNED[fact.kind]
