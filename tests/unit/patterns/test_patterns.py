"""No pattern over foreign text is worse than linear: each is fed growing strings that are made of its own parts."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from rag_harness.data.loaders.html_pages import _without_comments
from rag_harness.models.prompts import json_of
from tests.unit.patterns.hostile import beginnings, strings
from tests.unit.patterns.walked import SCANS, Applied, applied

ALLOWED = 2.5
"""Times the time for twice the length."""
_SHORT, _LONG, _LONGEST = 32, 4_000, 130_000
"""Repetitions to begin with; characters to which every string grows, and up to which those do that grow too fast."""
_SLOW, _MUCH, _TOO_MUCH = 0.002, 0.05, 1.0
"""Seconds of the processor: what is quicker is not looked at, what is enough to see, what is not waited for."""
OWN = (
    *("runs/gates/", "frontends/cli/", "frontends/pytest_plugin/", "core/settings/", "core/registry.py"),
    *("core/package.py", "core/git.py", "pipelines/endpoint/requests.py"),
)
"""Modules whose patterns read what the person who runs them wrote: options, gates, source, an endpoint's file."""


def took(tested: Applied, text: str) -> float:
    """Return the seconds of the processor that the pattern takes for a text, by all that it is used for."""
    pattern, operations = tested.pattern, tested.operations or {"finditer"}
    begin = time.thread_time()
    if operations & SCANS:
        for _ in pattern.finditer(text):
            pass
    if "match" in operations:
        pattern.match(text)
    if "fullmatch" in operations:
        pattern.fullmatch(text)
    return time.thread_time() - begin


def shapes(pattern: re.Pattern[str]) -> Iterator[tuple[str, str, str]]:
    """Yield a beginning, what is repeated, and an end."""
    yield from dict.fromkeys(
        [
            *(("", unit, "\x00") for unit in strings(pattern)),
            *((before, unit, end) for before, unit in beginnings(pattern) for end in ("", "\x00")),
        ]
    )


def growth(tested: Applied, shape: tuple[str, str, str]) -> str:
    """Return how much longer twice the length takes, where that is always too much; empty where it is not.

    A repetition with a limit grows too fast up to its limit, and no further.
    """
    before, unit, end = shape

    def cost(count: int) -> float:
        text = before + unit * count + end
        first = took(tested, text)
        return first if not _SLOW < first < 1 else min(first, took(tested, text), took(tested, text))

    most = max(_SHORT, _LONG // len(unit))
    count = _SHORT
    while (now := cost(count)) < _MUCH and count < most:
        count = min(4 * count, most)
    if now < _SLOW:
        return ""
    once, count, ratio = cost(count), 2 * count, 0.0
    while len(unit) * count < _LONGEST:
        twice = cost(count)
        ratio = twice / once
        if ratio <= ALLOWED:
            return ""
        if twice > _TOO_MUCH:
            break
        once, count = twice, count * 2
    return f"{ratio:.1f} times for twice {len(unit) * count // 2} characters of {shape!r}"


def own(tested: Applied) -> bool:
    return all(place.startswith(OWN) for place in tested.places)


def patterns() -> list[Applied]:
    """All patterns but those that repeat nothing without a limit: they cannot read far."""
    return [tested for tested in applied().values() if not own(tested) and beginnings(tested.pattern)]


def test_no_pattern_is_worse_than_linear() -> None:
    tested = patterns()
    assert len(tested) > 200
    bad = [
        f"{each.places}: {each.pattern.pattern!r}: {found[:3]}"
        for each in tested
        if (found := [said for shape in shapes(each.pattern) if (said := growth(each, shape))])
    ]
    assert not bad, "\n".join(bad)


# Code that stands where a pattern was: it finds what the pattern found, in a time that grows with the text alone.

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


@given(st.text("/*a ", max_size=20))
def test_comments_of_a_style_sheet_are_taken_out_as_the_pattern_did(text: str) -> None:
    assert _without_comments(text) == _COMMENT.sub("", text)


def test_a_model_that_loops_in_white_space_is_read_at_once() -> None:
    begin = time.thread_time()
    for text in ("```json" + "\n" * 200_000, "```json" + "\n" * 200_000 + "x", "```" * 70_000, "/* " * 70_000):
        json_of(text)
        json_of("{" + text)
        _without_comments(text)
    assert time.thread_time() - begin < 1  # a second is a thousand times what it takes; the pattern took minutes
