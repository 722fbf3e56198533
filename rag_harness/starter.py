"""``rag-harness init``: the smallest working suite, written into somebody's own repository."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from rag_harness.errors import DataError
from rag_harness.ingest import page_files

TEST = '''"""Is retrieval still good? One test an entry of golden.json; the gates are in the ini file."""


def test_finds_what_is_expected(rag_retrieval):
    assert rag_retrieval.found
'''
_INI_FILES = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
_MARKS = ("[pytest]", "[tool.pytest", "[tool:pytest]")


@dataclass
class Started:
    """What was written, and what is left to do."""

    written: list[Path] = field(default_factory=list)
    kept: list[Path] = field(default_factory=list)
    todo: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Return what a person should read."""
        return [
            *(f"wrote  {file}" for file in self.written),
            *(f"kept   {file} (it was there)" for file in self.kept),
            *self.todo,
        ]


def start(folder: Path, kb: str) -> Started:
    """Write a test file, the ini keys and a golden set to fill in; what is there is left alone.

    Raises:
        DataError: there is no document below the knowledge base's folder.
    """
    pages = list(page_files(folder / kb)) if (folder / kb).is_dir() else []
    if not pages:
        raise DataError(f"No document in {folder / kb}. Name the folder of your documents: rag-harness init --kb DIR")
    done = Started()
    _write(folder / "test_retrieval.py", TEST, done)
    _write(folder / "golden.json", _golden_example(pages[0], folder / kb), done)
    _write_ini(folder, kb, done)
    done.todo.append("Put questions of your own into golden.json, then run: pytest test_retrieval.py")
    return done


def _write(file: Path, text: str, done: Started) -> None:
    if file.exists():
        done.kept.append(file)
        return
    file.write_text(text, encoding="utf-8")
    done.written.append(file)


def _write_ini(folder: Path, kb: str, done: Started) -> None:
    keys = [f"rag_kb_dir = {kb}", "rag_golden = golden.json", "rag_k = 3", "rag_gate =", "    recall@k >= 0.9"]
    used = [folder / name for name in _INI_FILES if (folder / name).is_file()]
    configured = [file for file in used if any(mark in file.read_text(encoding="utf-8") for mark in _MARKS)]
    if not configured:
        _write(folder / "pytest.ini", "\n".join(["[pytest]", *keys, ""]), done)
        return
    if "rag_golden" in configured[0].read_text(encoding="utf-8"):
        done.kept.append(configured[0])
        return
    done.todo.append(f"Add to the pytest section of {configured[0]}:")
    done.todo += [f"    {line}" for line in (_as_toml(keys) if configured[0].suffix == ".toml" else keys)]


def _as_toml(keys: list[str]) -> list[str]:
    pairs = [line.split(" = ") for line in keys if " = " in line]
    return [*(f'{name} = "{value}"' for name, value in pairs), 'rag_gate = ["recall@k >= 0.9"]']


def _golden_example(page: Path, kb: Path) -> str:
    name = page.relative_to(kb).as_posix()
    entry = {
        "query": f"Replace this by a question that {name} answers",
        "expected_document_id": name,
        "justification": "why this page, and not another",
    }
    return json.dumps([entry], indent=1, ensure_ascii=False) + "\n"
