"""Parser for the front matter of a page: plain ``key: value`` lines, as in books and static sites."""

from __future__ import annotations

import re

from rag_harness.retrieval.chunking.heading_sections import body_start

_LINE = re.compile(r"^([A-Za-z_][\w-]*):[ \t]+(\S(?:.*\S)?)[ \t]*$", re.MULTILINE)
_QUOTED = re.compile(r"""(["'])(.*)\1""")
_COMMENT = re.compile(r"(?<!\s)\s+#.*$")
_WHOLE_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")


def front_matter(text: str) -> dict[str, str | int]:
    """Return the top-level keys with a plain value. Lists and nested values are left out.

    Quotes around a value and comments after it are removed, and whole numbers become numbers. Of a repeated key, the
    last value counts. A page without front matter gives nothing.
    """
    lines = text[: body_start(text)].replace("\r\n", "\n").replace("\r", "\n")
    return {match[1]: _value(match[2]) for match in _LINE.finditer(lines) if match[2][0] not in "[{|>#"}


def _value(written: str) -> str | int:
    quoted = _QUOTED.fullmatch(written)
    if quoted:
        return quoted[2]
    plain = _COMMENT.sub("", written)
    return int(plain) if _WHOLE_NUMBER.fullmatch(plain) else plain
