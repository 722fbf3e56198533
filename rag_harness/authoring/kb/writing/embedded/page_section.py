"""A section of a page: a heading, and blocks of Markdown."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class PageSection:
    """A heading without its marks, and the blocks below it."""

    heading: str
    blocks: list[str]

    def text(self) -> str:
        """Return the section as Markdown."""
        return "\n\n".join([f"## {self.heading}", *self.blocks])
