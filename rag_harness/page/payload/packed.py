"""Packs JSON for a block of the page: as gzip in base64, or plain for browsers that cannot unpack."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

_LEVEL = 9


def packed(value: Any) -> str:
    """Return ``value`` as gzip in base64. The same value gives the same text."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    # zlib writes neither a name nor a time into the gzip header.
    return base64.b64encode(packer.compress(_encoded(value)) + packer.flush()).decode("ascii")


def script_json(value: Any) -> str:
    """Return ``value`` as JSON for a script element. Nothing in it can end the element."""
    text = _encoded(value).decode("ascii")
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _encoded(value: Any) -> bytes:
    # ASCII output: a lone surrogate stays an escape.
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode("ascii")
