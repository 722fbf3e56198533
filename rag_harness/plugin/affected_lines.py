"""The lines that tell a person what --rag-affected-by has found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rag_harness.types import GOLDEN

if TYPE_CHECKING:
    from rag_harness.authoring.questions.since import Why
    from rag_harness.plugin.changes import Changes

AffectedQueries = Sequence[tuple[str, "Mapping[str, Why]", "Changes"]]
_NAMED = 3


def lines_of(revision: str, found: AffectedQueries) -> list[str]:
    """Return a line for each set of data, and a line for what was not looked at."""
    return [
        f"rag: {line}" for line in [*_affected(revision, found), *_unknown(revision, found), *_code(revision, found)]
    ]


def _affected(revision: str, found: AffectedQueries) -> Iterator[str]:
    from rag_harness.authoring.questions.since import WHYS

    for key, names, changes in found:
        counts = Counter(names.values())
        said = ", ".join(f"{counts[why]} {words}" for why, words in WHYS.items() if counts[why])
        one, what = ("golden entry", "golden entries") if key == GOLDEN else ("question", "questions")
        pages = len(changes.change.pages)
        of = f"{pages} page{'s' * (pages != 1)} of {changes.folder} changed"
        if not pages and not names:
            yield f"no page of {changes.folder} and none of its {what} has changed since {revision}"
        else:
            who = (
                f"1 {one} is"
                if len(names) == 1
                else f"{len(names) or 'no'} {what if names else one} {'are' if names else 'is'}"
            )
            yield f"{who} affected by {revision}{': ' * bool(said)}{said} ({of})"


def _unknown(revision: str, found: AffectedQueries) -> Iterator[str]:
    for _, _, changes in found:
        if changes.unknown:
            yield f"{changes.unknown} is not in git at {revision}, so all that it asks counts as new"


def _code(revision: str, found: AffectedQueries) -> Iterator[str]:
    files = sorted({path for _, _, changes in found for path in changes.code})
    if files:
        more = f" and {len(files) - _NAMED} more" if len(files) > _NAMED else ""
        yield (
            f"{', '.join(files[:_NAMED])}{more} changed since {revision} too: --rag-affected-by looks at documents and "
            f"questions alone. Where these change answers, run without it."
        )
