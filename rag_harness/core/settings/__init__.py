"""Every option, the sources of its value, and the rights of a mode. Every suite reads the table, and only the table.

Every room above calls it. It never reads data or asks a model. Public: ``Settings``, ``options`` and ``access_of``.
Begin reading with ``table.py``, where each option is one line.
"""

from __future__ import annotations

from rag_harness.core.settings.table import (
    Access,
    Mode,
    Settings,
    access_of,
    affecting,
    env_name,
    help_sentence,
    masked,
    options,
)

__all__ = ["Access", "Mode", "Settings", "access_of", "affecting", "env_name", "help_sentence", "masked", "options"]
