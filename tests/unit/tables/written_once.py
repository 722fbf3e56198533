"""Folders that many tests ask for: written once a process, then copied from memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

_FILES: dict[str, dict[Path, bytes]] = {}


def written_once(output: Path, name: str, write: Callable[[Path], object]) -> Path:
    """Write into ``output`` what ``write`` writes into a folder; ``name`` says which folder it is."""
    if name not in _FILES:
        with TemporaryDirectory() as folder:
            write(Path(folder))
            files = [file for file in Path(folder).rglob("*") if file.is_file()]
            _FILES[name] = {file.relative_to(folder): file.read_bytes() for file in files}
    for file, content in _FILES[name].items():
        (output / file).parent.mkdir(parents=True, exist_ok=True)
        (output / file).write_bytes(content)
    return output
