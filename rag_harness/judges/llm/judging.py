"""Asks the judge about numbered items, all in one call, and once more about those without a verdict."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rag_harness.judges.llm.cited_replies import DEGREES, PassageSupport, read_cited
from rag_harness.judges.llm.judge_chat import JudgeChat, prompt
from rag_harness.judges.llm.judge_replies import PassageVerdict, read_verdicts
from rag_harness.judges.llm.marked_texts import MarkedText, numbered
from rag_harness.judges.llm.schemas import BOOLEAN, NUMBER, TEXT, Schema, list_schema, object_schema

SUPPORTED = {"supported": 1.0, "unsupported": 0.0}
USEFULNESS_VALUES = {"useful": 1.0, "useless": 0.0}

SaidT = TypeVar("SaidT", bound=PassageVerdict)

AskAboutTexts = Callable[[Sequence[str], bool], Awaitable[Sequence[SaidT]]]
"""Takes texts, and whether they are asked about again; returns the verdict on each."""

AskedSupport = Callable[[JudgeChat, Sequence[str], Sequence[str], bool], Awaitable[Sequence[PassageVerdict]]]
"""Takes claims and passages, and whether they are asked about again: ``support`` or ``support_by_each``."""


@dataclass(frozen=True, slots=True)
class JudgedTexts(Generic[SaidT]):
    """The verdict on each text; ``again`` says that the judge was asked a second time."""

    each: tuple[SaidT, ...]
    again: bool = False


async def asked_twice(
    texts: Sequence[str], ask: AskAboutTexts[SaidT], may_ask_again: Callable[[], Awaitable[bool]]
) -> JudgedTexts[SaidT]:
    """Ask about ``texts``, and once more about those without a verdict, where that is allowed."""
    said = list(await ask(texts, False))
    missing = [place for place, each in enumerate(said) if each.missing]
    if not missing or not await may_ask_again():
        return JudgedTexts(tuple(said))
    for place, each in zip(missing, await ask([texts[place] for place in missing], True), strict=True):
        said[place] = each
    return JudgedTexts(tuple(said), again=True)


async def support(
    asking: JudgeChat, claims: Sequence[str], passages: Sequence[str], again: bool
) -> Sequence[PassageVerdict]:
    """Return which of ``claims`` the ``passages`` support."""
    sections = [*numbered("passage", passages), *numbered("claim", claims)]
    reply = _reply(len(claims), SUPPORTED, {"passage": NUMBER})
    text = await asking.ask(prompt("fused_verdicts"), sections, reply, _end(again))
    return read_verdicts(text, len(claims), SUPPORTED, len(passages))


async def support_by_each(
    asking: JudgeChat, claims: Sequence[str], passages: Sequence[str], again: bool
) -> Sequence[PassageSupport]:
    """Return the same, and for each claim the passages that support it alone, with their words."""
    sections = [*numbered("passage", passages), *numbered("claim", claims)]
    task = f"{prompt('fused_verdicts')}\n\n{prompt('fused_citations')}"
    text = await asking.ask(task, sections, _cited_reply(len(claims), len(passages)), _end(again))
    return read_cited(text, len(claims), SUPPORTED, passages)


async def usefulness(
    asking: JudgeChat, question: str, ground_truth: str, chunks: Sequence[str], again: bool
) -> Sequence[PassageVerdict]:
    """Return which of ``chunks`` were useful for arriving at ``ground_truth``."""
    given: list[MarkedText] = [("question", question), ("right answer", ground_truth)]
    sections = [*given, *numbered("passage", chunks)]
    reply = _reply(len(chunks), USEFULNESS_VALUES, {})
    text = await asking.ask(prompt("fused_usefulness"), sections, reply, _end(again))
    return read_verdicts(text, len(chunks), USEFULNESS_VALUES)


_BY_PASSAGE = {"passage": NUMBER, "quote": TEXT, "degree": {"type": "string", "enum": list(DEGREES)}}


def _cited_reply(count: int, passages: int) -> Mapping[str, Schema]:
    verdict = {
        "index": NUMBER,
        "needs_source": BOOLEAN,
        "support": list_schema(object_schema(_BY_PASSAGE), passages),
        "verdict": {"type": "string", "enum": list(SUPPORTED)},
        "passage": NUMBER,
    }
    return {"verdicts": list_schema(object_schema(verdict), count, count)}


def _reply(count: int, words: Mapping[str, float], more: Mapping[str, Schema]) -> Mapping[str, Schema]:
    verdict = {"index": NUMBER, "verdict": {"type": "string", "enum": list(words)}, **more}
    return {"verdicts": list_schema(object_schema(verdict), count, count)}


def _end(again: bool) -> str:
    return prompt("fused_again") if again else ""
