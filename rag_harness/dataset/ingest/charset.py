"""Decoding of files: byte order mark, declared charset, UTF-8, and only then a guess."""

from __future__ import annotations

import codecs
from contextlib import suppress
from dataclasses import dataclass

from rag_harness.errors import UnreadableError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE = 64 << 10
"""Bytes that a guess reads."""
_READ_AS = {"iso-8859-1": "cp1252", "latin-1": "cp1252", "latin1": "cp1252", "us-ascii": "cp1252", "ascii": "cp1252"}
"""The charsets that browsers use for these names. A file with a declaration in one-byte letters is not UTF-16."""
_WIDE = ("utf-16", "utf-32", "utf_16", "utf_32", "ucs-2")


_COMMON = (
    *(f"cp{number}" for number in range(1250, 1259)),
    *(f"iso8859_{number}" for number in (2, 5, 6, 7, 8, 9, 13, 15)),
    *("koi8_r", "koi8_u", "cp932", "euc_jp", "cp949", "gb18030", "big5"),
)
"""Charsets that a guess may choose. With 90 rare ones more, it would choose a rare one for many short texts."""
_MARGIN = 5.0
"""Points of coherence, of 100, by which the best guess must beat each guess that gives another text."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """The text of a file, and its charset if only a guess or the user's option gives it."""

    text: str
    guessed: str = ""


def decoded(data: bytes, declared: str = "", named: str = "") -> Decoded:
    """Return the text of a file. Priority: byte order mark, ``declared``, UTF-8, ``named``, the likeliest charset.

    Raises:
        UnreadableError: there are NUL bytes, so it is no text; or no charset fits, or several fit equally well.
    """
    for mark, charset in _MARKS:
        if data.startswith(mark):
            return Decoded(_strictly(data[len(mark) :], charset))
    if b"\0" in data:
        raise UnreadableError("holds NUL bytes: a binary file, or UTF-16 without its mark. Save it as UTF-8")
    for charset in (_known(declared), "utf-8"):
        with suppress(UnicodeDecodeError, ValueError):
            return Decoded(data.decode(charset))
    if named:
        return Decoded(_strictly(data, _READ_AS.get(named, named)), named)
    charset = _likeliest(data)
    return Decoded(_strictly(data, charset), charset)


def is_charset(name: str) -> bool:
    """Return whether ``name`` is a charset for reading files."""
    with suppress(LookupError, ValueError):
        return bool(codecs.lookup(name)._is_text_encoding)
    return False


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

    # The sample must contain the bytes that are not UTF-8, and the first byte above ASCII may come late.
    first = next((at for at, byte in enumerate(data) if byte > 127), 0)
    sample = data[max(0, first - _SAMPLE // 2) : first + _SAMPLE // 2]
    found = list(from_bytes(sample, cp_isolation=list(_COMMON)))
    if not found:
        raise UnreadableError("is in no charset that fits: a binary file, or damaged. Save it as UTF-8")
    best, *others = found
    near = [each for each in others if each.percent_coherence > best.percent_coherence - _MARGIN]
    rivals = [each.encoding for each in near if str(each) != str(best)]
    if rivals:
        raise UnreadableError(
            f"is not UTF-8, and its charset cannot be told: {best.encoding} fits as well as {' or '.join(rivals[:3])}. "
            f"Save it as UTF-8, or name the charset: --rag-charset={best.encoding}"
        )
    return best.encoding
