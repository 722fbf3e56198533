"""JSON -> the text of a block in the page: gzip in base64, or plain for browsers that cannot unpack."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

_LEVEL = 9


def packed(value: Any) -> str:
    """Return ``value`` as gzip in base64; the same value gives the same text."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    # zlib writes neither name nor time into the header of a gzip stream.
    return base64.b64encode(packer.compress(_encoded(value)) + packer.flush()).decode("ascii")


def plain(value: Any) -> str:
    """Return ``value`` as JSON that can stand in a script element: nothing in it can end that element."""
    text = _encoded(value).decode("ascii")
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _encoded(value: Any) -> bytes:
    # ASCII: a lone surrogate stays the escape that it is.
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode("ascii")
