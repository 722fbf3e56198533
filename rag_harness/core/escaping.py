"""Safe output of foreign text on terminals, in Markdown, HTML and CSV, and the policy of every HTML page."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from importlib.resources import files
from typing import TextIO

# Control characters, soft hyphen, direction marks, fillers, joiners, line separators, invisible operators, surrogates,
# annotations, shorthand and musical format controls, tags, variation selectors beyond the first sixteen.
_HIDDEN = (
    r"\x00-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufeff"
    r"\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_SEEN = rf"[^\x00-\x7f{_HIDDEN}]"
_BELONGS = "|".join(
    (
        # A joiner between two letters (Persian, Hindi) or two emoji: a family is several emoji in one.
        rf"(?<={_SEEN})[\u200c\u200d](?={_SEEN})",
        # The flag of a region, such as Scotland, is a flag followed by tag characters.
        r"(?<=\U0001f3f4)[\U000e0020-\U000e007e]{1,8}\U000e007f",
        # A variation selector after an ideograph.
        r"(?<=[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef]",
    )
)
_FOUND = re.compile(rf"({_BELONGS})|[{_HIDDEN}]")


def escaped(text: str, kept: str = "") -> str:
    r"""Return text with its hidden characters as Python writes them: ``\x1b``, ``\u202e``. ``kept`` stay as they are.

    Text of either direction stays as it is, and so do emoji that are made of several characters.
    """
    return with_escapes(text, python_escape, kept)


def with_escapes(text: str, escape: Callable[[str], str], kept: str = "") -> str:
    """Return text with each hidden character replaced by ``escape`` of it, except for ``kept``."""
    if text.isascii() and text.isprintable():
        return text
    return _FOUND.sub(lambda found: found[0] if found[1] or found[0] in kept else escape(found[0]), text)


@lru_cache(4096)
def python_escape(letter: str) -> str:
    r"""Return a character as Python writes it: ``\n``, ``\x1b``, ``\u202e``."""
    return letter.encode("unicode_escape").decode("ascii")


# Printing of foreign text on a terminal and in the log of a CI job, so that it triggers no command.
#
# A terminal takes ``\x1b`` and C1 for commands. A runner of GitHub, Azure or TeamCity takes ``::error::`` at the start
# of a line, and ``##[error]`` anywhere in it, for commands. No other module prints.

_STARTS = re.compile(r"^(\s*)(?=::)")
_BRACKET = re.compile(r"(##\w*)(?=\[)")
_JSON_BRACKET = re.compile(r"#(#\w*)(?=\[)")
_REDRAW = "\r\x1b[K"
_COLUMNS = 60, 120
"""Fewest and most: longer lines are hard to read."""


def terminal_line(text: str) -> str:
    r"""Return text as one line; a line break in it is written as ``\n``."""
    return _BRACKET.sub(r"\1\\", _STARTS.sub(r"\1\\", escaped(text, kept="\t")))


def terminal_block(text: str) -> str:
    """Return text that may have several lines."""
    return "\n".join(map(terminal_line, text.replace("\r\n", "\n").split("\n")))


def json_block(text: str) -> str:
    r"""Return JSON with the same meaning; control characters are written as JSON escapes, as ``\u001b``."""
    safe = with_escapes(text, _json_escape, kept="\t\n")
    return _JSON_BRACKET.sub(lambda found: rf"\u0023{found[1]}", safe)


def say(*lines: str, to: TextIO | None = None) -> None:
    """Print each text as a line, by default to standard output."""
    _write("".join(f"{terminal_line(each)}\n" for each in lines), to or sys.stdout)


def columns(unknown: int = 100) -> int:
    """Return how wide a text may be: as the terminal, or ``COLUMNS``, says; ``unknown`` where neither does."""
    fewest, most = _COLUMNS
    return max(fewest, min(shutil.get_terminal_size((unknown, 24)).columns, most))


def say_block(text: str, to: TextIO | None = None) -> None:
    """Print a text of several lines whose line breaks come from the harness, e.g. an error with its place."""
    say(*text.split("\n"), to=to)


def say_json(text: str) -> None:
    """Print JSON."""
    _write(f"{json_block(text)}\n", sys.stdout)


def ask(question: str) -> str:
    """Print a question and return the line that the user types. The question may have several lines."""
    return input(terminal_block(question))


def redraw(text: str, to: TextIO) -> None:
    """Replace the current line of the terminal by ``text``; an empty text clears the line."""
    _write(f"{_REDRAW}{terminal_line(text)}", to)


def _write(text: str, to: TextIO) -> None:
    try:
        to.write(text)
    except UnicodeEncodeError:  # a pipe of Windows, or an old locale: what its charset lacks is written as an escape
        charset = to.encoding or "ascii"
        to.write(text.encode(charset, "backslashreplace").decode(charset))
    to.flush()


def _json_escape(letter: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    return "".join(rf"\u{units[place : place + 4]}" for place in range(0, len(units), 4))


# Text in GitHub's Markdown, e.g. in a comment of a pull request: no markup, no link, and nobody is notified.
#
# A backslash stops only markup. GitHub looks for mentions, references and addresses after it has removed backslashes,
# so an invisible character is put into them.

_JOINER = "\N{WORD JOINER}"
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~#&!$])")
_BEGINS = re.compile(r"^(\d{1,9}(?=[.)](?:\s|$))|(?=[-+](?:\s|$)|=+$|:?-+:?$))")
"""A beginning of a line that starts a list, or turns the line before into a heading or a table."""
_ACTS = re.compile(
    "|".join(
        (
            r"@(?!(?<=[A-Za-z]@)\d{1,4}(?![\w.-]))",  # @octocat, me@example.com; recall@5 is neither
            r"#(?=\w)",  # #12, owner/repository#12
            r"(?<=[A-Za-z])-(?=\d)|(?<=\b[Gg][Hh][Ss][Aa])-",  # GH-12, TICKET-12, GHSA-xxxx-xxxx-xxxx
            r":(?=[/a-z0-9+_-])",  # https://example.com, :tada:; its last colon may come from the harness
            r"(?<=\b[Ww]{3})(?=\.)",  # www.example.com
        )
    )
)
_COMMIT = re.compile(r"(?<![0-9A-Za-z])[0-9a-fA-F]{7,64}(?![0-9A-Za-z])")
_FEW = re.compile(r"(.{6})(?=.)")
"""The first six characters of a commit. GitHub recognizes a commit from seven on."""
_TICKS = re.compile(r"`+")


def markdown_text(text: str) -> str:
    """Return text that GitHub shows literally, on one line."""
    return _BEGINS.sub(r"\1\\", _SPECIAL.sub(r"\\\1", parted(_flat(text))))


def markdown_code(text: str) -> str:
    """Return text as inline code; empty for an empty text."""
    flat = _flat(text)
    ticks = "`" * (_longest(flat) + 1)
    return f"{ticks} {flat} {ticks}" if "`" in flat else f"`{flat}`" if flat else ""


def markdown_code_block(lines: Iterable[str]) -> Iterator[str]:
    """Yield ``lines`` as a fenced code block."""
    shown = [escaped(line, kept="\t") for line in lines]
    fence = "`" * max([3, *(_longest(line) + 1 for line in shown)])
    yield from (fence, *shown, fence)


def parted(text: str) -> str:
    """Return text that looks the same, with an invisible character in each mention, reference and address."""
    text = _COMMIT.sub(lambda found: _FEW.sub(rf"\1{_JOINER}", found[0]), text)
    return _ACTS.sub(lambda found: f"{found[0]}{_JOINER}", text)


def _flat(text: str) -> str:
    return escaped(" ".join(text.split()))


def _longest(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)


# Text of an HTML page with hidden characters written as escapes. The page itself escapes markup.


def html_text(text: str) -> str:
    r"""Return text with hidden characters written as escapes, as ``\u202e``. Line breaks stay."""
    return escaped(text, kept="\t\n\r")


# Cells of CSV that a spreadsheet shows and never runs as formulas.

MARK = "'"
_SIGNS = "=+@＝＋－＠"
"""Characters that begin a formula, besides ``-``: OWASP, CSV injection, and ASVS 1.2.10."""
_RUNS = re.compile(rf"^(?=[\t\r\n]|{MARK}|\s*[-{_SIGNS}])")
# In half of Europe a semicolon separates cells, and the quotes around a cell after a comma do not count.
_RUNS_LATER = re.compile(rf"([;\t\r\n])(?=[ \t]{{0,20}}(?:[{_SIGNS}]|-\S|-[^;\t\r\n]*\|))")


def csv_cell(text: str) -> str:
    """Return text with an apostrophe before each formula. A leading apostrophe is doubled, so that none is lost."""
    safe = escaped(text.replace("\0", "\N{REPLACEMENT CHARACTER}"), kept="\t\r\n")
    return _RUNS.sub(MARK, _RUNS_LATER.sub(rf"\1{MARK}", safe))


def page_style(style: str, before: str = "") -> str:
    """Return the style of a page behind what all pages share; ``before`` is what that may override."""
    return before + _asset("base.css") + style


def page_script(script: str) -> str:
    """Return the script of a page, behind the functions that all pages share; all of it is strict."""
    return _asset("base.js") + script


def page_policy(style: str, script: str) -> str:
    """Return a Content-Security-Policy that allows nothing from outside, and inside only this style and script."""
    return (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"


def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")
