"""Reads the answer in a model's JSON while the JSON is being written."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Generator
from typing import TypeVar

_T = TypeVar("_T")
_Say = Callable[[str], object]
_Reading = Generator[re.Pattern[str], str, _T]
"""A reader: it yields the pattern of the next piece of JSON, and is sent that piece."""

KEY = "answer"
_ANY = re.compile(r".", re.DOTALL)
_INSIDE = re.compile(r'[^"\\]+|.', re.DOTALL)
"""In a string: plain characters as far as they go, or the one character that ends it or begins an escape."""
_OUTSIDE = re.compile(r'[^"{}\[\],]+|.', re.DOTALL)
"""In a value that is skipped: everything up to the next start or end of a string, an object or a list."""
_FENCE = re.compile(r"```(?:json)?\s*\{|\{", re.IGNORECASE)
_LONGEST_FENCE = 64
"""The most characters before the opening brace. With more, the text is not taken for JSON."""
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class WholeCharacters:
    """Joins halves of a character that come one by one, and replaces a lone half, as reading the whole text does."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-16-le")("replace")

    def feed(self, text: str) -> str:
        """Return the whole characters that were not returned before."""
        return self._decoder.decode(text.encode("utf-16-le", "surrogatepass"))

    def end(self) -> str:
        """Return the rest."""
        return self._decoder.decode(b"", final=True)


class PlainText:
    """Reads an answer that is plain text."""

    def __init__(self) -> None:
        self._characters = WholeCharacters()

    def feed(self, piece: str) -> str:
        """Return what ``piece`` adds to the answer."""
        return self._characters.feed(piece)


class AnswerInJson:
    """Reads the string at "answer" of a JSON object, in a fence or not; if there are several, the first.

    Everything else in the object is skipped. If the JSON is not valid, nothing is read, or the answer up to the fault.
    """

    def __init__(self) -> None:
        self._said = WholeCharacters()
        self._found: list[str] = []
        self._reading: _Reading[None] = _answer(self._found.append)
        self._wanted = next(self._reading)
        self._is_over = False

    def feed(self, piece: str) -> str:
        """Return what ``piece`` adds to the decoded answer. Half a character waits for its other half."""
        self._read(piece)
        said = self._said.feed("".join(self._found))
        self._found.clear()
        # After the end, no other half can come.
        return said + self._said.end() if self._is_over else said

    def _read(self, text: str) -> None:
        at = 0
        while at < len(text) and not self._is_over:
            match = self._wanted.match(text, at)
            assert match is not None
            at = match.end()
            try:
                self._wanted = self._reading.send(match[0])
            except (StopIteration, ValueError):
                self._is_over = True


def _answer(say: _Say) -> _Reading[None]:
    yield from _opening()
    while True:
        key: list[str] = []
        if (yield from _visible()) != '"':
            return
        yield from _string(key.append)
        yield from _visible()  # the colon
        first = yield from _visible()
        if "".join(key) == KEY:
            if first == '"':
                yield from _string(say)
            return
        if (yield from _passed_over(first)) != ",":
            return


def _opening() -> _Reading[None]:
    before = ""
    while not _FENCE.fullmatch(before):
        before = (before + (yield _ANY)).lstrip()
        if len(before) > _LONGEST_FENCE or not "```json".startswith(before.partition("{")[0].lower().rstrip()):
            raise ValueError("no JSON object")


def _visible() -> _Reading[str]:
    char = " "
    while char.isspace():
        char = yield _ANY
    return char


def _string(say: _Say) -> _Reading[None]:
    """Read up to the quote that ends the string. Its opening quote is already read."""
    while (piece := (yield _INSIDE)) != '"':
        say((yield from _escaped()) if piece == "\\" else piece)


def _escaped() -> _Reading[str]:
    char = yield _ANY
    if char != "u":
        return _SHORT.get(char, char)
    digits = ""
    while len(digits) < 4:
        digits += yield _ANY
    return chr(int(digits, 16))


def _passed_over(first: str) -> _Reading[str]:
    """Read a value that begins with ``first``; return what follows it."""
    depth, piece = 0, first
    while True:
        if piece == '"':
            yield from _string(lambda _: None)
        depth += (piece in ("{", "[")) - (piece in ("}", "]"))
        if depth < 0:
            return piece
        piece = yield _OUTSIDE
        if depth == 0 and piece in (",", "}"):
            return piece
