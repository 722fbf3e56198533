"""The keys of the suite in an ini file: written where there is none, said where there is one already."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rag_harness.starter.started import Started

_INI_FILES = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
_MARKS = ("[pytest]", "[tool.pytest", "[tool:pytest]")


def write_ini(folder: Path, pairs: Mapping[str, str], gate: str, done: Started) -> None:
    """Write the keys into a file of their own, or have them added to the one that pytest reads."""
    configured = _configured(folder)
    if configured is None:
        done.write(folder / "pytest.ini", "\n".join(["[pytest]", *_lines(pairs, gate, is_toml=False), ""]))
    elif "rag_golden" in configured.read_text(encoding="utf-8"):
        done.kept.append(configured)
    else:
        done.todo.append(f"Add to the pytest section of {configured}:")
        done.todo += [f"    {line}" for line in _lines(pairs, gate, configured.suffix == ".toml")]


def _lines(pairs: Mapping[str, str], gate: str, is_toml: bool) -> list[str]:
    if is_toml:
        return [*(f'{name} = "{value}"' for name, value in pairs.items()), f'rag_gate = ["{gate}"]']
    return [*(f"{name} = {value}" for name, value in pairs.items()), "rag_gate =", f"    {gate}"]


def _configured(folder: Path) -> Path | None:
    """Return the file that configures pytest there, if any."""
    used = [folder / name for name in _INI_FILES if (folder / name).is_file()]
    return next((file for file in used if any(mark in file.read_text(encoding="utf-8") for mark in _MARKS)), None)
