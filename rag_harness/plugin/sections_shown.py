"""``--rag-sections``: which sections of the terminal summary are printed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from rag_harness.plugin.screen import usage_error

if TYPE_CHECKING:
    from rag_harness.plugin.collected import Collected
    from rag_harness.plugin.session import RagSession

ALL = "all"


class SectionsShown:
    """Reads the option. Without it the verbosity decides: -v prints all sections, -q only the run in brief.

    Args:
        session: state of the run.
        usual: the sections that can be chosen, and whether each is printed where nothing chooses.
        brief: the section that is left with -q.
    """

    def __init__(self, session: RagSession, usual: Mapping[str, bool], brief: str) -> None:
        self._session, self._usual, self._brief = session, usual, brief

    def collection_done(self, _: Collected) -> None:
        """Check the names before anything runs.

        Raises:
            pytest.UsageError: the option names a section that does not exist.
        """
        from rag_harness.errors import unknown

        for name in self._named():
            if name not in self._usual and name != ALL:
                raise usage_error(unknown("section", name, [ALL, *self._usual]))

    def is_shown(self, name: str) -> bool:
        """Whether a section is printed."""
        return name in self._chosen(self._named())

    def _chosen(self, named: Sequence[str]) -> Collection[str]:
        verbosity = self._session.config.get_verbosity()
        if ALL in named or (not named and verbosity > 0):
            return self._usual
        if named:
            return named
        return [self._brief] if verbosity < 0 else [name for name, is_usual in self._usual.items() if is_usual]

    def _named(self) -> list[str]:
        return [name.strip() for text in self._session.settings.sections for name in text.split(",") if name.strip()]
