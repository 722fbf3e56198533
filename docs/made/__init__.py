"""Pages and pictures made from the code: `python -m docs.made` writes them below docs.

Each page is a file here with one function, ``page() -> str``. A test holds the committed pages to what they would be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from docs.made import api, chat, commands, errors, options, output, pictures, race

DOCS = Path(__file__).parents[1]
IMAGES = DOCS / "images"
PICTURES: Mapping[str, Callable[[], str]] = {
    "trial.svg": pictures.trial,
    "race.svg": race.rule,
    "race-e3.svg": race.shipped,
    "chat.svg": chat.picture,
}
PAGES: Mapping[str, Callable[[], str]] = {
    "reference/options.md": options.page,
    "reference/commands.md": commands.page,
    "reference/output.md": output.page,
    "reference/api.md": api.page,
    "dev/errors.md": errors.page,
}
