"""Strings that make a pattern backtrack, made from the pattern itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from re import _constants as c  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

_CHARS = "a1 \n\t.,;:-_[](){}<>\"'`*#|/\\=@!?&%$€éß–’“…\x00ABZz09"


def strings(pattern: re.Pattern[str]) -> list[str]:
    """Return short strings to be repeated: samples of the pattern's parts, beginnings and pairs of them."""
    tree = _parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    found: dict[str, None] = {}
    for beginning, pump in _pumps(list(tree), "", pattern.flags):
        for text in (pump, beginning, beginning + pump):
            if text:
                found[text] = None
    found |= dict.fromkeys(_samples(list(tree), pattern.flags))
    return [text for text in found if text][:40]


def beginnings(pattern: re.Pattern[str]) -> list[tuple[str, str]]:
    """Return what stands before a repeated part, with the part."""
    tree = _parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    return list(dict.fromkeys(_pumps(list(tree), "", pattern.flags)))[:40]


def _pumps(nodes: Sequence[Any], before: str, flags: int) -> Iterator[tuple[str, str]]:
    for op, value in nodes:
        if op in (c.MAX_REPEAT, c.MIN_REPEAT):
            _, most, body = value
            if most > 8:
                for pump in _samples(list(body), flags):
                    yield before, pump
            yield from _pumps(list(body), before, flags)
        elif op is c.SUBPATTERN:
            yield from _pumps(list(value[3]), before, flags)
        elif op is c.BRANCH:
            for branch in value[1]:
                yield from _pumps(list(branch), before, flags)
        elif op in (c.ASSERT, c.ASSERT_NOT):
            yield from _pumps(list(value[1]), before, flags)
        before += next(iter(_samples([(op, value)], flags)), "")


def _samples(nodes: Sequence[Any], flags: int) -> list[str]:
    """Return a few strings that a sequence of nodes matches."""
    found = [""]
    for op, value in nodes:
        choices = _choices(op, value, flags)
        found = [text + choice for text in found[:3] for choice in choices[:4]] if choices else found
    return list(dict.fromkeys(found))[:8]


def _choices(op: Any, value: Any, flags: int) -> list[str]:
    made = _MADE.get(op)
    return made(value, flags) if made else []


def _of_class(value: Any, flags: int) -> list[str]:
    matcher = re.compile(_class(value), flags & (re.I | re.A))
    common = [each for each in _CHARS if matcher.fullmatch(each)][:5]
    return common or [found[0] for found in islice(matcher.finditer(_every_char()), 2)]


@cache
def _every_char() -> str:
    return "".join(map(chr, range(0x2FFFF)))


def _repeated(value: Any, flags: int) -> list[str]:
    least, _, body = value
    return [each * max(least, 1) for each in _samples(list(body), flags)] + ([""] if least == 0 else [])


def _branched(value: Any, flags: int) -> list[str]:
    return [text for branch in value[1] for text in _samples(list(branch), flags)[:2]][:6]


_MADE: Mapping[Any, Callable[[Any, int], list[str]]] = {
    c.LITERAL: lambda value, _: [chr(value)],
    c.NOT_LITERAL: lambda value, _: [each for each in _CHARS if ord(each) != value][:4],
    c.ANY: lambda _, __: ["a", " ", "."],
    c.IN: _of_class,
    c.MAX_REPEAT: _repeated,
    c.MIN_REPEAT: _repeated,
    c.SUBPATTERN: lambda value, flags: _samples(list(value[3]), flags),
    c.BRANCH: _branched,
}


def _class(items: Sequence[Any]) -> str:
    return f"[{''.join(_IN_CLASS[op](value) for op, value in items)}]"


_CATEGORIES: Mapping[Any, str] = {
    c.CATEGORY_DIGIT: r"\d",
    c.CATEGORY_NOT_DIGIT: r"\D",
    c.CATEGORY_SPACE: r"\s",
    c.CATEGORY_NOT_SPACE: r"\S",
    c.CATEGORY_WORD: r"\w",
    c.CATEGORY_NOT_WORD: r"\W",
}
_IN_CLASS: Mapping[Any, Callable[[Any], str]] = {
    c.NEGATE: lambda _: "^",
    c.LITERAL: lambda value: re.escape(chr(value)),
    c.RANGE: lambda value: f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}",
    c.CATEGORY: lambda value: _CATEGORIES[value],
}
