"""Asks the judge about numbered items, all in one call, and once more about those without a verdict."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from rag_harness.judges.llm.asking import Asking, prompt
from rag_harness.judges.llm.marks import Section, numbered
from rag_harness.judges.llm.reading import Said, read_verdicts
from rag_harness.judges.llm.schemas import NUMBER, Schema, list_schema, object_schema

SUPPORTED = {"supported": 1.0, "unsupported": 0.0}
USEFUL = {"useful": 1.0, "useless": 0.0}

Ask = Callable[[Sequence[str], bool], Awaitable[Sequence[Said]]]
"""Takes texts, and whether they are asked about again; returns the verdict on each."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict on each text; ``again`` says that the judge was asked a second time."""

    each: tuple[Said, ...]
    again: bool = False


async def asked_twice(texts: Sequence[str], ask: Ask, may_ask_again: Callable[[], Awaitable[bool]]) -> Judged:
    """Ask about ``texts``, and once more about those without a verdict, where that is allowed."""
    said = list(await ask(texts, False))
    missing = [place for place, each in enumerate(said) if each.missing]
    if not missing or not await may_ask_again():
        return Judged(tuple(said))
    for place, each in zip(missing, await ask([texts[place] for place in missing], True), strict=True):
        said[place] = each
    return Judged(tuple(said), again=True)


async def support(asking: Asking, claims: Sequence[str], passages: Sequence[str], again: bool) -> Sequence[Said]:
    """Return which of ``claims`` the ``passages`` support."""
    sections = [*numbered("passage", passages), *numbered("claim", claims)]
    reply = _reply(SUPPORTED, {"passage": NUMBER})
    text = await asking.ask(prompt("fused_verdicts"), sections, reply, _end(again))
    return read_verdicts(text, len(claims), SUPPORTED, len(passages))


async def usefulness(
    asking: Asking, question: str, ground_truth: str, chunks: Sequence[str], again: bool
) -> Sequence[Said]:
    """Return which of ``chunks`` were useful for arriving at ``ground_truth``."""
    given: list[Section] = [("question", question), ("right answer", ground_truth)]
    sections = [*given, *numbered("passage", chunks)]
    text = await asking.ask(prompt("fused_usefulness"), sections, _reply(USEFUL, {}), _end(again))
    return read_verdicts(text, len(chunks), USEFUL)


def _reply(words: Mapping[str, float], more: Mapping[str, Schema]) -> Mapping[str, Schema]:
    verdict = {"index": NUMBER, "verdict": {"type": "string", "enum": list(words)}, **more}
    return {"verdicts": list_schema(object_schema(verdict))}


def _end(again: bool) -> str:
    return prompt("fused_again") if again else ""
