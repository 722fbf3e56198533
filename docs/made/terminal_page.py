"""What a run prints, as a page that shows its colours: the picture of the terminal is taken of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape

CODE = re.compile(r"\x1b\[([0-9;]{0,20})m")
_COLOURS = {"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "36": "#76e3ea"}
_PAGE = (
    "<!doctype html><meta charset=utf-8><style>body{{margin:0;background:#1f2328}}"
    "pre{{display:inline-block;margin:0;padding:20px 24px;color:#f0f3f6;font:16px/1.4 'Liberation Mono',monospace}}"
    "</style><pre>{}</pre>"
)


def brief(printed: str, output: str) -> list[str]:
    """Return the run in brief, with its head and its colours; the folder ``output`` is called ``output``."""
    lines = printed.replace(output, "output").splitlines()
    start = next(n for n, line in enumerate(lines) if re.fullmatch(r"=+ rag in brief =+", CODE.sub("", line)))
    rest = lines[start:]
    return rest[: next(n for n, line in enumerate(rest) if not line or line.startswith("rag: "))]


def plain(lines: Sequence[str]) -> list[str]:
    """Return lines without their colours."""
    return [CODE.sub("", line) for line in lines]


def page(lines: Sequence[str]) -> str:
    """Return the lines as a page."""
    return _PAGE.format("\n".join("".join(_coloured(line)) for line in lines))


def _coloured(line: str) -> Iterator[str]:
    style: dict[str, str] = {}
    for place, part in enumerate(CODE.split(line)):
        if place % 2 == 0:
            rules = ";".join(f"{name}:{value}" for name, value in style.items())
            yield f'<span style="{rules}">{escape(part)}</span>' if rules and part else escape(part)
            continue
        for code in part.split(";"):
            if code in ("", "0"):
                style.clear()
            elif code == "1":
                style["font-weight"] = "bold"
            elif code in _COLOURS:
                style["color"] = _COLOURS[code]
