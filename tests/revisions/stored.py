"""The stored results of parts, and how they are compared with those of now."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "outputs"
TOLERANCE = 1e-4
"""Of vectors and scores. Sums in single precision differ between processors."""
_NONE = object()


def file_of(part: str) -> Path:
    """Return the file of a part's results, which has those of all parts of its kind."""
    return FOLDER / f"{part.partition('/')[0]}.json"


def stored(part: str) -> tuple[str, Any]:
    """Return the revision that a part had when its results were stored, and the results; empty where none are."""
    said = _read(file_of(part)).get(part, {"revision": "", "outputs": None})
    return str(said["revision"]), said["outputs"]


def store(part: str, revision: str, outputs: Any) -> None:
    """Store the results of a part."""
    found = _read(file_of(part)) | {part: {"revision": revision, "outputs": outputs}}
    text = json.dumps(dict(sorted(found.items())), ensure_ascii=False, indent=0)
    FOLDER.mkdir(exist_ok=True)
    file_of(part).write_text(f"{text}\n", encoding="utf-8")


def _read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return found


def differences(before: Any, now: Any) -> list[str]:
    """Return a line for each place at which two results differ."""
    return list(_differences(before, now, ""))


def _differences(before: Any, now: Any, at: str) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(now, dict):
        for name in {**before, **now}:
            yield from _differences(before.get(name, _NONE), now.get(name, _NONE), f"{at}/{name}")
    elif isinstance(before, list) and isinstance(now, list):
        for place, (one, other) in enumerate(zip_longest(before, now, fillvalue=_NONE)):
            yield from _differences(one, other, f"{at}/{place}")
    elif isinstance(before, float) and isinstance(now, float):
        if abs(before - now) > TOLERANCE:
            yield f"{at}: {before} before, now {now}"
    elif type(before) is not type(now) or before != now:
        yield f"{at}: {_shown(before)} before, now {_shown(now)}"


def _shown(value: Any) -> str:
    return "nothing" if value is _NONE else repr(value)[:200]
