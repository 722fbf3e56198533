"""Holds the licences of a distribution, and of all that it brings here, against the list in ``pyproject.toml``.

    python .ci/licences.py pytest-rag-harness

It reads what is installed and needs no network. A licence is what the metadata state: the expression, else the
classifiers, else the first line of the field ``License``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
OLD_NAMES = {
    "MIT License": "MIT",
    "BSD License": "BSD-3-Clause",
    "3-Clause BSD License": "BSD-3-Clause",
    "BSD": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "ISC License (ISCL)": "ISC",
}
"""Names that metadata older than SPDX expressions give, and what the list calls them."""


def brought_by(name: str) -> list[str]:
    """Return a distribution and all that it brings on this system, by name. Extras count where one is asked for."""
    found: set[str] = set()
    waiting = [Requirement(name)]
    seen: set[tuple[str, str]] = set()
    while waiting:
        wanted = waiting.pop()
        for extra in ("", *wanted.extras):
            key = (canonicalize_name(wanted.name), extra)
            if key in seen:
                continue
            seen.add(key)
            found.add(key[0])
            needed = map(Requirement, metadata.requires(key[0]) or [])
            waiting += [each for each in needed if not each.marker or each.marker.evaluate({"extra": extra})]
    return sorted(found)


def outside(name: str, allowed: Collection[str]) -> str:
    """Return the licence of a distribution if it is not allowed; else an empty text."""
    about = metadata.metadata(name)
    if expression := (about.get_all("License-Expression") or [""])[0]:
        choices = [re.findall(r"[^\s()]+", each) for each in re.split(r"\bOR\b", expression)]
        is_in = any(set(each) - {"AND"} <= set(allowed) for each in choices)
        return "" if is_in else expression
    stated = [each.rpartition(" :: ")[2] for each in about.get_all("Classifier") or [] if each.startswith("License ::")]
    stated = stated or [(about.get_all("License") or ["no licence stated"])[0].strip().splitlines()[0]]
    return "" if {OLD_NAMES.get(each, each) for each in stated} <= set(allowed) else ", ".join(stated)


def allowed_licences() -> list[str]:
    """Return the list in ``pyproject.toml``. It is read as text: Python 3.10 has no reader of TOML."""
    (listed,) = re.findall(r"^\[tool\.licences\]\nallowed = \[([^\]]*)\]", PYPROJECT.read_text(encoding="utf-8"), re.M)
    return re.findall(r'"([^"]+)"', listed)


def problems(name: str) -> Iterator[str]:
    """Yield a line for each distribution whose licence is not on the list."""
    allowed = allowed_licences()
    for each in brought_by(name):
        if licence := outside(each, allowed):
            yield f"{each}: {licence} is not among [tool.licences] of pyproject.toml"


if __name__ == "__main__":
    sys.exit("\n".join(problems(sys.argv[1])) or 0)
