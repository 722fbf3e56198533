"""How many English texts are taken for another language: it should be none.

    python benchmarks/languages.py data/*/*.jsonl ../shared/data/ragtruth_dev/*.jsonl

Each string of each line of JSON is a text. Texts that are called foreign are printed, because some may really be.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from rag_harness.words.language import foreign


def texts(value: Any) -> Iterator[str]:
    """Yield the strings in what JSON holds."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for below in value.values() if isinstance(value, dict) else value:
            yield from texts(below)


def main() -> None:
    for file in map(Path, sys.argv[1:]):
        found = [text for line in file.read_text(encoding="utf-8").splitlines() for text in texts(json.loads(line))]
        called = [(language, text) for text in found if (language := foreign(text))]
        print(f"{file.parent.name}/{file.name}: {len(called)} of {len(found)} texts called foreign")
        for language, text in called:
            print(f"    {language}: {text[:100]!r}")


if __name__ == "__main__":
    main()
