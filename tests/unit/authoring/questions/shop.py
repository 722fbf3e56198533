"""A small shop's documents: what the tests ask questions of."""

from __future__ import annotations

from pathlib import Path

from rag_harness.core.types import Document

RETURNS = """# Returns

Effective 1 March 2026. Read [delivery](delivery.md) too.

## Windows

If the parcel seal is broken, we refund half of the price. A faulty lantern is replaced within 12 working days.

To cancel a lantern order, open the order page and press Withdraw.

| Lantern | Weight | Price | Return period |
|---|---|---|---|
| Pine Lantern | 1.2 kg | €39 | 30 days |
| Brass Lantern | 2.4 kg | €89 | 45 days |

Gift baskets can't be exchanged by post.
"""
DELIVERY = """# Delivery

Island parcels are held for 9 days at the harbour office. If the ferry is cancelled, we call the recipient first.

| Crate | Weight | Price |
|---|---|---|
| Oak Crate | 3.6 kg | €19 |
| Cedar Crate | 2.1 kg | €29 |

When the courier cannot find a harbour address, the parcel seal stays closed and the courier phones twice.

A harbour pass is a small card that lets a driver enter the quay.
"""
CLUB = """# Lantern club

The club letter is sent every 3 months. Members pay a yearly fee of €12. Club evenings end at 21:30.

If a member moves abroad, the membership is paused until the next spring.

You can change the club address by writing to the harbour office. Pine Lantern owners get a free wick.
"""
PAGES = {"returns.md": RETURNS, "delivery.md": DELIVERY, "club.md": CLUB}


def documents(**pages: str) -> list[Document]:
    """Return pages as documents, the shop's where none are given; a title is the first heading."""
    named = {f"{name}.md": text for name, text in pages.items()} or PAGES
    return [Document(name, text, text.split("\n", 1)[0].lstrip("# ")) for name, text in named.items()]


def folder(at: Path, pages: dict[str, str] | None = None) -> Path:
    """Write pages, the shop's where none are given, into a folder ``my_docs``."""
    made = at / "my_docs"
    made.mkdir()
    for name, text in (PAGES if pages is None else pages).items():
        (made / name).write_text(text, encoding="utf-8")
    return made
