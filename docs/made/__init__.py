"""Pages of the reference that are made from the code: `python -m docs.made` writes them anew into docs/reference.

Each page is a file here with one function, ``page() -> str``. A test holds the committed pages to what they would be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from docs.made import api, commands, errors, options, output

REFERENCE = Path(__file__).parents[1] / "reference"
PAGES: Mapping[str, Callable[[], str]] = {
    "options.md": options.page,
    "commands.md": commands.page,
    "output.md": output.page,
    "api.md": api.page,
    "errors.md": errors.page,
}
