"""Pages and pictures made from the code: `python -m docs.made` writes them into docs/reference and docs/images.

Each page is a file here with one function, ``page() -> str``. A test holds the committed pages to what they would be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from docs.made import api, chat, commands, errors, options, output, pictures, race

REFERENCE = Path(__file__).parents[1] / "reference"
IMAGES = Path(__file__).parents[1] / "images"
PICTURES: Mapping[str, Callable[[], str]] = {
    "wings.svg": pictures.wings,
    "trial.svg": pictures.trial,
    "race.svg": race.rule,
    "race-e3.svg": race.shipped,
    "chat.svg": chat.picture,
}
PAGES: Mapping[str, Callable[[], str]] = {
    "options.md": options.page,
    "commands.md": commands.page,
    "output.md": output.page,
    "api.md": api.page,
    "errors.md": errors.page,
}
