"""Every option, the sources of its value, and the rights of a mode. Every suite reads the table, and only the table.

Every package calls it. It never reads data or asks a model. Begin reading with ``table.py``, where each option is
declared once, and ``loading.py``, which fills the table.
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
