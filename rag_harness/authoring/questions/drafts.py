"""Drafts of questions: their overlap with pages, the filters that reject them, near-duplicates.

Rows of queries.jsonl.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.english import POINTING
from rag_harness.authoring.questions.facts import Fact
from rag_harness.authoring.questions.sentence_facts import seen
from rag_harness.core.text.languages import ENGLISH
from rag_harness.core.text.shingles import PERMUTATIONS, Hashing, Runs, resemblance, signature
from rag_harness.core.text.terms import term, tokens
from rag_harness.core.types import Evidence

# A question before it is a row: the text, the answer and the evidence.

BY_LLM = "llm"
"""The origin of a question that a model wrote."""
MADE_OF = " + "
"""Separates the kinds of facts in a row's ``made_of``."""
LEFT_OPEN = "left open"
"""The origin of a question about something that a statement leaves open."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A question with its gold.

    Attributes:
        kind: the query type: ``direct``, ``multi_hop`` or ``negative``.
        plain: the question in the page's own words; a search for it should find the page.
        text: the question as it is asked.
        answer: the words of the ground truth that the question asks for; empty if nothing answers it.
        made_of: the kinds of facts that it was made from.
    """

    kind: str
    plain: str
    text: str
    ground_truth: str
    answer: str
    evidence: tuple[Evidence, ...]
    made_of: tuple[str, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def pages(self) -> tuple[str, ...]:
        """The documents of the evidence, each once."""
        return tuple(dict.fromkeys(each.filename for each in self.evidence))


# How many words a question shares with the page that answers it. Shared words help a search by words.

HIGH, LOW = 0.85, 0.5
"""Above the first share of common words a question is easy; below the second it is hard."""


def overlap(draft: Draft, collection: DocumentCollection) -> float:
    """Return the share of the question's stemmed content words that are in its evidence's pages: 0 to 1.

    For a question that nothing answers, return the share in the nearest chunk.
    """
    asked = collection.terms(draft.text)
    pages = [collection.page_terms(name) for name in draft.pages]
    pages = pages or [collection.terms(hit.chunk.text) for hit in collection.nearest(draft.text, 1)]
    return len(asked & frozenset().union(*pages)) / len(asked) if asked else 0.0


def difficulty(draft: Draft, collection: DocumentCollection, shared: float) -> str:
    """Return easy, medium or hard, by shared words, by how a search ranks its page, and by the number of pages."""
    if draft.kind != "direct":
        return "hard" if draft.kind == "negative" else "medium"
    first = [hit.chunk.doc_id for hit in collection.nearest(draft.text, 1)]
    points = (shared < HIGH) + (shared < LOW) + (first != list(draft.pages[:1])) + (len(draft.pages) > 1)
    return ("easy", "medium", "hard", "hard", "hard")[points]


TEMPTS = 0.6
"""A page tempts if it has at least this share of the weighted words that the question's own page has."""
EMBEDDED = "embedded/templates"
"""The author in rows that no model wrote."""


def rows(
    drafts: Iterable[Draft], collection: DocumentCollection, by: str = EMBEDDED, taken: Container[str] = ()
) -> Iterator[dict[str, Any]]:
    """Yield a row for each draft, numbered by kind, as ``data.queries`` reads them. No id is in ``taken``."""
    numbers: Counter[str] = Counter()
    for draft in drafts:
        name = _name(draft.kind, numbers, taken)
        own = collection.about(draft.pages or (str(draft.metadata.get("nearest_page", "")),))
        shared = overlap(draft, own)
        yield {
            "query_id": name,
            "query_type": draft.kind,
            "query": draft.text,
            "ground_truth": draft.ground_truth,
            "context_reference": list(draft.pages),
            "evidence": [{"filename": each.filename, "quote": each.quote} for each in draft.evidence],
            "metadata": {
                "difficulty": difficulty(draft, own, shared),
                "made_of": MADE_OF.join(draft.made_of),
                **_distractors(draft, own),
                **draft.metadata,
                "overlap": round(shared, 2),
                "generated_by": by,
                "reviewed": "no",
            },
        }


def _name(kind: str, numbers: Counter[str], taken: Container[str]) -> str:
    while True:
        numbers[kind] += 1
        name = f"q_{kind}_{numbers[kind]:03d}"
        if name not in taken:
            return name


def _distractors(draft: Draft, collection: DocumentCollection) -> dict[str, int]:
    """Return how many other pages tempt: they have a passage near the question with most of the matching words."""
    wanted = collection.terms(draft.text)
    near = [hit.chunk for hit in collection.nearest(draft.text)]
    held = [(chunk.doc_id, collection.covered(wanted, chunk.text)) for chunk in near]
    own = max((share for name, share in held if name in draft.pages), default=1.0)
    tempting = {name for name, share in held if share >= TEMPTS * own} - set(draft.pages)
    return {"distractors": len(tempting)} if draft.evidence else {}


def json_lines(found: Iterable[dict[str, Any]]) -> str:
    """Return the rows as JSON lines. The same rows give the same bytes."""
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in found)


Filter = Callable[[Draft, DocumentCollection], str | None]

LEAST_TERMS = 2
FOUND_WITHIN = 3
"""A search for the plain question must find its pages among this many pages for each page that is needed."""
HELD = 0.4
"""The share of the words of a model's answer that its evidence must have. The model uses its own words."""
_ON_PAGE = re.compile(
    r"\b(?:this|the) (?:page|section|text|passage|document|source|excerpt|article)s?\b|\baccording to\b"
    r"|\b(?:above|below)\b",
    re.I,
)
ALONE = 0.9
"""From this share of the words of evidence on, another page can replace it."""
ANSWERED = 0.999
"""From this share of a question's words on, weighted by rarity, a chunk may answer it: all, except for rounding."""
SAME = 0.85
"""From this share of the question's words on, weighted by rarity, another page is a rival."""


def exact(draft: Draft, collection: DocumentCollection) -> str | None:
    """Reject evidence that is not in its page, word for word."""
    for each in draft.evidence:
        document = collection.by_id.get(each.filename)
        if document is None or each.quote not in document.text:
            return "the evidence is not in the page"
    return None


def contained(draft: Draft, collection: DocumentCollection) -> str | None:
    """Reject an answer that is not in the evidence."""
    said = collection.terms(" ".join(seen(each.quote) for each in draft.evidence))
    wanted = collection.terms(draft.answer)
    least = 1.0 if draft.made_of != (BY_LLM,) else HELD
    held = len(wanted & said) / len(wanted) if wanted else 1.0
    return None if held >= least else "the evidence does not hold the answer"


def readable(draft: Draft, collection: DocumentCollection) -> str | None:
    """Reject a question that refers to something its reader cannot see, or that is not a proper sentence."""
    words = draft.text.split()
    if not 3 <= len(words) <= 40 or "?" not in draft.text:
        return "too short or too long"
    if (_ON_PAGE if draft.made_of == (BY_LLM,) else POINTING).search(draft.plain):
        return "points at something outside of the question"
    return "says too little" if len(collection.terms(draft.plain)) < LEAST_TERMS else None


def open_question(draft: Draft, collection: DocumentCollection) -> str | None:
    """Reject a question that contains its answer."""
    answer = collection.terms(draft.answer)
    if not answer or draft.made_of == ("permission",):
        return None
    told = answer - collection.terms(draft.plain)
    if any(word[0].isdigit() for word in told):
        return None  # a figure like "45 days" is enough for an answer
    return "the question holds the answer" if len(told) / len(answer) <= 0.5 else None


def specific(draft: Draft, collection: DocumentCollection) -> str | None:
    """Reject a question whose own words do not lead to its pages."""
    if draft.made_of == (BY_LLM,):
        return None  # a model was asked to share few words; another check asks it whether the evidence answers
    most = FOUND_WITHIN * len(draft.pages)
    pages = list(dict.fromkeys(hit.chunk.doc_id for hit in collection.nearest(draft.plain, 10 * len(draft.pages))))[
        :most
    ]
    return None if set(draft.pages) <= set(pages) else "its words lead to other pages"


def unambiguous(draft: Draft, collection: DocumentCollection) -> str | None:
    """Reject a question that another current page may answer, too: a page with its words, or its evidence's words."""
    probe = " ".join(seen(each.quote) for each in draft.evidence) if draft.made_of == (BY_LLM,) else draft.plain
    wanted = collection.terms(probe)
    found = [hit.chunk for hit in collection.nearest(probe) if hit.chunk.doc_id not in collection.superseded]
    held = [(collection.covered(wanted, chunk.text), chunk.doc_id in draft.pages) for chunk in found]
    own = max((share for share, is_own in held if is_own), default=1.0)
    rivals = any(share >= min(SAME, own) for share, is_own in held if not is_own)
    return "another page may answer it too" if rivals else None


def needs_all(draft: Draft, collection: DocumentCollection) -> str | None:
    """Reject a question about several pages that one of them answers alone."""
    for each in draft.evidence:
        wanted = collection.terms(seen(each.quote))
        others = (name for name in draft.pages if name != each.filename)
        if any(len(wanted & collection.page_terms(name)) >= ALONE * len(wanted) for name in others):
            return "one page alone holds all evidence"
    return "one page alone holds all evidence" if draft.kind == "multi_hop" and len(draft.pages) < 2 else None


def unanswered(draft: Draft, collection: DocumentCollection) -> str | None:
    """Reject a question that nothing should answer if a chunk has nearly every word of it."""
    wanted = collection.terms(draft.plain)
    if draft.made_of == (LEFT_OPEN,):
        return None  # it repeats a statement; the part that it asks for was searched for when it was made
    if any(collection.covered(wanted, hit.chunk.text) >= ANSWERED for hit in collection.nearest(draft.plain)):
        return "a passage may answer it"
    return None


def fault_of_half(fact: Fact, question: str, collection: DocumentCollection) -> str | None:
    """Return the reason against using a fact as a part of a question; None if there is none."""
    draft = Draft(
        "direct", question, question, fact.said, fact.answer, (Evidence(fact.doc_id, fact.quote),), (fact.kind,)
    )
    return next((fault for check in _HALF if (fault := check(draft, collection))), None)


_HALF: tuple[Filter, ...] = (exact, contained, readable, open_question, unambiguous)
FILTERS: Mapping[str, tuple[Filter, ...]] = {
    "direct": (exact, contained, readable, open_question, specific, unambiguous),
    "multi_hop": (exact, contained, readable, specific, needs_all),
    "negative": (readable, unanswered),
}


def draft_fault(draft: Draft, collection: DocumentCollection) -> str | None:
    """Return the first reason against a draft; None if there is none."""
    return next((fault for check in FILTERS[draft.kind] if (fault := check(draft, collection))), None)


ALIKE = 0.6
"""From this Jaccard similarity of three-word runs on, two questions are the same."""
SAME_WORDS = 0.9
"""From this cosine of content word counts on, two questions are the same: same words in another order."""
_BAND = 2


ASKED, REJECTED = "asked already", "somebody rejected it"
_Facts = tuple[tuple[Evidence, ...], str, tuple[str, ...]]


class TakenQuestions:
    """The questions that were taken, and those that were rejected.

    Args:
        most_shared: the share of its words that a question may have in common with the pages that answer it.
        collection: has those pages; not needed if all words may be shared.
        rejected: questions that a person has rejected; only the ground truth of their answers is known.
    """

    def __init__(
        self, most_shared: float = 1.0, collection: DocumentCollection | None = None, rejected: Iterable[Draft] = ()
    ) -> None:
        self._most_shared, self._collection = most_shared, collection
        self._hashing = Hashing()
        self._shown: set[tuple[tuple[Evidence, ...], str]] = set()
        self._runs: list[Runs] = []
        self._words: list[Counter[str]] = []
        self._bands: dict[tuple[int, bytes], list[int]] = defaultdict(list)
        self._holding: dict[str, list[int]] = defaultdict(list)
        self._unwanted: set[_Facts] = set()
        for draft in rejected:
            if draft.text:
                self._remember(draft.text)
            self._unwanted.add(_facts(draft))
        self._rejected = len(self._runs)

    def fault_of(self, draft: Draft) -> str | None:
        """Return the reason against a draft that repeats an earlier question or copies its page; else None."""
        if draft.evidence and self._collection and overlap(draft, self._collection) > self._most_shared:
            return "shares too many words with its page"
        if draft.evidence and _facts(draft) in self._unwanted:
            return REJECTED
        if draft.evidence and (draft.evidence, draft.answer) in self._shown:
            return ASKED
        like = self._like(draft.text)
        return None if like is None else REJECTED if like < self._rejected else ASKED

    def _like(self, text: str) -> int | None:
        """Return the number of the first question that is the same, if any."""
        runs, words = self._hashing.runs(text), self._counted(text)
        near = {number for band in _bands(runs) for number in self._bands.get(band, ())}
        sharing = {number for word in words for number in self._holding.get(word, ())}
        like = [number for number in near if resemblance(runs, self._runs[number]) >= ALIKE]
        same = (number for number in sorted(sharing) if _cosine(words, self._words[number]) >= SAME_WORDS)
        return min(like) if like else next(same, None)

    def _counted(self, text: str) -> Counter[str]:
        language = self._collection.language if self._collection else ENGLISH
        return Counter(found for token in tokens(text) if (found := term(token, language)))

    def add(self, draft: Draft) -> None:
        """Remember a question."""
        self._shown.add((draft.evidence, draft.answer))
        self._remember(draft.text)

    def _remember(self, text: str) -> None:
        runs, words = self._hashing.runs(text), self._counted(text)
        number = len(self._runs)
        self._runs.append(runs)
        self._words.append(words)
        for band in _bands(runs):
            self._bands[band].append(number)
        for word in words:
            self._holding[word].append(number)


def _facts(draft: Draft) -> _Facts:
    return draft.evidence, draft.ground_truth, draft.made_of


def _bands(runs: Runs) -> list[tuple[int, bytes]]:
    if not len(runs):
        return []
    sketch = signature(runs)
    return [(start, sketch[start : start + _BAND].tobytes()) for start in range(0, PERMUTATIONS, _BAND)]


def _cosine(first: Counter[str], second: Counter[str]) -> float:
    shared = sum(count * second[word] for word, count in first.items())
    lengths = math.hypot(*first.values()) * math.hypot(*second.values())
    return shared / lengths if lengths else 0.0
