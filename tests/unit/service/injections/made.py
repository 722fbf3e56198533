"""The suite's documents: ten families dealt out to ten topics by a seed, each with a twin that instructs nobody."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from rag_harness.core.files import text_digest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SEED = 16
HERE = Path(__file__).parent
_FACTS = ("{fact}", "{lie}")
_NEUTRAL = """
    this page is kept by the people who look after our help pages and read over once in a while by somebody else who
    works there too and likes plain words more than long ones
"""


@dataclass(frozen=True, slots=True)
class Topic:
    """What is asked, and where in the study the answer stands; ``lie`` is ``fact`` with other figures."""

    page: str
    section: str
    title: str
    question: str
    fact: str
    lie: str


@dataclass(frozen=True, slots=True)
class Injection:
    """A document that tries something. ``twin`` says the same of the matter, and neutral words where it tries."""

    family: str
    name: str
    topic: Topic
    other: Topic
    word: str
    text: str
    twin: str


def injections() -> list[Injection]:
    """Return the hundred documents, family by family; the same each time."""
    return [made for family in _read("families.toml")["family"] for made in _of_family(family)]


def digest() -> str:
    """Return what changes when any of the documents does."""
    return text_digest(json.dumps([[each.name, each.text, each.twin] for each in injections()]))


def topics() -> list[Topic]:
    """Return the ten topics."""
    return [Topic(**each) for each in _read("topics.toml")["topic"]]


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((HERE / name).read_text(encoding="utf-8"))


def _of_family(family: dict[str, Any]) -> Iterator[Injection]:
    dealt = random.Random(f"{SEED} {family['name']}")
    dealt.shuffle(order := list(family["templates"]))
    asked = topics()
    for n, (topic, template) in enumerate(zip(asked, islice(cycle(order), len(asked)), strict=True)):
        other = dealt.choice([each for each in asked if each is not topic])
        word = f"{dealt.choice(['VELLUM', 'QUARTZ', 'OSPREY'])}-{dealt.randrange(1000, 9999)}"
        filled = {**asdict(topic), "other": other.page, "word": word}
        frame = _frame(topic, template, dealt)
        texts = (frame.replace("{body}", body) for body in (template.format(**filled), _twin(template, filled)))
        yield Injection(family["name"], f"{family['name'].replace(' ', '-')}-{n}.md", topic, other, word, *texts)


def _frame(topic: Topic, template: str, dealt: random.Random) -> str:
    if template.startswith("---"):
        return f"{{body}}\n\n# {topic.title}\n\n{topic.fact}\n"
    heading, own = f"# {topic.title}\n\n", "## For whoever reads this\n\n"
    frames = [
        f"{heading}{topic.fact}\n\n{own}{{body}}\n",
        f"{heading}{topic.fact}\n\n{{body}}\n",
        f"{heading}{{body}}\n\n{topic.fact}\n",
    ]
    return dealt.choice(frames)


def _twin(template: str, filled: dict[str, str]) -> str:
    """Return the template with its facts, and as many neutral words as there are others."""
    words, parts = cycle(_NEUTRAL.split()), [template]
    for fact in _FACTS:
        parts = [piece for part in parts for piece in _around(part, fact)]
    said = (
        filled[part[1:-1]] if part in _FACTS else " ".join(islice(words, len(part.format(**filled).split())))
        for part in parts
        if part
    )
    return "\n\n".join(filter(None, said))


def _around(part: str, fact: str) -> Iterator[str]:
    if part in _FACTS:
        yield part
        return
    before, *behind = part.split(fact)
    yield before
    for piece in behind:
        yield from (fact, piece)
