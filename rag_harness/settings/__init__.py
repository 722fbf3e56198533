"""Every option, where its value comes from, and what a mode allows. The table alone is read by every suite."""

from __future__ import annotations

from rag_harness.settings.access import Access, access_of
from rag_harness.settings.table import Mode, Settings, affecting, env_name, masked, options

__all__ = ["Access", "Mode", "Settings", "access_of", "affecting", "env_name", "masked", "options"]
