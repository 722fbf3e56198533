"""Every option, the sources of its value, and the rights of a mode. Every suite reads the table, and only the table.

Every room above calls it. It never reads data or asks a model. Public: ``Settings``, ``options`` and ``access_of``.
Begin reading with ``table.py``, where each option is one line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rag_harness.settings.table import Mode, Settings, affecting, env_name, help_sentence, masked, options

if TYPE_CHECKING:
    from rag_harness.settings.access import Access, access_of

__all__ = ["Access", "Mode", "Settings", "access_of", "affecting", "env_name", "help_sentence", "masked", "options"]


def __getattr__(name: str) -> Any:
    """Import ``access`` on first use. A suite that does not use the plugin reads only the table."""
    if name not in ("Access", "access_of"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from rag_harness.settings import access

    return getattr(access, name)
