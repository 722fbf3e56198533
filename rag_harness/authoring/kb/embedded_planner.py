"""Plans without a model, drawn from a shipped domain with a seed.

The drafts and links that every plan is made of.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from calendar import month_name
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cached_property, lru_cache
from importlib.resources import files
from itertools import chain, islice
from random import Random
from typing import Any

from rag_harness.authoring.kb.plan import Conflict, Plan, PlannedFact, PlannedTable, PlanPage, PlanRequest, VersionPair
from rag_harness.core.errors import DataError
from rag_harness.core.settings.profiles import parsed_toml
from rag_harness.core.text.comparison import slug

# An axis is a kind of thing; the names of its things are combinations of parts. Each thing of an axis gets its topics.
# A topic has facts (``kind: The <subject> is [value].``, with gaps that ``phrases`` fills), a table, and steps. A step
# that begins with ``?`` may be left out.

_FACT = re.compile(r"(?P<kind>\w+): (?P<before>[^\[\]]*)\[(?P<value>[^\[\]]+)\](?P<after>[^\[\]]*)")


@dataclass(frozen=True, slots=True)
class FactTemplate:
    """A fact with gaps. ``<`` and ``>`` enclose its subject, before or after the value."""

    kind: str
    before: str
    value: str
    after: str


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that each thing of an axis gets."""

    axis: str
    category: str
    title: str
    facts: tuple[FactTemplate, ...]
    table: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    steps: tuple[str, ...]


@dataclass(frozen=True)
class Axis:
    """A kind of thing: ``form`` has the names of its parts in braces; two lists of words are combined."""

    form: str
    parts: Mapping[str, tuple[str, ...]]

    @cached_property
    def size(self) -> int:
        """The number of things of this kind."""
        first, second = self.parts.values()
        return len(first) * len(second)


@dataclass(frozen=True, slots=True)
class Domain:
    """The material for plans."""

    name: str
    title: str
    axes: Mapping[str, Axis]
    topics: tuple[Topic, ...]


def domain_names() -> list[str]:
    """Return the names of the shipped domains."""
    return sorted(file.name[:-5].replace("-", " ") for file in _folder().iterdir() if file.name.endswith(".toml"))


@lru_cache(maxsize=4)
def read_domain(name: str) -> Domain:
    """Return the domain of that name; case, hyphens and blanks do not matter.

    Raises:
        DataError: the domain is unknown; the message names the shipped ones.
    """
    plain = " ".join(name.casefold().replace("-", " ").split())
    if plain not in domain_names():
        known = ", ".join(repr(each) for each in domain_names())
        what = f"No domain {name!r} is shipped; there are {known}."
        raise DataError(f"{what} Name one of them, or have any other written by a model: --writer llm")
    text = (_folder() / f"{plain.replace(' ', '-')}.toml").read_text(encoding="utf-8")
    return _domain(plain, parsed_toml(text))


def _folder() -> Any:
    return files(__package__ or "") / "domains"


def _domain(name: str, read: Mapping[str, Any]) -> Domain:
    axes = {axis: Axis(told["form"], _parts(told)) for axis, told in read["axes"].items()}
    return Domain(name, read["title"], axes, tuple(_topic(each) for each in read["topics"]))


def _parts(told: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(words) for name, words in told.items() if name != "form"}


def _topic(told: Mapping[str, Any]) -> Topic:
    return Topic(
        axis=told["axis"],
        category=told["category"],
        title=told["title"],
        facts=tuple(_fact(each) for each in told["facts"]),
        table=told["table"],
        columns=tuple(told["columns"]),
        rows=tuple(tuple(row) for row in told["rows"]),
        steps=tuple(told["steps"]),
    )


def _fact(text: str) -> FactTemplate:
    found = _FACT.fullmatch(text)
    if found is None:
        raise DataError(f"{text!r} is not a fact: expected 'kind: The <subject> is [value].'")
    return FactTemplate(found["kind"], found["before"], found["value"], found["after"])


# Pairs topics with things, each pair once: first a few topics for each thing, later the others.

_TOGETHER = 3
"""How many pages in a row are about one thing. They can link to each other, and questions can need two of them."""


@dataclass(frozen=True, slots=True)
class Dealt:
    """A future page: its topic, and the names of its thing and of the thing's parts."""

    topic: Topic
    names: dict[str, str]


def deal(domain: Domain, count: int, seed: int) -> list[Dealt]:
    """Return ``count`` pages, or fewer if there are no more."""
    return list(islice(_dealt(domain, Random(f"{seed} {domain.name} deal")), count))


def _dealt(domain: Domain, chance: Random) -> Iterator[Dealt]:
    topics: dict[str, list[Topic]] = defaultdict(list)
    for topic in domain.topics:
        topics[topic.axis].append(topic)
    # An axis has as many turns as topics, so that a topic comes again only after nearly all others.
    turns = [(_of_axis(domain.axes[axis], own, chance), len(own)) for axis, own in topics.items()]
    while turns:
        taken = [(pages, length, list(islice(pages, length))) for pages, length in turns]
        for _, _, some in taken:
            yield from some
        turns = [(pages, length) for pages, length, some in taken if some]


def _of_axis(axis: Axis, topics: list[Topic], chance: Random) -> Iterator[Dealt]:
    topics = chance.sample(topics, len(topics))
    things = _things(axis, chance)
    for first in range(0, len(topics), _TOGETHER):
        for number, names in enumerate(things):
            for place in range(first, min(first + _TOGETHER, len(topics))):
                yield Dealt(topics[(_TOGETHER * number + place) % len(topics)], names)


def _things(axis: Axis, chance: Random) -> list[dict[str, str]]:
    """Return all things; neighbours in the list have no part in common."""
    (one, firsts), (other, seconds) = axis.parts.items()
    firsts, seconds = (tuple(chance.sample(words, len(words))) for words in (firsts, seconds))
    if len(firsts) > len(seconds):
        (one, firsts), (other, seconds) = (other, seconds), (one, firsts)
    return [
        _named(axis, {one: first, other: seconds[(place + turn) % len(seconds)]})
        for turn in range(len(seconds))
        for place, first in enumerate(firsts)
    ]


def _named(axis: Axis, parts: dict[str, str]) -> dict[str, str]:
    thing = axis.form.format(**parts)
    return {**parts, "thing": thing, "Thing": thing[:1].upper() + thing[1:]}


# Fills the gaps of sentences: a text in braces is drawn, or is a name.
#
# ``{thing}``            a name that the topic gives
# ``{a|b|c}``            one of these, which may be empty or have gaps of its own
# ``{14..60:7}``         a number from 14 in steps of 7; as many decimals as start or step
# ``{date:2025..2026}``  a day of these years

_GAP = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(\d+(?:\.\d+)?)\.\.(\d+(?:\.\d+)?)(?::(\d+(?:\.\d+)?))?")
_DATE = re.compile(r"date:(\d{4})\.\.(\d{4})")
_ONE = re.compile(
    r"(?<![\d.,])(1 (?:working |private )?"
    r"(?:cleaning|customer|day|hour|kilometre|litre|minute|month|network|person|piece|place|point|programme|profile"
    r"|recipient|second|step|time|unit|use|week|year))s\b"
)
_LAST_DAY = 28
"""Every month has this day, so that every date is valid."""


def filled(text: str, names: Mapping[str, str], chance: Random) -> str:
    """Return ``text`` with its gaps filled. A number of 1 is followed by a singular.

    Raises:
        KeyError: a gap has an unknown name.
    """
    while "{" in text:
        text = _GAP.sub(lambda gap: _drawn(gap[1], names, chance), text)
    return _ONE.sub(r"\1", text)


def _drawn(gap: str, names: Mapping[str, str], chance: Random) -> str:
    if gap in names:
        return names[gap]
    if "|" in gap:
        return chance.choice(gap.split("|"))
    if found := _DATE.fullmatch(gap):
        return _day(int(found[1]), int(found[2]), chance)
    if found := _RANGE.fullmatch(gap):
        return _number(found[1], found[2], found[3] or "1", chance)
    raise KeyError(gap)


def _day(first: int, last: int, chance: Random) -> str:
    return f"{chance.randint(1, _LAST_DAY)} {month_name[chance.randint(1, 12)]} {chance.randint(first, last)}"


def _number(start: str, end: str, step: str, chance: Random) -> str:
    decimals = max(len(each.partition(".")[2]) for each in (start, step))
    scale = 10**decimals
    first, last, by = (round(float(each) * scale) for each in (start, end, step))
    value: float = chance.randrange(first, last + 1, by) / scale
    return f"{value:,.{decimals}f}"


# A page without links and version yet: its facts, and the fact that its outdated version would state.


@dataclass(frozen=True, slots=True)
class Draft:
    """The contents of a page, without links and version.

    Attributes:
        id: the page's unique id.
        about: what the page shares with pages that it may link to, the closest first: a thing, a topic.
        older: one of its facts with a different statement, which the outdated page of a version pair makes.
    """

    id: str
    title: str
    category: str
    kind: str
    about: tuple[str, ...]
    facts: tuple[PlannedFact, ...]
    tables: tuple[PlannedTable, ...] = ()
    steps: tuple[str, ...] = ()
    older: PlannedFact | None = None


LEAST_FACTS, MOST_FACTS = 4, 7
_SUBJECT = re.compile(r"<([^<>]+)>")
_TRIES = 50
"""How often another value is drawn at most. A template has two values or more, so this limit is never reached."""


def drafted_page(dealt: Dealt, kind: str, seed: int, versions: bool) -> Draft:
    """Return the draft. It depends on the seed only, not on the number of other pages."""
    title = filled(dealt.topic.title, dealt.names, Random(seed))
    page_id = slug(title)
    chance = Random(f"{seed} {page_id}")
    templates = _some(dealt.topic.facts, chance)
    told = [_told(each, dealt.names, chance) for each in templates]
    ids = [f"{page_id}-f{number}" for number in range(1, len(told) + 1)]
    place = chance.randrange(len(told))
    return Draft(
        page_id,
        title,
        dealt.topic.category,
        kind,
        (dealt.names["thing"], dealt.topic.title, dealt.topic.category),
        tuple(map(_planned_fact, ids, told)),
        (_table(dealt, chance),) if kind != "logical" else (),
        _steps(dealt, chance) if kind != "tabular" else (),
        _planned_fact(ids[place], _older(told[place], templates[place], dealt.names, chance)) if versions else None,
    )


def _some(facts: tuple[FactTemplate, ...], chance: Random) -> list[FactTemplate]:
    count = chance.randint(LEAST_FACTS, min(MOST_FACTS, len(facts)))
    return [facts[place] for place in sorted(chance.sample(range(len(facts)), count))]


def _told(template: FactTemplate, names: Mapping[str, str], chance: Random) -> FactTemplate:
    before, value, after = (filled(part, names, chance) for part in (template.before, template.value, template.after))
    return FactTemplate(template.kind, before, value, after)


def _older(told: FactTemplate, template: FactTemplate, names: Mapping[str, str], chance: Random) -> FactTemplate:
    """Return the fact with another value in the same words."""
    for _ in range(_TRIES):
        value = filled(template.value, names, chance)
        if value != told.value:
            break
    return replace(told, value=value)


def _planned_fact(fact_id: str, told: FactTemplate) -> PlannedFact:
    marked = f"{told.before}{told.value}{told.after}"
    (subject,) = _SUBJECT.findall(marked)
    statement = marked.replace("<", "").replace(">", "")
    return PlannedFact(id=fact_id, kind=told.kind, subject=subject, value=told.value, statement=statement)


def _table(dealt: Dealt, chance: Random) -> PlannedTable:
    """Return the table. Each row names the thing; otherwise rows of similar tables would contradict each other."""
    topic = dealt.topic
    rows = [[filled(cell, dealt.names, chance) for cell in row] for row in topic.rows]
    named = tuple((f"{first} ({dealt.names['thing']})", *others) for first, *others in rows)
    return PlannedTable(title=filled(topic.table, dealt.names, chance), columns=topic.columns, rows=named)


def _steps(dealt: Dealt, chance: Random) -> tuple[str, ...]:
    told = [step for step in dealt.topic.steps if not step.startswith("?") or chance.random() < 0.5]
    return tuple(filled(step.removeprefix("?").strip(), dealt.names, chance) for step in told)


# Assigns a kind to each page: the shares are met as closely as whole pages allow, in a random order.


def kinds_of(count: int, shares: Mapping[str, float], chance: Random) -> list[str]:
    """Return a kind for each of ``count`` pages."""
    exact = {kind: share * count / sum(shares.values()) for kind, share in shares.items() if share}
    whole = {kind: int(number) for kind, number in exact.items()}
    by_rest = sorted(exact, key=lambda kind: whole[kind] - exact[kind])
    for kind in by_rest[: count - sum(whole.values())]:
        whole[kind] += 1
    kinds = [kind for kind, number in whole.items() for _ in range(number)]
    chance.shuffle(kinds)
    return kinds


# Links between drafts: a ring that reaches every page, and links to pages about the same, the closest first.

LEAST_LINKS, MOST_LINKS = 3, 5
"""How many links a page has to others. A link to its other version is added."""
_NEAR = 3
"""How many pages before and after it in a group a page may link to. The work stays linear in large groups."""


def links_between(drafts: Sequence[Draft], seed: int) -> list[list[int]]:
    """Return for each draft the numbers of its links' targets. With few drafts, fewer than ``LEAST_LINKS``."""
    ring = sorted(range(len(drafts)), key=lambda number: (drafts[number].category, drafts[number].about, number))
    groups = _groups(drafts)
    links: list[list[int]] = [[] for _ in drafts]
    for place, number in enumerate(ring):
        count = Random(f"{seed} {drafts[number].id} links").randint(LEAST_LINKS, MOST_LINKS)
        near = (goal for about in drafts[number].about for goal in _around(groups[about], number))
        behind = (ring[(place + step) % len(ring)] for step in range(2, len(ring)))
        links[number] = _first(count, number, [ring[(place + 1) % len(ring)]], near, behind)
    return links


def _groups(drafts: Sequence[Draft]) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = defaultdict(list)
    for number, draft in enumerate(drafts):
        for about in draft.about:
            groups[about].append(number)
    return groups


def _around(group: list[int], number: int) -> Iterator[int]:
    """Yield the nearest members of a sorted group, from both sides in turn."""
    place = bisect_left(group, number)
    for distance in range(1, _NEAR + 1):
        yield from (group[each] for each in (place + distance, place - distance) if 0 <= each < len(group))


def _first(count: int, own: int, *sources: Iterable[int]) -> list[int]:
    found: dict[int, None] = {}
    for goal in chain.from_iterable(sources):
        if len(found) == count:
            break
        if goal != own:
            found[goal] = None
    return list(found)


_OUTDATED = (date(2022, 1, 3), date(2024, 6, 28))
_CURRENT = (date(2024, 9, 2), date(2026, 6, 26))
"""The dates between which pages come into force. They are fixed, so that a plan does not depend on today."""
_DRAWN_IN = 3
"""One procedure in so many is also drawn as a diagram."""


def arranged(drafts: Sequence[Draft], wanted: PlanRequest, title: str, planned_by: str) -> Plan:
    """Return the plan. A draft with ``older`` becomes two pages."""
    names = [draft.id for draft in drafts]
    links = [[names[goal] for goal in goals] for goals in links_between(drafts, wanted.seed)]
    pages, pairs = [], []
    for draft, goals in zip(drafts, links, strict=True):
        current, *outdated = _versions(draft, goals, wanted.seed)
        pages += [current, *outdated]
        pairs += [_pair(page, current) for page in outdated]
    return Plan(
        title=title,
        domain=wanted.domain,
        planned_by=planned_by,
        seed=wanted.seed,
        num_pages=len(pages),
        rot=round(2 * len(pairs) / len(pages), 4),
        categories=tuple(dict.fromkeys(draft.category for draft in drafts)),
        pages=tuple(pages),
        version_pairs=tuple(pairs),
    )


def _versions(draft: Draft, goals: Sequence[str], seed: int) -> Iterator[PlanPage]:
    """Yield the current page and the outdated page that it replaced."""
    chance = Random(f"{seed} {draft.id} versions")
    current, outdated = (_random_date(*days, chance) for days in (_CURRENT, _OUTDATED))
    drawn = bool(draft.steps) and chance.randrange(_DRAWN_IN) == 0
    if draft.older is None:
        yield _page(draft, "1", current, goals, drawn)
        return
    old_id = f"{draft.id}-{outdated.year}"
    yield _page(draft, "2", current, [*goals, old_id], drawn).model_copy(update={"supersedes": old_id})
    facts = tuple(draft.older if fact.id == draft.older.id else fact for fact in draft.facts)
    yield _page(draft, "1", outdated, [*goals, draft.id], drawn).model_copy(
        update={
            "id": old_id,
            "filename": f"{old_id}.md",
            "title": f"{draft.title} ({outdated.year})",
            "status": "outdated",
            "facts": facts,
        }
    )


def _page(draft: Draft, version: str, since: date, goals: Sequence[str], drawn: bool) -> PlanPage:
    return PlanPage(
        id=draft.id,
        filename=f"{draft.id}.md",
        title=draft.title,
        category=draft.category,
        kind=draft.kind,
        version=version,
        status="current",
        effective_date=since.isoformat(),
        links_to=tuple(goals),
        mermaid=drawn,
        facts=draft.facts,
        tables=draft.tables,
        steps=draft.steps,
    )


def _pair(outdated: PlanPage, current: PlanPage) -> VersionPair:
    now = {fact.id: fact.statement for fact in current.facts or ()}
    changed = [fact for fact in outdated.facts or () if now[fact.id] != fact.statement]
    conflicts = tuple(
        Conflict(fact=fact.id, outdated_statement=fact.statement, current_statement=now[fact.id]) for fact in changed
    )
    return VersionPair(outdated=outdated.id, current=current.id, conflicts=conflicts)


def _random_date(first: date, last: date, chance: Random) -> date:
    return first + timedelta(days=chance.randint(0, (last - first).days))


EMBEDDED = "embedded"
LEAST = 10
"""The fewest pages of a plan. Fewer would not cover a domain's topics."""


def planned(wanted: PlanRequest) -> Plan:
    """Return a plan that passes the checks. The same seed gives the same plan.

    Raises:
        DataError: the wish cannot be planned, or the domain is not shipped; the message says what to do.
    """
    replace(wanted, least=LEAST).check()
    domain = read_domain(wanted.domain)
    dealt = deal(domain, wanted.pages - wanted.pairs, wanted.seed)
    chance = Random(f"{wanted.seed} {domain.name} plan")
    kinds = kinds_of(len(dealt), wanted.shares, chance)
    versions = set(chance.sample(range(len(dealt)), wanted.pairs))
    drafts = [
        drafted_page(each, kind, wanted.seed, number in versions)
        for number, (each, kind) in enumerate(zip(dealt, kinds, strict=True))
    ]
    return arranged(drafts, replace(wanted, domain=domain.name), domain.title, EMBEDDED)
