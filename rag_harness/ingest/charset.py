"""Bytes -> text: byte order mark, what the file declares, UTF-8, and only then a guess."""

from __future__ import annotations

import codecs
from contextlib import suppress

from rag_harness.errors import UnreadableError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE = 64 << 10
"""Bytes that a guess looks at."""
_READ_AS = {"iso-8859-1": "cp1252", "latin-1": "cp1252", "latin1": "cp1252", "us-ascii": "cp1252", "ascii": "cp1252"}
"""What browsers take these names for; and a file that can say so in one-byte letters is no UTF-16."""
_WIDE = ("utf-16", "utf-32", "utf_16", "utf_32", "ucs-2")


def decoded(data: bytes, declared: str = "") -> str:
    """Return the text of a file; a byte order mark wins, then ``declared``, then UTF-8, then the likeliest charset.

    Raises:
        UnreadableError: it holds NUL bytes, so it is no text; or no charset fits.
    """
    for mark, charset in _MARKS:
        if data.startswith(mark):
            return _strictly(data[len(mark) :], charset)
    if b"\0" in data:
        raise UnreadableError("holds NUL bytes: a binary file, or UTF-16 without its mark. Save it as UTF-8")
    for charset in (_known(declared), "utf-8"):
        with suppress(UnicodeDecodeError, ValueError):
            return data.decode(charset)
    return _strictly(data, _likeliest(data))


def _known(declared: str) -> str:
    named = declared.strip().lower()
    with suppress(LookupError, ValueError):
        # Some of Python's codecs are no charsets: rot13, zlib.
        if codecs.lookup(named)._is_text_encoding and not named.startswith(_WIDE):
            return _READ_AS.get(named, named)
    return "utf-8"


def _strictly(data: bytes, charset: str) -> str:
    try:
        return data.decode(charset)
    except UnicodeDecodeError as error:
        raise UnreadableError(f"not {charset} at byte {error.start}, and no charset fits. Save it as UTF-8") from None


def _likeliest(data: bytes) -> str:
    from charset_normalizer import from_bytes

    # What cannot be UTF-8 must be in the sample: the first byte above ASCII may come late.
    first = next((at for at, byte in enumerate(data) if byte > 127), 0)
    found = from_bytes(data[max(0, first - _SAMPLE // 2) : first + _SAMPLE // 2]).best()
    if found is None:
        raise UnreadableError("is in no charset that fits: a binary file, or damaged. Save it as UTF-8")
    return found.encoding
