"""Screenshots with few colours: a page loads them at once, and the repository stays small."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import Image

MOST_BYTES = 200_000
_COLOURS = (256, 128, 64, 32)


def small(picture: bytes, name: str) -> bytes:
    """Return a picture with as many colours as leave it below the limit.

    Raises:
        SystemExit: it is too large, or there is no Pillow to make it small.
    """
    try:
        from PIL import Image
    except ImportError:
        if len(picture) <= MOST_BYTES:
            return picture
        raise SystemExit(f"{name} has {len(picture)} bytes, more than {MOST_BYTES}: pip install pillow") from None
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    for colours in _COLOURS:
        kept = io.BytesIO()
        with_palette(image, colours).save(kept, "PNG", optimize=True)
        if kept.tell() <= MOST_BYTES:
            return kept.getvalue()
    raise SystemExit(f"{name} has {kept.tell()} bytes with {colours} colours, more than {MOST_BYTES}. Show less.")


def with_palette(image: Image.Image, colours: int) -> Image.Image:
    """Return an image with the colours that most of its pixels have: words, bars and grounds stay exactly as they are.

    Every other pixel, of a smooth edge mostly, gets the nearest of them.
    """
    import numpy as np
    from PIL import Image

    red, green, blue = np.moveaxis(np.asarray(image, dtype=np.int64), 2, 0)
    packed, place, number = np.unique(red << 16 | green << 8 | blue, return_inverse=True, return_counts=True)
    found = np.stack([packed >> 16, packed >> 8 & 255, packed & 255], axis=1)
    palette = found[np.argsort(-number, kind="stable")[:colours]]
    nearest = ((found[:, None, :] - palette[None]) ** 2).sum(axis=2).argmin(axis=1).astype(np.uint8)
    made = Image.frombytes("P", image.size, nearest[place].tobytes())
    made.putpalette(palette.reshape(-1).tolist())
    return made
