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
    kept: list[Path] = field(default_factory=list)
    todo: list[str] = field(default_factory=list)

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

    def lines(self) -> list[str]:
        """Return the lines for the user."""
        return [
            *self.found,
            *(f"wrote  {file}" for file in self.written),
            *(f"kept   {file} (it was there)" for file in self.kept),
            *self.todo,
        ]
