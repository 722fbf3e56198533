"""Plain text: its decoding, the detection of garbage, and loaders for text, Markdown, CSV and TSV."""

from __future__ import annotations

import codecs
import csv
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from io import StringIO
from itertools import islice
from pathlib import Path

from rag_harness.core.errors import UnreadableError
from rag_harness.core.types import Document
from rag_harness.data.loaders.child_process import CELLS, Parsed
from rag_harness.data.loaders.markdown_writer import MarkdownWriter, add_sheet, without_marks_of_loaders
from rag_harness.data.loaders.reading import parsed_file, read_bytes

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
        UnreadableError: it has NUL bytes, so it is not text; or no charset fits, or several fit equally well.
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
        # Some of Python's codecs are not charsets: rot13, zlib.
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


# Detection of garbage: binaries, text in a wrong charset, characters without words, repeated lines.

SHORT_TEXT = 200
"""Fewest characters of a text to judge. Counting says nothing about a shorter text."""
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\ufffe\uffff]")
# UTF-8 that was read as Latin-1 or Windows-1252, and the replacement character of unreadable bytes.
_MOJIBAKE = re.compile("[\u00c2\u00c3][\u0080-\u00bf\u0152-\u0178\u2013-\u2122]|\u00e2\u20ac|\u00ef\u00bf\u00bd|\ufffd")
_LETTER = re.compile(r"[^\W_]")
_COMBINING_CATEGORIES = ("Mn", "Mc")
"""Unicode categories: vowel signs of Devanagari, Thai, Tamil, and combining accents."""
_RUN = re.compile(r"[!-~]{200,}")

MOST_CONTROL, MOST_MOJIBAKE, LEAST_LETTERS, MOST_RUNS, MOST_REPEATED = 0.02, 0.02, 0.4, 0.5, 0.8
"""Shares of the characters that are not blank. The last is a share of the lines, if there are ``MANY_LINES``."""
MANY_LINES = 50


def checked_text(text: str, judged: str | None = None) -> str:
    """Return ``text`` if it is not garbage. ``judged`` is the part to judge, without marks that the loader added.

    Raises:
        UnreadableError: the text is garbage; names the shares that show it.
    """
    fault = garbage(text if judged is None else judged)
    if fault:
        raise UnreadableError(f"{fault}. Remove it, or save it again as UTF-8 text")
    return text


def garbage(text: str) -> str:
    """Return why ``text`` is garbage; empty where it is not."""
    solid = sum(map(len, text.split()))
    if "\0" in text:
        return "holds NUL characters: a binary file"
    if solid < SHORT_TEXT:
        return ""
    shares = {
        "control characters: a binary file": (_count(_CONTROL, text) / solid, MOST_CONTROL),
        "letters read in a wrong charset": (_count(_MOJIBAKE, text) / solid, MOST_MOJIBAKE),
        "runs of 200 characters without a blank: data, no words": (_length(_RUN, text) / solid, MOST_RUNS),
        "neither letters nor digits": (1 - _letters(text, solid * LEAST_LETTERS) / solid, 1 - LEAST_LETTERS),
        "lines that are the same": (_repeated(text), MOST_REPEATED),
    }
    found = [f"{min(share, 1):.0%} {what}" for what, (share, most) in shares.items() if share > most]
    return "garbage: " + ", ".join(found) if found else ""


def _letters(text: str, enough: float) -> int:
    """Count letters and digits. If these are too few, count vowel signs and accents, too."""
    letters = _count(_LETTER, text)
    if letters >= enough or text.isascii():
        return letters
    return letters + sum(n for each, n in Counter(text).items() if unicodedata.category(each) in _COMBINING_CATEGORIES)


def _count(pattern: re.Pattern[str], text: str) -> int:
    return sum(1 for _ in pattern.finditer(text))


def _length(pattern: re.Pattern[str], text: str) -> int:
    return sum(match.end() - match.start() for match in pattern.finditer(text))


def _repeated(text: str) -> float:
    lines = [line for line in map(str.strip, text.splitlines()) if line]
    if len(lines) < MANY_LINES:
        return 0.0
    return Counter(lines).most_common(1)[0][1] / len(lines)


OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""How files of Office before 2007 begin, and encrypted ones of any age."""
ZIP = b"PK\x03\x04"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_OFFICE = (
    ("docx", re.compile(rb"wordprocessingml\.\w+\.main\+xml|ms-word\.\w+\.macroEnabled\w*\.main\+xml")),
    ("pptx", re.compile(rb"presentationml\.\w+\.main\+xml|ms-powerpoint\.\w+\.macroEnabled\w*\.main\+xml")),
    ("xlsx", re.compile(rb"spreadsheetml\.\w+\.main\+xml|ms-excel\.\w+\.macroEnabled\w*\.main\+xml")),
)


def check_kind(data: bytes, wanted: str) -> None:
    """Refuse a file that begins as another kind.

    Raises:
        UnreadableError: it does; the message names both kinds.
    """
    found = _seen_kind(data)
    if found:
        raise UnreadableError(f"is not {wanted}, but {found}. Give it the suffix of its kind")


def _seen_kind(data: bytes) -> str:
    if data.startswith(OLE):
        return "a file of Word, Excel, PowerPoint or Outlook of before 2007, or an encrypted one"
    if data.startswith(ZIP):
        return "a ZIP archive, as docx, pptx and xlsx files are"
    return "a PDF" if data.startswith(b"%PDF-") else ""


def check_encrypted(data: bytes, suffix: str) -> None:
    """Refuse an Office file that is encrypted or too old.

    Raises:
        UnreadableError: it is one.
    """
    if not data.startswith(OLE):
        return
    if _ENCRYPTED in data:
        raise UnreadableError("is encrypted. Save it without its password")
    raise UnreadableError(f"is a file of Office of before 2007, or of another kind. Save it as .{suffix}")


def office_kind(content_types: bytes) -> str:
    """Return docx, pptx or xlsx by the parts that an Office file declares; empty for any other file."""
    return next((suffix for suffix, pattern in _OFFICE if pattern.search(content_types)), "")


# Loader for plain text in any charset. Text that looks like Markdown is later cut like Markdown.


def load_text(file: Path, doc_id: str) -> Document:
    """Read a text file.

    Raises:
        UnreadableError, OSError: the file cannot be read, or is not text.
    """
    return parsed_file("txt", file).document(file, doc_id)


def parse_text(data: bytes, charset: str = "") -> Parsed:
    """Return the text of ``data``. ``charset`` replaces the guess for a file that is not UTF-8."""
    check_kind(data, "text")
    found = decoded(data, named=charset)
    return Parsed(checked_text(found.text), guessed=found.guessed)


_TITLE_WITHIN = 1 << 18
"""Characters in which a title is searched for. Splitting 32 MB into lines takes half a gigabyte."""


def load_markdown(file: Path, doc_id: str) -> Document:
    """Read a page.

    Raises:
        UnicodeDecodeError, UnreadableError, OSError: the file cannot be read.
    """
    # Line ends and a byte order mark stay, so that offsets are offsets in the file.
    text = read_bytes(file).decode("utf-8")
    if "\0" in text:
        raise UnreadableError("holds NUL bytes: a binary file, or UTF-16. Save it as UTF-8")
    return Document(doc_id, text, _first_heading(text) or file.stem)


def _first_heading(text: str) -> str:
    for line in text[:_TITLE_WITHIN].removeprefix("\ufeff").splitlines():
        if line.startswith("# "):
            return line[2:].strip()
    return ""


_DELIMITERS = ",;\t|"
"""Of two that fit equally well, the first counts."""
_SAMPLE_LINES, _CSV_SAMPLE = 50, 64 << 10
_LONGEST_CELL = 1 << 20
_GOLDEN = re.compile(rb'(?:\xef\xbb\xbf)?"?query"?\s*,\s*"?expected_document_id\b', re.IGNORECASE)
"""How a golden set begins. Read as a document, it would give the answers away."""


def is_csv_document(file: Path) -> bool:
    """Return whether a CSV file is anything but a golden set."""
    try:
        with file.open("rb") as stream:
            return not _GOLDEN.match(stream.read(100))
    except OSError:
        return True  # the loader says why


def load_csv(file: Path, doc_id: str) -> Document:
    """Read a table.

    Raises:
        UnreadableError, OSError: the file cannot be read, is not text, or has too many cells.
    """
    return parsed_file("csv", file).document(file, doc_id)


def parse_csv(data: bytes, charset: str = "") -> Parsed:
    """Return the rows of ``data`` as a Markdown table. ``charset`` replaces the guess for a file that is not UTF-8."""
    check_kind(data, "CSV")
    found = decoded(data, named=charset)
    out = MarkdownWriter()
    add_sheet(out, list(_rows(found.text)))
    text = out.text()
    return Parsed(checked_text(text, without_marks_of_loaders(text)), guessed=found.guessed)


def _rows(text: str) -> Iterator[list[str]]:
    csv.field_size_limit(_LONGEST_CELL)
    delimiter, text = _delimiter(text)
    cells = 0
    try:
        for row in csv.reader(StringIO(text, newline=""), delimiter=delimiter):
            cells += len(row)
            if cells > CELLS:
                raise UnreadableError(f"has more than {CELLS:,} cells. Split it")
            yield [cell.strip() for cell in row]
    except csv.Error as error:
        raise UnreadableError(f"cannot be read as CSV: {error}. Save it again") from None


def _delimiter(text: str) -> tuple[str, str]:
    """Return what separates the cells, and the text without Excel's own line about that."""
    said, line_end, rest = text.partition("\n")
    if said.lower().startswith("sep=") and len(said.strip()) == len("sep=;"):
        return said.strip()[-1], rest if line_end else ""
    sample = text[:_CSV_SAMPLE]
    return max(_DELIMITERS, key=lambda each: _fit(sample, each)), text


def _fit(sample: str, delimiter: str) -> tuple[float, int]:
    """Return the share of rows with the usual number of cells, and this number; zeros where that is one cell."""
    try:
        rows = [len(row) for row in islice(csv.reader(StringIO(sample), delimiter=delimiter), _SAMPLE_LINES) if row]
    except csv.Error:
        return 0.0, 0
    if not rows:
        return 0.0, 0
    width, count = Counter(rows).most_common(1)[0]
    return (count / len(rows), width) if width > 1 else (0.0, 0)
