"""What is public: the table of docs/dev/architecture.md, and the names of its modules."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]


def _modules() -> list[str]:
    page = (ROOT / "docs/dev/architecture.md").read_text(encoding="utf-8")
    section = page.partition("## What is public\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `([\w.]+)` \|", section, re.MULTILINE)


MODULES = {name: import_module(name) for name in _modules()}


def names_of(module: str) -> list[str]:
    """Return the public names of a public module: those of its ``__all__``, else its classes."""
    found = MODULES[module]
    named = getattr(found, "__all__", [name for name, value in vars(found).items() if isinstance(value, type)])
    return [name for name in named if not name.startswith("_")]


EVERY = {f"{module}.{name}": getattr(MODULES[module], name) for module in MODULES for name in names_of(module)}
"""What each public name is, by the name with its module."""
