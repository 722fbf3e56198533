"""The service needs Python 3.11, as FastAPI does."""

from __future__ import annotations

import sys

collect_ignore_glob = ["*"] if sys.version_info < (3, 11) else []
