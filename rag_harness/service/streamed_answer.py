"""The answer in a model's JSON, read while the JSON is being written."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Generator
from typing import TypeVar

T = TypeVar("T")
_Say = Callable[[str], object]
_Reading = Generator[re.Pattern[str], str, T]
"""Asks for the next piece of the JSON by its pattern, and is sent it."""

KEY = "answer"
_ANY = re.compile(r".", re.DOTALL)
_INSIDE = re.compile(r'[^"\\]+|.', re.DOTALL)
"""Of a string: plain characters as far as they go, or the one that ends or escapes."""
_OUTSIDE = re.compile(r'[^"{}\[\],]+|.', re.DOTALL)
"""Of a value that is passed over: up to what a string, an object or a list begins or ends with."""
_FENCE = re.compile(r"```(?:json)?\s*\{|\{", re.IGNORECASE)
_LONGEST_FENCE = 64
"""Characters before the opening brace: with more there, it is no JSON that will be read either."""
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class WholeCharacters:
    """Joins halves of a character that come one by one, and replaces a lone one; as reading the whole text does."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-16-le")("replace")

    def feed(self, text: str) -> str:
        """Return what of the text so far is whole and was not returned before."""
        return self._decoder.decode(text.encode("utf-16-le", "surrogatepass"))

    def end(self) -> str:
        """Return what is left."""
        return self._decoder.decode(b"", final=True)


class PlainText:
    """Reads an answer that was asked for as it is."""

    def __init__(self) -> None:
        self._characters = WholeCharacters()

    def feed(self, piece: str) -> str:
        """Return what ``piece`` adds to the answer."""
        return self._characters.feed(piece)


class AnswerInJson:
    """Reads the string at "answer" of a JSON object, in a fence or not; the first one, where there are several.

    What else the object has is passed over. Of what is no such JSON nothing is read, or the answer as far as it went.
    """

    def __init__(self) -> None:
        self._said = WholeCharacters()
        self._found: list[str] = []
        self._reading: _Reading[None] = _answer(self._found.append)
        self._wanted = next(self._reading)
        self._is_over = False

    def feed(self, piece: str) -> str:
        """Return what ``piece`` adds to the answer, decoded; a half of a character waits for the other."""
        self._read(piece)
        said = self._said.feed("".join(self._found))
        self._found.clear()
        # Behind the end no other half can come.
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
    """Read up to the quote that ends the string; its opening one is read already."""
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
    """Read a value that begins with ``first``; return what stands behind it."""
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
