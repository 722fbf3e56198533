"""The keys of the suite in an ini file: written if there is no file, printed if there is one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from rag_harness.commands.starter.started import Started

_OWN = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini")
"""Files that pytest always takes for its configuration, whatever they contain, in the order of its search."""
_SHARED = ("pyproject.toml", "tox.ini", "setup.cfg")
_MARKS = ("[pytest]", "[tool.pytest", "[tool:pytest]")
_FOLDER = re.compile(r"^rag_kb_dir\s*=\s*[\"']?([^\"'\n]{1,400}?)[\"']?\s*$", re.MULTILINE)
_TEST_PATHS = re.compile(
    r"^testpaths\s*=\s*(\[[^\]]{0,2000}\]|[^\n]{0,2000}(?:\n[ \t]+[^\n]{1,400}){0,50})", re.MULTILINE
)
_BETWEEN_PATHS = re.compile(r"[\s,\[\]\"']+")
_MEANS = {
    "rag_k": "hits that are looked at: recall@k is recall@{}",
    "rag_family": "all gates with @ together are right in this share of runs",
}
"""Comments behind keys whose names do not say what they mean."""


def write_ini(folder: Path, pairs: Mapping[str, str], gate: str, done: Started) -> None:
    """Write the keys into a new file, or tell the user to add them to the file that pytest reads."""
    configured = _configured(folder)
    if configured is None:
        done.write(folder / "pytest.ini", "\n".join(["[pytest]", *_lines(pairs, gate, is_toml=False), ""]))
    elif "rag_golden" in _text(configured):
        done.kept.append(configured)
        named = _FOLDER.search(_text(configured))
        if named and named[1] != pairs["rag_kb_dir"]:
            wanted = pairs["rag_kb_dir"]
            how = f"begin in another folder, or change rag_kb_dir and the questions there to {wanted}'s"
            done.todo.append(f"{configured} is for {named[1]}, so {wanted} is not tested: {how}.")
    else:
        has_section = any(mark in _text(configured) for mark in _MARKS)
        done.todo.append(f"Add to {'the pytest section of ' if has_section else '[pytest] in '}{configured}:")
        done.todo += [f"    {line}" for line in _lines(pairs, gate, configured.suffix == ".toml")]
        if _leaves_the_folder_out(_text(configured)):
            done.todo.append("Add test_retrieval.py to testpaths there, too: pytest alone would not run it.")
        done.next_step = f"add the lines above, then {done.next_step}"
        done.is_incomplete = True


def _leaves_the_folder_out(config: str) -> bool:
    """Whether ``testpaths`` is there and does not name the folder itself, in which test_retrieval.py is."""
    found = _TEST_PATHS.search(config)
    return found is not None and not {".", "./"}.intersection(_BETWEEN_PATHS.split(found[1]))


def _lines(pairs: Mapping[str, str], gate: str, is_toml: bool) -> list[str]:
    if is_toml:
        return [*(f'{name} = "{value}"' for name, value in pairs.items()), f'rag_gate = ["{gate}"]']
    lines = []
    for name, value in pairs.items():
        lines += [f"# {_MEANS[name].format(value)}"] if name in _MEANS else []
        lines.append(f"{name} = {value}")
    return [*lines, "rag_gate =", f"    {gate}"]


def _configured(folder: Path) -> Path | None:
    """Return the file that configures pytest in this folder, if any."""
    own = next((folder / name for name in _OWN if (folder / name).is_file()), None)
    shared = (folder / name for name in _SHARED if (folder / name).is_file())
    return own or next((file for file in shared if any(mark in _text(file) for mark in _MARKS)), None)


def _text(file: Path) -> str:
    # Only ASCII is looked for, so a file in another encoding can be read, too.
    return file.read_text(encoding="utf-8", errors="replace")
