"""Every option, where its value comes from, and what a mode allows. The table alone is read by every suite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rag_harness.settings.table import Mode, Settings, affecting, env_name, masked, options

if TYPE_CHECKING:
    from rag_harness.settings.access import Access, access_of

__all__ = ["Access", "Mode", "Settings", "access_of", "affecting", "env_name", "masked", "options"]


def __getattr__(name: str) -> Any:
    """Import what a mode allows when it is first asked for: suites that do not use the plugin read the table alone."""
    if name not in ("Access", "access_of"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from rag_harness.settings import access

    return getattr(access, name)
