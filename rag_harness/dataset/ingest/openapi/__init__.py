"""Loader of descriptions of HTTP interfaces: OpenAPI 3 and Swagger 2, as JSON or YAML.

Of other JSON and YAML files ``is_document`` says that they are no documents. A ``$ref`` is followed inside the file
for parameters, bodies and responses; a schema is named, never unfolded. Public: ``load``, ``is_document``. Begin
reading in ``interface``.
"""

from __future__ import annotations

import re
from pathlib import Path

from rag_harness.dataset.ingest.file_reading import parsed_file
from rag_harness.types import Document

_HEAD = 1 << 20
"""Bytes that are looked into: programs that sort keys write ``openapi`` behind all schemas."""
_SAYS_YAML = re.compile(rb"""^(?:\xef\xbb\xbf)?["']?(?:openapi|swagger)["']?[ \t]*:[ \t]*["']?[1-9]\.""", re.MULTILINE)
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"?|[{}\[\]]')
_KEYS = (b'"openapi"', b'"swagger"')
_VERSION = re.compile(rb'\s{0,9}:\s{0,9}"[1-9]\.')


def load(file: Path, doc_id: str) -> Document:
    """Read a description of an interface.

    Raises:
        UnreadableError, OSError: the file cannot be read, or describes no interface.
    """
    return parsed_file("openapi", file).document(file, doc_id)


def is_document(file: Path) -> bool:
    """Return whether the beginning of a JSON or YAML file says that it is such a description."""
    try:
        with file.open("rb") as stream:
            head = stream.read(_HEAD)
    except OSError:
        return True  # the loader says why
    if not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return bool(_SAYS_YAML.search(head))
    return any(key in head for key in _KEYS) and _says_json(head)


def _says_json(head: bytes) -> bool:
    """Return whether the outermost object has the key: a package may depend on something called ``openapi``."""
    depth = 0
    for token in _TOKEN.finditer(head):
        if depth == 1 and token[0] in _KEYS and _VERSION.match(head, token.end()):
            return True
        depth += (token[0] in b"{[") - (token[0] in b"}]")
    return False
