"""``explain --review``: a person confirms or corrects each cause on the terminal; Cohen's κ measures the agreement."""

from __future__ import annotations

import getpass
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from rag_harness.derived.attribution.cause_names import TOP_LEVEL
from rag_harness.derived.attribution.causes_text import cause_in_full
from rag_harness.errors import DataError
from rag_harness.results.causes import CAUSES, CauseLine, read_causes, write_causes
from rag_harness.shown.terminal import ask as ask_line
from rag_harness.shown.terminal import say
from rag_harness.stats.agreement import accuracy, cohen_kappa
from rag_harness.stats.inputs import UndefinedError

_ASK = "right? enter: yes; 1-{last}: another cause; s: skip; q: stop  "


def review(output: Path, by: str = "", ask: Callable[[str], str] = ask_line) -> int:
    """Ask about each unreviewed cause, save every reply at once, and print κ; return the exit status.

    Raises:
        DataError: there is nothing to review.
    """
    lines = read_causes(output)
    if not lines:
        raise DataError(f"No causes in {output / CAUSES}. Find them first: rag-harness explain {output}")
    who = by or getpass.getuser()
    menu = ", ".join(f"{n} {cause}" for n, cause in enumerate(TOP_LEVEL, 1))
    for place, line in enumerate(lines):
        if line.reviewed_cause:
            continue
        say("", *cause_in_full(line), menu)
        said = _answer(line, ask)
        if said is None:
            break
        if said:
            lines[place] = line.model_copy(update={"reviewed_cause": said, "reviewed_by": who})
            write_causes(output, lines)
    say("", *review_agreement(lines))
    return 0


def _answer(line: CauseLine, ask: Callable[[str], str]) -> str | None:
    """Return the cause that a person names; empty where they skip it, None where they stop."""
    while True:
        try:
            said = ask(_ASK.format(last=len(TOP_LEVEL))).strip().lower()
        except EOFError:
            return None
        if said in ("", "y", "yes"):
            return line.cause
        if said in ("s", "q"):
            return "" if said == "s" else None
        if said.isdecimal() and 1 <= int(said) <= len(TOP_LEVEL):
            return TOP_LEVEL[int(said) - 1]
        say(f"{said!r} is none of these.")


def review_agreement(lines: Sequence[CauseLine]) -> list[str]:
    """Return the agreement of machine and people on the reviewed causes, and the most frequent corrections."""
    seen = [line for line in lines if line.reviewed_cause]
    if not seen:
        return ["nothing reviewed yet"]
    numbers = {cause: n for n, cause in enumerate(dict.fromkeys(name for line in seen for name in _both(line)))}
    people, machine = ([float(numbers[_both(line)[whose]]) for line in seen] for whose in (1, 0))
    try:
        kappa = f"Cohen's κ {cohen_kappa(people, machine):.2f}"
    except UndefinedError:
        kappa = "Cohen's κ is not defined: both name one cause only"
    changed = Counter(_both(line) for line in seen if line.cause != line.reviewed_cause)
    first = f"{len(seen)} reviewed: {accuracy(people, machine):.0%} agree, {kappa}"
    return [first, *(f"  {n} × {was} -> {now}" for (was, now), n in changed.most_common())]


def _both(line: CauseLine) -> tuple[str, str]:
    return line.cause, line.reviewed_cause
