"""Loader of descriptions of HTTP interfaces: OpenAPI 3 and Swagger 2, as JSON or YAML.

Of other JSON and YAML files ``says_openapi`` says that they are no documents. A ``$ref`` is followed inside the file
for parameters, bodies and responses; a schema is named, never unfolded. Public: ``load``, ``says_openapi``. Begin
reading in ``interface``.
"""

from __future__ import annotations

import re
from pathlib import Path

from rag_harness.dataset.ingest.file_reading import parsed_file
from rag_harness.types import Document

_HEAD = 64 << 10
_SAYS = re.compile(rb"""(?:^|[{,\s])["']?(?:openapi|swagger)["']?[ \t]*:\s{0,9}["']?[1-9]\.""", re.MULTILINE)


def load(file: Path, doc_id: str) -> Document:
    """Read a description of an interface.

    Raises:
        UnreadableError, OSError: the file cannot be read, or describes no interface.
    """
    return parsed_file("openapi", file).document(file, doc_id)


def says_openapi(file: Path) -> bool:
    """Return whether the beginning of a JSON or YAML file says that it is such a description."""
    try:
        with file.open("rb") as stream:
            return bool(_SAYS.search(stream.read(_HEAD)))
    except OSError:
        return True  # the loader says why
