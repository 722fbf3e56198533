"""Questions close to the topic that nothing in the collection answers."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import NamedTuple

from rag_harness.authoring.questions.answerable import in_other_words
from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.drafts import LEFT_OPEN, Draft
from rag_harness.authoring.questions.english import asked_by_reader, clause, lower_first, word_set
from rag_harness.authoring.questions.facts import (
    PLANNED_KINDS,
    Fact,
    question_for_cell,
    question_for_fact,
    sentence,
    shuffled,
)
from rag_harness.authoring.questions.planned_facts import FACT_KIND_OF_PLANNED, asked_of
from rag_harness.authoring.questions.sentence_facts import QuotablePassage, passages, seen
from rag_harness.core.text.terms import term, terms
from rag_harness.core.types import Document
from rag_harness.retrieval.chunking.markdown import read_headings

# Groups of similar things: the rows of a table, names with the same ending, the pages of a folder.

_NAME = re.compile(r"[^\W\d_][\w .&+-]{1,40}")
_CODE = re.compile(r"\b[A-Z][a-z]+(?:[A-Z][a-z]+)+\b")
_LABEL = re.compile(r"^[^\S\n]*[-*+] +(\*\*[^*\n]{2,40}\*\*|`[^`\n]{2,40}`)(?=:| [–—-] )", re.M)
_APART = 4
"""From so many lines apart on, items belong to two lists."""
_FEWEST, _MOST = 2, 40
"""The size of a group. In a larger group, things would not be mistaken for each other."""
_ALIKE = 2
"""How many words titles must share at the beginning."""
_LONGEST = 4
"""The most words of a thing's name."""


def siblings(documents: Sequence[Document], names: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return for each thing's name the names of its siblings, in the order of the text.

    ``names`` are words that keep their capital within a sentence.
    """
    groups = [*_folders(documents, names), *_suffixes(documents), *_titles(documents)]
    for document in documents:
        groups += [*_tables(passages(document)), *_labels(document), *_headings(document, names)]
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for group in groups:
        if _FEWEST <= len(group) <= _MOST:
            for name in group:
                found[name].update((other, None) for other in group if other != name)
    return {name: tuple(others) for name, others in found.items()}


def swapped(question: str, of_kind: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, str, str]]:
    """Yield the question about a sibling, with that sibling and the thing that it replaces."""
    for name in _named_in(question, of_kind):
        for other in of_kind[name]:
            alone = re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-]| [A-Z])", question)
            if alone and not _behind_name(question[: alone.start()]) and not _overlapping(name, other):
                yield _put(other, question, alone.span()), other, name


def _behind_name(before: str) -> bool:
    """Whether the last word is a name; the words that follow would be a part of that name."""
    words = before.split()
    return len(words) > 1 and words[-1][:1].isupper() and words[-1] != "I"


def _put(name: str, question: str, span: tuple[int, int]) -> str:
    before = question[: span[0]]
    vowel = name[:1].lower() in "aeio"
    before = re.sub(r"\b([Aa])n? $", lambda article: f"{article[1]}{'n' if vowel else ''} ", before)
    return f"{before}{name}{question[span[1] :]}"


def _named_in(question: str, of_kind: Mapping[str, Iterable[str]]) -> list[str]:
    words = re.findall(r"[\w.&+-]+", question.rstrip("?"))
    runs = (
        " ".join(words[at : at + length]) for length in range(_LONGEST, 0, -1) for at in range(len(words) - length + 1)
    )
    return [run for run in dict.fromkeys(runs) if run in of_kind]


def _overlapping(name: str, other: str) -> bool:
    return name.casefold() in other.casefold() or other.casefold() in name.casefold()


def _tables(found: Iterable[QuotablePassage]) -> list[list[str]]:
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = defaultdict(list)
    for passage in found:
        if passage.names and _is_name(passage.cells[0]):
            groups[passage.section, passage.names].append(passage.cells[0])
    return [list(dict.fromkeys(group)) for group in groups.values()]


def _labels(document: Document) -> list[list[str]]:
    """Return the labels of the items of each list: bold or code, followed by a colon or a dash."""
    groups: dict[int, list[str]] = {}
    last = begins = 0
    for match in _LABEL.finditer(document.text):
        apart = document.text.count("\n", last, match.start()) > _APART
        begins = match.start() if apart or not groups else begins
        last = match.start()
        if _is_name(name := seen(match[1]).rstrip(":")):
            groups.setdefault(begins, []).append(name)
    return [list(dict.fromkeys(group)) for group in groups.values()]


def _headings(document: Document, names: Collection[str]) -> list[list[str]]:
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for heading in read_headings(document.text):
        title = seen(heading.title)
        if _is_name(title) and all(word in names or not word.isalpha() for word in title.split()):
            groups[heading.path[:-1]].append(title)
    return list(groups.values())


def _suffixes(documents: Sequence[Document]) -> list[list[str]]:
    groups: dict[str, dict[str, None]] = defaultdict(dict)
    for document in documents:
        for name in _CODE.findall(document.text):
            groups[re.findall(r"[A-Z][a-z]+", name)[-1]][name] = None
    return [list(group) for group in groups.values()]


def _folders(documents: Sequence[Document], names: Collection[str]) -> list[list[str]]:
    groups: dict[str, list[str]] = defaultdict(list)
    for document in documents:
        folder, slash, _ = document.doc_id.rpartition("/")
        title = seen(document.title)
        if slash and _is_name(title) and all(word in names for word in title.split()):
            groups[folder].append(title)
    return [group for folder, group in groups.items()]


def _titles(documents: Sequence[Document]) -> list[list[str]]:
    """Return where otherwise equal titles differ: "Returning the Alder kettle", "… the Brisk toaster"."""
    groups: dict[str, dict[str, None]] = defaultdict(dict)
    for document in documents:
        words = seen(document.title).rstrip(".:").split()
        for start in range(_ALIKE, len(words)):
            name = " ".join(words[start : start + _LONGEST])
            if len(words) - start <= _LONGEST and _is_name(name):
                groups[" ".join(words[:start])][name] = None
    return [list(group) for group in groups.values()]


def _is_name(text: str) -> bool:
    """Whether a text is a short name with a capital; "up to €50" is not."""
    return (bool(_NAME.fullmatch(text)) and len(text.split()) <= _LONGEST and text[0].isupper()) or _is_code(text)


def _is_code(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z]+(?:_[a-z0-9]+)+|[A-Z]+-?\d[\w-]*", text) is not None


# Questions about what a statement leaves open: how long, at what charge, how often, whether one is told.
#
# Such a question is only asked if the collection speaks of such things, and no passage near the statement does.

SPOKEN_OF = 0.03
"""How large a share of the chunks must speak of something for a question about it to fit the collection."""
MOST_ASKED_ALIKE = 8
"""How often one question may be asked. If many questions begin alike, a reader learns to decline them."""
NEAR = 0.4
"""From this share of the statement's words on, weighted by rarity, a chunk is near it."""


class OpenPoint(NamedTuple):
    """Something that may be left open: the question, the part that it needs, and patterns: mention, answer."""

    asked: str
    part: str
    spoken: re.Pattern[str]
    tells: re.Pattern[str]


_TIME = r"\b(?:minutes?|hours?|days?|weeks?|months?|years?|seconds?)\b"
_OPEN = tuple(
    OpenPoint(asked, part, re.compile(spoken, re.I), re.compile(tells, re.I))
    for asked, part, spoken, tells in (
        ("how long until {0}", "outcome", _TIME, rf"{_TIME}|\b(?:immediat|at once|soon|instant)"),
        (
            "is there a charge if {0}",
            "condition",
            r"[€$£]\s?\d|\d\s?€",
            r"[€$£]|\b(?:free|fee|charg|cost|pric|pay|paid|refund|money|surcharge)",
        ),
        (
            "how many tokens are used up when {0}",
            "condition",
            r"\b(?:input|output|prompt|cache|reasoning) tokens?\b",
            r"\b(?:tokens?|cost|billed|usage)",
        ),
        (
            "is there a limit on how often {0}",
            "outcome",
            r"\b(?:limit(?:s|ed)?|at most|maximum)\b",
            r"\b(?:limit|times|max|most|once|often|every|each|retr)",
        ),
        (
            "can I get an email when {0}",
            "condition",
            r"\be-?mails?\b",
            r"\b(?:e-?mail|notif|text|alert|remind|message|inform|tell|writ)",
        ),
        (
            "which log message shows that {0}",
            "outcome",
            r"\blog(?:s|ged|ging|file)\b",
            r"\b(?:log|logs|logged|logging|warning|message|span|trace|logfire)",
        ),
    )
)
_OPENING = re.compile(r"(?:you|there)\b")


def unsaid(fact: Fact, collection: DocumentCollection, used: Counter[str]) -> str | None:
    """Return the least ``used`` question about something that a statement leaves open; None if there is none."""
    parts = {"condition": _condition(fact), "outcome": _outcome(fact, collection)}
    fitting = [
        each
        for each in _OPEN
        if parts[each.part] and used[each.asked] < MOST_ASKED_ALIKE and _fits(each, parts[each.part])
    ]
    fitting = [each for each in fitting if _is_spoken_of(each, collection)]
    near = _near(fact, collection) if fitting else []
    for each in sorted(fitting, key=lambda each: used[each.asked]):
        if not any(map(each.tells.search, near)):
            used[each.asked] += 1
            return sentence(each.asked.format(parts[each.part]))
    return None


def _fits(each: OpenPoint, part: str) -> bool:
    """Whether a question fits a part: people are not told by email about what they do themselves."""
    return not (each.asked.startswith("can I get") and part.startswith("I "))


def _condition(fact: Fact) -> str:
    """Return a condition, or something that a person may want to do; empty if the fact has neither."""
    if fact.kind == "purpose":
        return f"I {fact.parts['purpose']}"
    told = fact.parts.get("condition", "")
    return told if told and not _OPENING.match(told) and (clause(told) or told.startswith("I ")) else ""


def _outcome(fact: Fact, collection: DocumentCollection) -> str:
    """Return the statement in the form for after "until"; empty if it is not about an event."""
    if fact.kind != "condition":
        return ""
    whole = lower_first(fact.answer, collection.names)
    said = asked_by_reader(re.split(r"[,;:—–(]", whole.strip().rstrip("."))[0].strip())
    found = clause(said)
    happens = found is not None and not found.negated and bool(_HAPPENS & set(found.rest.split()[:2]))
    return said if happens and 3 <= len(said.split()) <= 16 else ""


_HAPPENS = word_set(
    """
    add added arrive arrives book booked bring cancel cancelled charge charged close closed come comes create created
    delete deleted deliver delivered end ends fail fetch finish get give go goes lifted move moves pay paid receive
    refund refunded release released remove removed replace replaced replay resume resumes retry return returned send
    sent start starts stop stops swap transfer transferred update updated write
    """
)
"""Verbs of events, for which one can wait."""


def _near(fact: Fact, collection: DocumentCollection) -> list[str]:
    wanted = terms(fact.said)
    hits = [hit.chunk for hit in collection.nearest(fact.said, 20)]
    return [
        chunk.text
        for chunk in hits
        if collection.covered(wanted, chunk.text) >= NEAR
        or (chunk.doc_id == fact.doc_id and chunk.section == fact.section)
    ]


def _is_spoken_of(each: OpenPoint, collection: DocumentCollection) -> bool:
    return collection.share(each.spoken) >= SPOKEN_OF


MANY = 40
"""If more chunks name a thing, it is too common to be sure that nothing is said about it."""
RAREST = 2
"""How many of the rarest words of the question must be missing in passages about the thing."""
_SYNONYM_GROUPS = tuple(
    frozenset(map(term, words.split()))
    for words in (
        "price prices cost costs fee fees charge charges rate pay amount surcharge deposit free",
        "default defaults standard initial initially",
        "limit limits maximum max most cap quota up",
        "deadline time period duration timeout term days hours minutes",
        "weight heavy weighs kg",
        "height tall cm size dimensions",
        "warranty guarantee guaranteed covered",
        "raise raises error exception fail fails",
        "support supports supported available unsupported",
    )
)


def nothing_says(thing: str, asked: frozenset[str], collection: DocumentCollection, is_planned: bool = False) -> bool:
    """Whether no passage that names a thing has one of the rarest words asked, or a word of similar meaning.

    If all statements of the pages are planned, and none states this, it is enough that each passage lacks one of these
    words: planned statements often share a word with the question.
    """
    rarest = sorted(asked, key=lambda each: (-collection.rarity(each), each))[:RAREST]
    near = [{word, *(other for alike in _SYNONYM_GROUPS if word in alike for other in alike)} for word in rarest]
    says = all if is_planned else any
    named = terms(thing)
    hits = [terms(hit.chunk.text) for hit in collection.nearest(thing, MANY + 1)] if named else []
    naming = [found for found in hits if named <= found]
    return 0 < len(naming) <= MANY and not any(says(words & found for words in near) for found in naming)


IN_COMMON = 2
"""How many attributes two things must share. Only then is an attribute of one asked about the other."""
PAGES = 3
"""How many pages must have an attribute in a table before it is asked about similar things."""
_THINGS, _TRIED = 4, 6
"""How many things of a page, and attributes of a thing, are tried."""


class UsualAttributes:
    """Remembers which things and attributes the tables of earlier pages have.

    Args:
        collection: the documents of the pages.
    """

    def __init__(self, collection: DocumentCollection) -> None:
        self._collection = collection
        self._together: set[frozenset[str]] = set()
        self._pages: dict[str, set[str]] = defaultdict(set)

    def asked(self, facts: Sequence[Fact], chance: Random) -> list[tuple[str, Fact]]:
        """Return questions about things of a page, each with a fact about it. Then remember the page's own tables."""
        things: dict[str, Fact] = {}
        own: dict[str, set[str]] = defaultdict(set)
        for fact in facts:
            if "thing" in fact.parts:
                things.setdefault(fact.parts["thing"], fact)
                own[fact.parts["thing"]].add(fact.parts["attribute"])
        found = list(self._of(things, own, chance))
        self._together.update(map(frozenset, own.values()))
        for fact in things.values():
            for attribute in own[fact.parts["thing"]]:
                self._pages[attribute].add(fact.doc_id)
        return found

    def _of(self, things: dict[str, Fact], own: dict[str, set[str]], chance: Random) -> Iterator[tuple[str, Fact]]:
        known = set().union(*own.values())
        for thing, fact in list(things.items())[:_THINGS]:
            near = {name for told in self._together if len(told & own[thing]) >= IN_COMMON for name in told}
            usual = sorted(name for name in near - known if len(self._pages[name]) >= PAGES)
            for attribute in shuffled(usual, chance)[:_TRIED]:
                if nothing_says(thing, terms(attribute), self._collection):
                    yield sentence(question_for_cell(attribute, thing)), fact
                    break


def untold(doc_id: str, collection: DocumentCollection) -> Iterator[tuple[str, str]]:
    """Yield questions about a page's thing that similar pages answer for theirs, with the kind of the answer."""
    thing = collection.planned.things.get(doc_id, "")
    for fact in collection.planned.untold(doc_id):
        asked = asked_of(fact, collection.planned.names_of(doc_id))
        rest = terms(asked) - terms(thing) - terms(fact.value)
        if len(rest) >= RAREST and nothing_says(thing, rest, collection, is_planned=True):
            yield sentence(asked), FACT_KIND_OF_PLANNED[fact.kind]


# A question about a row of a table, a class or a page of a folder is asked about another one of the same kind. It is
# kept if no passage that names the other thing has the rarest words of the question, or words with similar meaning. It
# is dropped if too many passages name the thing. The row has the nearest passages for the reviewer.

KIND = "negative"
NEAREST_SHOWN = 3
"""How many nearest passages are in a row's metadata."""
MOST_PAGES = 2_000
"""How many pages are tried, at random. A collection with few such questions would otherwise take minutes."""
_FACTS = 20
"""How many facts of a page are tried, at random. A page with many facts would otherwise take too long."""
_OF_EACH = 3
_MOST_NEGATIVE_TRIES = 12
_KINDS = frozenset(("cell", "quantity", "property", "permission", "condition", "purpose", *PLANNED_KINDS))


def negative_drafts(collection: DocumentCollection, seed: int) -> Iterator[tuple[Draft, ...]]:
    """Yield drafts, page after page: for each, a question about a sibling, and one about something left open."""
    chance = Random(f"{seed} negative")
    usual = UsualAttributes(collection)
    used: Counter[str] = Counter()
    of_kind = siblings(_sampled_pages(collection, chance), collection.names)
    for page in shuffled(collection.current, chance)[:MOST_PAGES]:
        facts = shuffled([fact for fact in collection.facts(page.doc_id) if fact.kind in _KINDS], chance)
        asked = usual.asked(facts, chance)
        of_usual = (negative_draft(question, fact.doc_id, fact.kind, collection, chance) for question, fact in asked)
        tried = facts[:_FACTS]
        is_planned = page.doc_id in collection.planned.things
        of_siblings = _siblings(() if is_planned else tried, of_kind, collection, chance)
        for found in (_untold(page, collection, chance), of_siblings, _open(tried, collection, used, chance), of_usual):
            yield from ((draft,) for draft, _ in zip(found, range(_OF_EACH), strict=False))


def _untold(page: Document, collection: DocumentCollection, chance: Random) -> Iterator[Draft]:
    """Yield questions about this page's thing that plans answer for the things of similar pages."""
    for question, kind in untold(page.doc_id, collection):
        yield negative_draft(question, page.doc_id, kind, collection, chance)


def _siblings(
    facts: Sequence[Fact], of_kind: dict[str, tuple[str, ...]], collection: DocumentCollection, chance: Random
) -> Iterator[Draft]:
    return (draft for fact in facts for draft in _of_fact(fact, of_kind, collection, chance))


def _open(facts: Sequence[Fact], collection: DocumentCollection, used: Counter[str], chance: Random) -> Iterator[Draft]:
    for fact in facts:
        asked = unsaid(fact, collection, used)
        if asked:
            yield negative_draft(asked, fact.doc_id, LEFT_OPEN, collection, chance)


_MOST_READ = 1_000
"""How many pages are searched for siblings in their tables and names."""


def _sampled_pages(collection: DocumentCollection, chance: Random) -> list[Document]:
    pages = shuffled(collection.current, chance)[:_MOST_READ]
    return sorted(pages, key=lambda page: page.doc_id)


def _of_fact(
    fact: Fact, of_kind: dict[str, tuple[str, ...]], collection: DocumentCollection, chance: Random
) -> Iterator[Draft]:
    question = question_for_fact(fact, chance)
    page = collection.by_id[fact.doc_id].text
    for asked, thing, told_of in shuffled(list(swapped(question, of_kind)), chance)[:_MOST_NEGATIVE_TRIES]:
        rest = terms(question) - terms(told_of)
        near = thing in page or (fact.kind != "cell" and thing in collection.names)
        if near and len(rest) >= RAREST and nothing_says(thing, rest, collection):
            yield negative_draft(asked, fact.doc_id, fact.kind, collection, chance)
            return


def nearest_to(question: str, collection: DocumentCollection) -> list[dict[str, str]]:
    """Return the passages nearest to a question. A reviewer checks that none of them answers it."""
    hits = collection.nearest(question, NEAREST_SHOWN)
    return [{"filename": hit.chunk.doc_id, "text": seen(hit.chunk.text)[:240]} for hit in hits]


def negative_draft(plain: str, doc_id: str, kind: str, collection: DocumentCollection, chance: Random) -> Draft:
    """Return the draft of a question that nothing answers; the page ``doc_id`` is about something near."""
    truth = f"The documents do not answer this: {doc_id} is about something near, and does not say it."
    metadata = {"nearest_page": doc_id, "nearest": nearest_to(plain, collection)}
    return Draft(KIND, plain, in_other_words(plain, chance), truth, "", (), (kind,), metadata)
