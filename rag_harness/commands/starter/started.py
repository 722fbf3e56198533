"""What ``init`` did: the files that it wrote or left alone, and the next steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from rag_harness.errors import DataError


@dataclass
class Started:
    """The record of what was found and written, and of the next steps."""

    found: list[str] = field(default_factory=list)
    written: list[Path] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    kept: list[Path] = field(default_factory=list)
    todo: list[str] = field(default_factory=list)
    next_step: str = "pytest test_retrieval.py"
    is_incomplete: bool = False
    """Whether the suite does not work before lines are added by hand."""

    def keeps(self, file: Path) -> bool:
        """Return whether a file exists; if so, note that it is kept."""
        if not file.exists():
            return False
        self.kept.append(file)
        return True

    def write(self, file: Path, text: str) -> None:
        """Write a file, unless it exists.

        Raises:
            DataError: the file cannot be written.
        """
        if self.keeps(file):
            return
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise DataError(
                f"{file} cannot be written: {error.strerror}. Choose a folder that you may write to."
            ) from error
        self.written.append(file)

    def append(self, file: Path, text: str, said: str) -> None:
        """Put ``text`` at the end of a file that exists, or write it; ``said`` names what is added.

        Raises:
            DataError: the file cannot be written.
        """
        if not file.exists():
            self.write(file, text)
            return
        try:
            there = file.read_bytes()
            end = b"\r\n" if b"\r\n" in there else b"\n"
            with file.open("ab") as opened:
                opened.write(end if there and not there.endswith(b"\n") else b"")
                opened.write(text.encode().replace(b"\n", end))
        except OSError as error:
            raise DataError(f"{file} cannot be added to: {error.strerror}. Add to it by hand: {said}") from error
        self.added.append(f"added  {said} to {file}")

    def lines(self) -> list[str]:
        """Return the lines for the user."""
        return [
            *self.found,
            *(f"wrote  {file}" for file in self.written),
            *self.added,
            *(f"kept   {file} (it was there)" for file in self.kept),
            *self.todo,
            f"Next: {self.next_step}",
        ]
