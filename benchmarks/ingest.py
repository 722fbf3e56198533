"""A thousand mixed files of 100 MB: read, cut, embedded by hashing and indexed; then again, with nothing changed.

    python benchmarks/ingest.py [--files N] [--mb N]

Needs the core install. A fourth of the files each is text, Markdown, HTML and PDF. Words are drawn by Zipf's law from
20,000 made-up ones, in sections of 320; half of each HTML file is markup, and half of each PDF a picture. Every step is
a process of its own, as a person runs it; memory is its peak resident size, and that of the process that parses files,
as the system reports them. The last run has one file changed, one deleted and one added.
"""

from __future__ import annotations

import argparse
import random
import re
import resource
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from time import perf_counter

WORDS = 20_000
RUN = """
import resource, sys
from rag_harness.__main__ import main
status = main(sys.argv[1:])
own, children = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print(f"peak {own} {children}")
raise SystemExit(status)
"""


class Words:
    """Sentences of made-up words."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        letters = "etaoinshrdlucmfwypvbgk"
        made = {"".join(self._chance.choices(letters, k=self._chance.randint(2, 11))) for _ in range(2 * WORDS)}
        self._words = sorted(made)[:WORDS]
        self._chance.shuffle(self._words)
        self._weights = list(accumulate(1 / rank for rank in range(1, len(self._words) + 1)))

    def paragraph(self) -> str:
        words = self._chance.choices(self._words, cum_weights=self._weights, k=80)
        sentences = [" ".join(words[start : start + 16]).capitalize() for start in range(0, 80, 16)]
        return ". ".join(sentences) + "."

    def paragraphs(self, size: int) -> list[str]:
        made: list[str] = []
        while sum(map(len, made)) < size:
            made.append(self.paragraph())
        return made

    def noise(self, size: int) -> bytes:
        return self._chance.randbytes(size)


def text(words: Words, size: int) -> bytes:
    return "\n\n".join(words.paragraphs(size)).encode()


def markdown(words: Words, size: int) -> bytes:
    parts = [f"## {each[:40]}\n\n{each}" for each in _sections(words.paragraphs(size), "\n\n")]
    return ("# A page\n\n" + "\n\n".join(parts)).encode()


def html(words: Words, size: int) -> bytes:
    parts = _sections(words.paragraphs(size // 2), "<p class='text'>")
    markup = f"<div class='{'box ' * 200}' data-x='{'y' * 300}'><!-- {'z' * 700} --></div>"
    body = "".join(f"<h2>{each[:40]}</h2>{markup}<p class='text'>{each}" for each in parts)
    return f"<!doctype html><meta charset=utf-8><title>A page</title><body>{body}".encode()


def _sections(paragraphs: list[str], between: str) -> list[str]:
    return [between.join(paragraphs[start : start + 4]) for start in range(0, len(paragraphs), 4)]


def pdf(words: Words, size: int) -> bytes:
    lines = " ".join(words.paragraphs(size)).split(" ")
    rows = [" ".join(lines[start : start + 12]) for start in range(0, len(lines), 12)]
    pages = [zlib.compress(_drawn(rows[start : start + 50])) for start in range(0, len(rows), 50)]
    return _pdf(pages, words.noise(size // 2), size)


def _drawn(rows: list[str]) -> bytes:
    return ("BT /F1 11 Tf 14 TL 50 780 Td " + " ".join(f"({row}) Tj T*" for row in rows) + " ET").encode()


def _pdf(pages: list[bytes], picture: bytes, size: int) -> bytes:
    kept: list[bytes] = []
    while pages and sum(map(len, kept)) + len(picture) < size:
        kept.append(pages.pop(0))
    kids = " ".join(f"{5 + 2 * n} 0 R" for n in range(len(kept)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(kept)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(picture), picture),
    ]
    for number, page in enumerate(kept):
        about = b"/Resources << /Font << /F1 3 0 R >> /XObject << /P 4 0 R >> >> /MediaBox [0 0 595 842]"
        objects.append(b"<< /Type /Page /Parent 2 0 R %s /Contents %d 0 R >>" % (about, 6 + 2 * number))
        objects.append(b"<< /Filter /FlateDecode /Length %d >>\nstream\n%s\nendstream" % (len(page), page))
    body, offsets = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        offsets.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    ends = b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(body))
    return body + head + table + ends


KINDS: dict[str, Callable[[Words, int], bytes]] = {"txt": text, "md": markdown, "html": html, "pdf": pdf}


def make(folder: Path, files: int, size: int) -> int:
    """Write the files, and return how many bytes they have."""
    words, written = Words(20), 0
    for number in range(files):
        suffix = list(KINDS)[number % len(KINDS)]
        content = KINDS[suffix](words, size)
        written += len(content)
        (folder / f"{number:04}.{suffix}").write_bytes(content)
    return written


def ingest(folder: Path, cache: Path) -> tuple[str, list[float], list[int]]:
    """Run the command in a process of its own; return what it said, seconds (passed, of the processor), and MB."""
    command = ["ingest", str(folder), "--rag-profile", "mock", "--rag-cache-dir", str(cache)]
    began, before = perf_counter(), _processor()
    done = subprocess.run([sys.executable, "-c", RUN, *command], capture_output=True, text=True, check=True)
    took = [perf_counter() - began, _processor() - before]
    said, _, peak = done.stdout.rpartition("peak ")
    # In kilobytes on Linux, in bytes on macOS.
    return said, took, [int(size) // (1 << 20 if sys.platform == "darwin" else 1 << 10) for size in peak.split()]


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def show(name: str, run: tuple[str, list[float], list[int]]) -> None:
    said, took, (own, child) = run
    numbers = dict(re.findall(r"^(\w+) +([^\n]+)$", said, re.MULTILINE))
    found = [numbers["read"], numbers["chunks"], numbers["coverage"].split()[0]]
    print(f"| {name} | {took[0]:.1f} | {took[1]:.1f} | {own} | {child} | {' | '.join(found)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1_000)
    parser.add_argument("--mb", type=int, default=100)
    chosen = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as made:
        folder, cache = Path(made) / "documents", Path(made) / "cache"
        folder.mkdir()
        size = make(folder, chosen.files, chosen.mb * 1_000_000 // chosen.files)
        print(f"{chosen.files} files, {size / 1e6:.0f} MB\n")
        print("| | s | processor s | MB | MB of the parsing process | read | chunks | coverage |")
        print("|---|---|---|---|---|---|---|---|")
        show("first run", ingest(folder, cache))
        for number in range(3):
            show(f"unchanged {number + 1}", ingest(folder, cache))
        _change(folder)
        show("one changed, one deleted, one new", ingest(folder, cache))


def _change(folder: Path) -> None:
    words, (first, second, *_) = Words(21), sorted(folder.iterdir())
    first.write_bytes(first.read_bytes() + text(words, 1_000))
    second.unlink()
    (folder / "new.html").write_bytes(html(words, 100_000))


if __name__ == "__main__":
    main()
