"""Where the links of a page lead."""

from __future__ import annotations

import posixpath
import re
from pathlib import PurePosixPath
from urllib.parse import unquote

from rag_harness.authoring.kb.page import Page

ELSEWHERE = re.compile(r"^(?:[A-Za-z][A-Za-z0-9+.\-]*:|//)")
"""The start of a link to another site."""


def linked_file(page: Page, target: str) -> tuple[str, str]:
    """Return the file and the anchor that a link of ``page`` names. A leading ``/`` is the knowledge base's folder."""
    path, _, anchor = target.partition("#")
    path = unquote(path.partition("?")[0])
    if not path:
        return page.doc_id, unquote(anchor)
    folder = "" if path.startswith("/") else PurePosixPath(page.doc_id).parent.as_posix()
    return posixpath.normpath(posixpath.join(folder, path.lstrip("/"))), unquote(anchor)


def linked_files(page: Page) -> list[str]:
    """Return the files that ``page`` links to, each once, in order, without the page itself and other sites."""
    named = dict.fromkeys(linked_file(page, target)[0] for _, target in page.links if not ELSEWHERE.match(target))
    return [name for name in named if name != page.doc_id]
