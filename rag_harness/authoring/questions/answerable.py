"""Answerable questions: direct ones, ones about superseded facts, and ones that need two pages, with paraphrases."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from random import Random

from rag_harness.authoring.questions.document_collection import DocumentCollection, are_linked, leads_to, neighbours
from rag_harness.authoring.questions.drafts import Draft, fault_of_half
from rag_harness.authoring.questions.english import (
    BASES,
    TOLD_TO_DO,
    Forms,
    asked_by_reader,
    lower_first,
    read_forms,
    word_set,
)
from rag_harness.authoring.questions.facts import PLANNED_KINDS, Fact, in_turn, question_for_fact, sentence, shuffled
from rag_harness.authoring.questions.planned_facts import is_many, unit_of
from rag_harness.authoring.questions.sentence_facts import seen
from rag_harness.core.text.contradictions import Quote, contradictions
from rag_harness.core.text.terms import STOPWORDS, terms
from rag_harness.core.types import Document, Evidence

# Rewords a question so that it shares fewer words with its page: by fixed turns, and by a list of synonyms.
#
# Names, codes, numbers and quoted words stay. The list replaces few words: docs/dev/results/drafted-questions.md has
# the figures.

TURNED = 0.7
"""The share of the questions that are turned, of those that can be. People also ask in the plain way."""

_TURNS = tuple(
    (re.compile(asked, re.I), said)
    for asked, said in (
        (r"\bwhat is the (?:price|cost) (?:for|of) ([^?.]{1,200})\?", "how much do I have to pay for {0}?"),
        (r"\bwhat is the (?:fee|charge) for ([^?.]{1,200})\?", "what do I have to pay for {0}?"),
        (r"\bwhat is the weight of ([^?.]{1,200})\?", "how heavy is {0}?"),
        (r"\bwhat is the height of ([^?.]{1,200})\?", "how tall is {0}?"),
        (r"\bwhat is the length of ([^?.]{1,200})\?", "how long is {0}?"),
        (r"\bwhat is the lifetime for ([^?.]{1,200})\?", "how long does {0} last?"),
        (r"\bwhat is the default for ([^?.]{1,200})\?", "what is taken for {0} if I say nothing?"),
        (r"\bhow much does ([^?.]{1,200}?) cost([^?.]{0,200})\?", "what do I have to pay for {0}{1}?"),
        (r"\bwhat happens ((?:if|when|once|unless) [^?.]{1,200})\?", "{0}, what then?"),
        (r"\b((?:if|when|once|unless) [^?.]{1,200}), what happens\?", "{0}, what follows?"),
        (r"\bwhat exactly is ([^?.]{1,200})\?", "what is meant by {0}?"),
        (r"\bhow often\b", "at what intervals"),
        (r"\bwhat is the way to\b", "how would I"),
        (r"\bwhat do I have to do to\b", "how would I"),
    )
)
_FREE = re.compile(r"(?<![\w.@/=_'\"“(:-])[a-z]+(?![\w(=/_@:'’\"-]|\.\w)")
"""A small word that is not part of a code, a path or a quote."""
_VERBAL = word_set("to i you we can could should must will would do does did not don't may might")
_BEFORE_ING = word_set("by when for of from without before after while is are not keep")
_BEFORE_PAST = word_set("is are was were be been has have had not i you get gets being")
_NOMINAL = word_set("the a an my your our its their this each every any some no of")


def in_other_words(question: str, chance: Random) -> str:
    """Return the question with words replaced from the list; the same question if the list has none of them."""
    turned = _turned(question) if chance.random() < TURNED else question
    quoted = [
        found.span() for found in re.finditer(r"\"[^\"]{0,400}\"|“[^”]{0,400}”|(?<!\w)'[^']{0,400}'(?!\w)", turned)
    ]
    return _FREE.sub(lambda word: word[0] if _inside(word.start(), quoted) else _other(word), _phrases(turned))


def _turned(question: str) -> str:
    for pattern, said in _TURNS:
        match = pattern.search(question)
        if match:
            new = said.format(*match.groups())
            new = new[:1].upper() + new[1:] if match[0][:1].isupper() else new[:1].lower() + new[1:]
            return question[: match.start()] + new + question[match.end() :]
    return question


def _inside(place: int, spans: list[tuple[int, int]]) -> bool:
    return any(start < place < end for start, end in spans)


def _phrases(question: str) -> str:
    for written, said in _known().phrases.items():
        question = re.sub(rf"(?<![\w-]){re.escape(written)}(?![\w-])", said, question)
    return question


def _other(word: re.Match[str]) -> str:
    before = word.string[: word.start()].split()
    after = word.string[word.end() :].split()
    if after and after[0][:1].isupper() and after[0] != "I":
        return word[0]
    last = before[-1].lower() if before else ""
    for kind, said in _known().words.get(word[0], ()):
        if _fits(kind, last, after[0] if after else "", bool(before and before[-1][:1].isupper() and len(before) > 1)):
            return said
    return word[0]


def _fits(kind: str, last: str, following: str, behind_name: bool) -> bool:
    if kind == "base":
        return last in _VERBAL
    if kind in ("ing", "past"):
        return last in (_BEFORE_ING if kind == "ing" else _BEFORE_PAST)
    if kind == "noun" and following and following.strip(".,;:?!)").lower() not in STOPWORDS:
        return False  # the noun stands before another noun: "price match"
    if kind == "third":
        return last not in _NOMINAL and not behind_name
    return kind != "noun" or not behind_name


@lru_cache(maxsize=1)
def _known() -> Forms:
    return read_forms()


ENOUGH = 4
"""From so many content words on, a question needs no topic."""
RARE, VERY_RARE = 4.0, 5.5
"""In nats. A question needs two words that fewer than 1 chunk in 55 has, or one word that fewer than 1 in 245 has. In a
small collection no word is so rare; the limits are then 0.6 and 0.8 of the rarest word's value. collection, in which no
word is so rare, 0.6 and 0.8 of what the rarest have."""
_CODED = re.compile(r"\w[_.]\w|[a-z][A-Z]|[A-Z][A-Z0-9]{0,40}-?\d")
_GENERIC = word_set("overview introduction index home readme welcome about guide basics summary misc general faq notes")
_FRAMES = ("{about}: {asked}", "About {about}: {asked}", "Regarding {about}: {asked}", "{Asked} (Topic: {about})")
_OF_THINGS = (
    "I have a question about {about}. {Asked}",
    "{Asked} It's about {about}.",
    "I'm reading up on {about}. {Asked}",
    "{Asked} (I mean {about}.)",
)
"""For titles that name a thing, not an action."""


def needs_topic(question: str, collection: DocumentCollection) -> bool:
    """Whether a question is so vague that one would ask back: about what?"""
    found = terms(question)
    if any(_CODED.search(word) for word in question.split()):
        return False
    rarest = math.log(len(collection.chunks) + 1)
    weights = [collection.rarity(term) for term in found]
    telling = sum(weight >= min(RARE, 0.6 * rarest) for weight in weights)
    single = any(weight >= min(VERY_RARE, 0.8 * rarest) for weight in weights)
    return len(found) < ENOUGH or not (telling > 1 or single)


def topic_of(document: Document, section: tuple[str, ...], question: str) -> str:
    """Return a title of the page or section that adds something to the question; empty if there is none."""
    for title in (seen(document.title), *reversed(section)):
        words = terms(title)
        if words - terms(question) and not words <= _GENERIC and len(title.split()) <= 6 and not title.endswith("?"):
            return asked_by_reader(title.rstrip(".:") if " " in title else title.replace("-", " "))
    return ""


def draw_frame(topic: str, chance: Random) -> str:
    """Draw how a topic is named. Some ways only suit things."""
    does = topic.split(maxsplit=1)[0].lower() in BASES | TOLD_TO_DO | {
        "how",
        "when",
        "what",
        "why",
        "where",
        "who",
        "missed",
    }
    return chance.choice(_FRAMES if does else _FRAMES + _OF_THINGS)


def with_topic(question: str, topic: str, frame: str) -> str:
    """Return the question with its topic before or after it, as people write."""
    said = frame.format(about=topic, asked=question[:1].lower() + question[1:], Asked=question)
    return said if re.match(r"\S*[_.]", said) else said[:1].upper() + said[1:]


# Direct questions from facts of current pages, one page after the other, so that no page dominates.

DIRECT = "direct"


def direct_drafts(collection: DocumentCollection, seed: int) -> Iterator[tuple[Draft, ...]]:
    """Yield drafts, page after page in turn. The facts of a page are read at its first turn.

    A tuple has alternatives, and the first one that passes is used: the question as it is, and with its topic.
    """
    chance = Random(f"{seed} direct")
    for fact in in_turn(collection.current, lambda page: collection.facts(page.doc_id), chance):
        yield tuple(drafts_of(fact, collection, chance))


COMMON = 2.0
"""In nats. If all words of a thing are in 1 chunk of 8, the whole collection is about it."""


def _is_vague(subject: str) -> bool:
    """Whether a subject is one common word, which may mean something else elsewhere: "the agent", "codes"."""
    return len(terms(subject)) == 1 and subject.islower() and subject.isascii() and "_" not in subject


def is_everywhere(subject: str, collection: DocumentCollection) -> bool:
    """Whether all pages are about a subject: then many of them say what it does."""
    found = terms(subject)
    return bool(found) and all(collection.rarity(term) < min(COMMON, 0.3 * len(collection.chunks)) for term in found)


def drafts_of(fact: Fact, collection: DocumentCollection, chance: Random) -> Iterator[Draft]:
    """Yield the question for a fact, unless it needs a topic, and the same question with its topic."""
    if is_everywhere(fact.parts.get("subject", ""), collection):
        return
    asked = question_for_fact(fact, chance)
    evidence = (Evidence(fact.doc_id, fact.quote),)
    if "about" in fact.parts:
        yield Draft(DIRECT, asked, in_other_words(asked, chance), fact.said, fact.answer, evidence, (fact.kind,))
        return
    topic = topic_of(collection.by_id[fact.doc_id], fact.section, asked)
    if not needs_topic(asked, collection) and not _is_vague(fact.parts.get("subject", "")):
        yield Draft(DIRECT, asked, in_other_words(asked, chance), fact.said, fact.answer, evidence, (fact.kind,))
    if topic:
        about, frame = lower_first(topic, collection.names), draw_frame(topic, chance)
        plain, text = (with_topic(said, about, frame) for said in (asked, in_other_words(asked, chance)))
        yield Draft(DIRECT, plain, text, fact.said, fact.answer, evidence, (fact.kind,), {"topic": topic})


OF_PAIR = 2
"""The most questions for a pair of pages."""


def version_drafts(collection: DocumentCollection, chance: Random) -> Iterator[tuple[Draft, ...]]:
    """Yield direct questions about facts of current pages that the previous page states differently."""
    for old, new in _pairs(collection):
        for fact, stale in _changed(old, new, collection)[:OF_PAIR]:
            superseded = {"outdated_statement": stale.said, "current_statement": fact.said}
            told = {"version_conflict": True, "version_pair": old.doc_id, "superseded": [superseded]}
            drafts = drafts_of(fact, collection, chance)
            yield tuple(replace(draft, metadata={**draft.metadata, **told}) for draft in drafts)


def old_and_new_drafts(collection: DocumentCollection, chance: Random) -> Iterator[tuple[Draft, ...]]:
    """Yield questions about what is true now and what was true before; they need both pages."""
    for old, new in _pairs(collection):
        for fact, stale in _changed(old, new, collection)[:1]:
            plain = sentence(f"{question_for_fact(fact, chance).rstrip('?')}, today and under {seen(old.title)}")
            truth = f"Now: {fact.said} Before: {stale.said}"
            evidence = (Evidence(new.doc_id, fact.quote), Evidence(old.doc_id, stale.quote))
            metadata = {"kind": "old and new", "hops": 2, "linked": "yes", "version_conflict": True}
            answer = f"{fact.answer} {stale.answer}"
            yield (Draft("multi_hop", plain, plain, truth, answer, evidence, (fact.kind, stale.kind), metadata),)


def _pairs(collection: DocumentCollection) -> list[tuple[Document, Document]]:
    known = collection.by_id
    return [(known[old], known[new]) for old, new in sorted(collection.superseded.items()) if new in known]


def _changed(old: Document, new: Document, collection: DocumentCollection) -> list[tuple[Fact, Fact]]:
    """Return the facts of a page that contradict the previous page, each once, with the previous page's statement."""
    before, now = ([fact for fact in collection.facts(page.doc_id) if fact.kind in _KINDS] for page in (old, new))
    changed: dict[int, tuple[Fact, Fact]] = {}
    for each in contradictions([old.text, new.text]):
        for fact in (fact for fact in now if _stands_in(fact, each.second) and each.differs[1] in fact.said):
            for stale in (stale for stale in before if _stands_in(stale, each.first) and _same(stale, fact)):
                changed.setdefault(fact.start, (fact, stale))
    return list(changed.values())


_KINDS = frozenset(("cell", "quantity", "condition", *PLANNED_KINDS))


def _stands_in(fact: Fact, quote: Quote) -> bool:
    return fact.start < quote.end and quote.start < fact.end


def _same(stale: Fact, fact: Fact) -> bool:
    """Whether two facts state different things about one subject: the same cell, or the same form of prose."""
    same = stale.parts.get("asked") == fact.parts.get("asked") if fact.kind == "cell" else stale.kind == fact.kind
    return same and stale.answer != fact.answer


IN_COMMON = 2
"""How many attributes two things must share to be similar: all things have a price."""
NEAR = 3.0
"""The greater of two compared values may be at most so many times the lesser."""
_FIGURE = re.compile(r"[^\d]{0,3}(\d+(?:[.,]\d+)*)\s?\S*")
MORE = {
    "weight": "is heavier", "price": "costs more", "cost": "costs more", "fee": "costs more", "charge": "costs more",
    "height": "is taller", "length": "is longer",
}  # fmt: skip


def comparison(mine: Sequence[Fact], theirs: Sequence[Fact], chance: Random) -> Draft | None:
    """Return a question about which of two similar things has more of an attribute; None if no cells are comparable."""
    for first in mine:
        for second in theirs:
            one, other = figure_in_cell(first), figure_in_cell(second)
            if not one or not other or len(_told_of(first, mine) & _told_of(second, theirs)) < IN_COMMON:
                continue
            if one[:2] == other[:2] and is_near(one[2], other[2]) and _differ(first, second):
                return _draft(first, second, one[2] > other[2], chance)
    return None


def _told_of(fact: Fact, facts: Sequence[Fact]) -> set[str]:
    """Return the attributes of a fact's thing in the tables of its page."""
    return {each.parts["attribute"] for each in facts if each.parts.get("thing") == fact.parts["thing"]}


def is_near(one: float, other: float) -> bool:
    """Whether two numbers differ, but not so much that the question would be silly."""
    return one != other and max(one, other) <= NEAR * min(one, other)


def _differ(first: Fact, second: Fact) -> bool:
    return first.parts["thing"].casefold() != second.parts["thing"].casefold()


def figure_in_cell(fact: Fact) -> tuple[str, str, float] | None:
    """Return attribute, unit and number of a cell with exactly one number."""
    match = _FIGURE.fullmatch(fact.answer.strip())
    if "attribute" not in fact.parts or not match or fact.parts["attribute"] in ("code", "number", "address"):
        return None
    number = re.sub(r",(?=\d{3}\b)", "", match[1]).replace(",", ".")
    return (fact.parts["attribute"], fact.answer.replace(match[1], "").strip(), float(number)) if _one(number) else None


def _one(number: str) -> bool:
    return re.fullmatch(r"\d+(?:\.\d+)?", number) is not None


def _draft(first: Fact, second: Fact, first_is_more: bool, chance: Random) -> Draft:
    attribute = first.parts["attribute"]
    more = MORE.get(attribute, f"has the higher {attribute}")
    things = [first.parts["thing"], second.parts["thing"]]
    winner = things[0] if first_is_more else things[1]
    asked = chance.choice((f"which {more}, {things[0]} or {things[1]}", f"{things[0]} or {things[1]}, which {more}"))
    truth = f"{winner[:1].upper()}{winner[1:]} {more}: {first.said}; {second.said}."
    evidence = (Evidence(first.doc_id, first.quote), Evidence(second.doc_id, second.quote))
    plain = sentence(asked)
    answer = f"{first.answer} {second.answer}"
    return Draft("multi_hop", plain, plain, truth, answer, evidence, ("cell", "cell"), {"kind": "comparison"})


PAIR_KIND = "multi_hop"


def are_planned(one: str, other: str, collection: DocumentCollection) -> bool:
    """Whether the plan says that two pages are about different things."""
    things = collection.planned.things
    return one in things and other in things and things[one] != things[other]


def like_draft(
    mine: Sequence[Fact], theirs: Sequence[Fact], collection: DocumentCollection, chance: Random
) -> Draft | None:
    """Return a question about a fact that both pages state about their things; None without such a fact."""
    if not mine or not theirs:
        return None
    one, other = (_by_frame(facts, collection) for facts in (mine, theirs))
    for frame in shuffled(sorted(one.keys() & other.keys()), chance):
        pair = (one[frame], other[frame])
        asked = [question_for_fact(fact, chance) for fact in pair]
        if _are_one(pair, asked, collection) and not any(map(fault_of_half, pair, asked, [collection] * 2)):
            return _both(pair, asked[0], collection, chance)
    return None


def _are_one(pair: tuple[Fact, Fact], asked: Sequence[str], collection: DocumentCollection) -> bool:
    """Whether two facts answer the same question words: "by whom" is not answered by "with a cloth"."""
    things = [collection.planned.things[fact.doc_id] for fact in pair]
    one, other = (re.sub(re.escape(thing), "", said, flags=re.I) for thing, said in zip(things, asked, strict=True))
    return one.casefold() == other.casefold()


def _by_frame(facts: Sequence[Fact], collection: DocumentCollection) -> dict[str, Fact]:
    frames = {told.fact.id: frame for frame, told in collection.planned.told.get(facts[0].doc_id, {}).items()}
    return {frames[fact.parts["id"]]: fact for fact in facts if fact.parts.get("id") in frames}


def _both(pair: tuple[Fact, Fact], asked: str, collection: DocumentCollection, chance: Random) -> Draft:
    called = [collection.planned.called(fact.doc_id) for fact in pair]
    greater = None if asked.startswith("How often") else _greater(pair)
    do = "do" if is_many(called[1].split()) else "does"
    about = chance.choice(_COMPARED if greater is not None else _ALSO).format(called[1], do=do)
    evidence = tuple(Evidence(fact.doc_id, fact.quote) for fact in pair)
    truth = " ".join(fact.said for fact in pair)
    if greater is not None:
        truth += f" The greater figure is that of {called[greater]}."
    plain, text = (sentence(f"{said.rstrip('?')}, {about}") for said in (asked, in_other_words(asked, chance)))
    answer, made_of = " ".join(fact.answer for fact in pair), tuple(fact.kind for fact in pair)
    return Draft(PAIR_KIND, plain, text, truth, answer, evidence, made_of, {"kind": "like things"})


_COMPARED = ("and how {do} {0} compare", "and is the figure for {0} higher or lower", "and is that more than for {0}")
_ALSO = ("and what about {0}", "and what applies to {0}")


def _greater(pair: tuple[Fact, Fact]) -> int | None:
    """Return which of two answers is the greater figure; None for equal ones, other units, and non-figures."""
    units = [unit_of(fact.answer) for fact in pair]
    figures = [re.findall(r"\d+(?:\.\d+)?", fact.answer.replace(",", "")) for fact in pair]
    if not units[0] or units[0] != units[1] or any(len(found) != 1 for found in figures):
        return None
    one, other = (float(found[0]) for found in figures)
    return None if one == other else int(other > one)


MULTI_HOP = "multi_hop"
SHARED = 4.2
"""Two questions with a common word of this rarity, in nats, are about one thing; less in a small collection."""
LED = 20.0
"""The weight of a link from a fact's own sentence to the other page."""
TWO = 0.7
"""The weight of the two rarest common words together, against one word that is as rare as both."""
_TRIED = 40
"""How many facts of a page are compared with those of another."""
_NEIGHBOURS = 8
_ROUNDS = 3
_OF_PAGE = 3
"""The most questions for one page: otherwise an overview page would be in every question."""


def multi_hop_drafts(collection: DocumentCollection, seed: int) -> Iterator[tuple[Draft, ...]]:
    """Yield drafts, one pair of pages after the other, each pair once."""
    chance = Random(f"{seed} multi-hop")
    read: dict[str, list[Fact]] = {}
    paired: set[frozenset[str]] = set()
    uses: Counter[str] = Counter()
    for _ in range(_ROUNDS):
        for page in shuffled(collection.current, chance):
            for draft in _of_page(page, collection, read, paired, chance):
                if all(uses[name] < _OF_PAGE for name in draft.pages):
                    uses.update(draft.pages)
                    yield (draft,)
                    break


def _of_page(
    page: Document,
    collection: DocumentCollection,
    read: dict[str, list[Fact]],
    paired: set[frozenset[str]],
    chance: Random,
) -> Iterator[Draft]:
    mine = _facts(page, collection, read, chance)
    for name in neighbours(page, collection)[:_NEIGHBOURS] if mine else ():
        pair = frozenset((page.doc_id, name))
        if pair in paired:
            continue
        paired.add(pair)
        other = collection.by_id[name]
        theirs = _facts(other, collection, read, chance)
        if are_planned(page.doc_id, name, collection):
            draft = like_draft(mine, theirs, collection, chance)
        else:
            draft = _joined(mine, theirs, collection, chance) or comparison(mine, theirs, chance)
        if draft:
            linked = "yes" if are_linked(page, other) else "no"
            yield replace(draft, metadata={**draft.metadata, "hops": 2, "linked": linked})


def _facts(page: Document, collection: DocumentCollection, read: dict[str, list[Fact]], chance: Random) -> list[Fact]:
    if page.doc_id not in read:
        read[page.doc_id] = shuffled(collection.facts(page.doc_id), chance)
    return read[page.doc_id]


def _joined(
    mine: Sequence[Fact], theirs: Sequence[Fact], collection: DocumentCollection, chance: Random
) -> Draft | None:
    """Ask for two facts about one thing that are on different pages."""
    pairs = [(_related(one, other, collection), one, other) for one in mine[:_TRIED] for other in theirs[:_TRIED]]
    for weight, one, other in sorted(pairs, key=lambda pair: -pair[0])[:_TRIED]:
        if weight < _least(collection):
            return None
        halves = [question_for_fact(fact, chance) for fact in (one, other)]
        shares = _shared(halves[0], halves[1], collection) >= _least(collection) or weight >= LED
        if shares and not any(map(fault_of_half, (one, other), halves, [collection] * 2)):
            return _two_part_question(one, other, halves, chance)
    return None


def _least(collection: DocumentCollection) -> float:
    return min(SHARED, 0.6 * math.log(len(collection.chunks) + 1))


def _related(one: Fact, other: Fact, collection: DocumentCollection) -> float:
    """Return how certain it is that two facts are about one thing: by their rarest common word, and by a link."""
    led = leads_to(one.quote, one.doc_id, other.doc_id) or leads_to(other.quote, other.doc_id, one.doc_id)
    return _shared(one.said, other.said, collection) + LED * led


def _shared(one: str, other: str, collection: DocumentCollection) -> float:
    rarest = sorted((collection.rarity(term) for term in terms(one) & terms(other)), reverse=True)[:2]
    return max([0.0, *rarest[:1], sum(rarest) * TWO])


def _two_part_question(one: Fact, other: Fact, halves: Sequence[str], chance: Random) -> Draft:
    def said(parts: Sequence[str]) -> str:
        return sentence(f"{parts[0].rstrip('?')}, and {parts[1][:1].lower()}{parts[1][1:]}")

    evidence = (Evidence(one.doc_id, one.quote), Evidence(other.doc_id, other.quote))
    truth, answer = f"{one.said} {other.said}", f"{one.answer} {other.answer}"
    text = said([in_other_words(half, chance) for half in halves])
    return Draft(MULTI_HOP, said(halves), text, truth, answer, evidence, (one.kind, other.kind), {"kind": "two parts"})
