r"""Text in GitHub's Markdown, e.g. in a comment of a pull request: no markup, no link, and nobody is notified.

A backslash stops only markup. GitHub looks for mentions, references and addresses after it has removed backslashes, so
an invisible character is put into them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rag_harness.shown.hidden import escaped

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


def plain(text: str) -> str:
    """Return text that GitHub shows literally, on one line."""
    return _BEGINS.sub(r"\1\\", _SPECIAL.sub(r"\\\1", parted(_flat(text))))


def code(text: str) -> str:
    """Return text as inline code; empty for an empty text."""
    flat = _flat(text)
    ticks = "`" * (_longest(flat) + 1)
    return f"{ticks} {flat} {ticks}" if "`" in flat else f"`{flat}`" if flat else ""


def code_block(lines: Iterable[str]) -> Iterator[str]:
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
