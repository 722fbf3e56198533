"""Time `rag-harness kb validate`: the shipped pages with 280 questions, and 10,000 copies of them with new names.

    python benchmarks/validation.py [COPIES]

Two kinds of copies: as they are (near-duplicates collapse at once) and with words of their own (they do not).
In proportion means: the ratio of the times is the ratio of the pages.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from rag_harness.authoring.kb.checks import ValidationReport
from rag_harness.authoring.kb.validation import validate

SHIPPED = Path(__file__).parents[1] / "data" / "kb"
QUESTIONS = 280
_LINK = re.compile(r"\]\(([^)#:\s]+\.md)")
_WORD = re.compile(r"\b[a-z]{4,}\b(?![^(]*\))(?![^\n]*\|)")


def copies(target: Path, times: int, *, own_words: bool) -> int:
    """Write every shipped page ``times`` times, links and plan included; return the number of pages."""
    plan = json.loads((SHIPPED / "structure.json").read_text(encoding="utf-8"))
    pages = []
    for copy in range(times):
        for page in plan["pages"]:
            text = (SHIPPED / page["filename"]).read_text(encoding="utf-8")
            (target / f"n{copy}-{page['filename']}").write_text(_copied(text, copy, own_words), encoding="utf-8")
            pages.append({"id": f"n{copy}-{page['id']}", "filename": f"n{copy}-{page['filename']}"})
    (target / "structure.json").write_text(json.dumps({"pages": pages}, indent=1), encoding="utf-8")
    return len(pages)


def _copied(text: str, copy: int, own_words: bool) -> str:
    linked = _LINK.sub(rf"](n{copy}-\1", text)
    # Only bodies: a changed heading would be a changed anchor.
    lines = [
        line if line.startswith("#") or not own_words else _WORD.sub(rf"\g<0>{copy}", line)
        for line in linked.split("\n")
    ]
    return "\n".join(lines)


def questions(folder: Path, file: Path) -> None:
    """Write 280 direct queries, each with a sentence of a page as its quote."""
    pages = sorted(folder.glob("*.md"))
    lines = []
    for number in range(QUESTIONS):
        page = pages[number % len(pages)]
        quote = max(page.read_text(encoding="utf-8").split("\n"), key=len).strip()
        evidence = [{"filename": page.name, "quote": quote}]
        lines.append({"query_id": f"q{number}", "query": f"question {number}", "evidence": evidence})
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def timed(folder: Path, queries: Path) -> tuple[float, ValidationReport]:
    start = perf_counter()
    report = validate(folder, queries)
    return perf_counter() - start, report


def measure(times: int, *, own_words: bool) -> tuple[int, float]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "kb"
        folder.mkdir()
        pages = copies(folder, times, own_words=own_words)
        queries = Path(name) / "queries.jsonl"
        questions(folder, queries)
        seconds, report = timed(folder, queries)
        failed = [check.name for check in report.checks if check.state == "failed"]
        words = "own words" if own_words else "same words"
        print(f"{pages:>7} pages, {words}: {seconds:6.2f} s  failed: {failed or 'none'}")
        return pages, seconds


def main(copies_asked: int) -> None:
    os.environ["RAG_MERMAID_MODULES"] = os.devnull
    measure(1, own_words=False)  # pays for the imports, so that the ratio is that of the work
    for own_words in (False, True):
        small, large = measure(1, own_words=own_words), measure(copies_asked, own_words=own_words)
        print(f"        pages x {large[0] / small[0]:.0f}, time x {large[1] / small[1]:.0f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
