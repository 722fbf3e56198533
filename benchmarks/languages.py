"""How often the language of a short text is found, and how many English texts are taken for another language.

    python benchmarks/languages.py data/*/*.jsonl ../shared/data/ragtruth_dev/*.jsonl

The answers of ``refusals.jsonl`` and ``refusals_held_out.jsonl`` name their language; nobody chose them for this. Each
string of the files that are named is an English text; what is called foreign is printed, because it may really be.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from rag_harness.core.text.language_detection import asked_language, foreign, told

HERE = Path(__file__).parent
SHORTEST = 12
"""Fewer characters are a key or a code."""


def texts(value: Any) -> Iterator[str]:
    """Yield the strings in what JSON holds."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for below in value.values() if isinstance(value, dict) else value:
            yield from texts(below)


def show_answers() -> None:
    """Print how many answers of each language are told, told wrong, and right where a question must have one."""
    count: Counter[tuple[str, str]] = Counter()
    for file in ("refusals.jsonl", "refusals_held_out.jsonl"):
        for line in (HERE / file).read_text(encoding="utf-8").splitlines():
            answer = json.loads(line)
            language, found = answer["language"], told(answer["answer"])
            count[language, "all"] += 1
            count[language, "told"] += found == language
            count[language, "wrong"] += found not in ("", language)
            count[language, "asked"] += asked_language(answer["answer"]) == language
    for language in sorted({language for language, _ in count}):
        said = ", ".join(f"{name} {count[language, name]}" for name in ("told", "wrong", "asked"))
        print(f"{language}: {said} of {count[language, 'all']}")


def main() -> None:
    show_answers()
    for file in map(Path, sys.argv[1:]):
        lines = file.read_text(encoding="utf-8").splitlines()
        found = {text for line in lines for text in texts(json.loads(line)) if len(text) > SHORTEST}
        called = [(language, text) for text in found if (language := foreign(text))]
        print(f"{file.parent.name}/{file.name}: {len(called)} of {len(found)} texts called foreign")
        for language, text in called:
            print(f"    {language}: {text[:100]!r}")


if __name__ == "__main__":
    main()
