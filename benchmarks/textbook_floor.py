"""Set the floor of the textbook assistant for an embedding model, on the development half of the questions.

    python benchmarks/textbook_floor.py
    python benchmarks/textbook_floor.py --book FOLDER --queries FILE [FILE ...] --profile NAME

A hash of a question's text halves the questions; the other half is never looked up here. The rule: the highest floor,
in steps of 0.01, at which at most 5 % of the answerable questions find nothing, which is what a best cosine below the
floor means. The higher the floor, the more questions from outside the book lie below it. The result is the constant in
``rag_harness/studies/textbook_retrieval.py``; the index is that of ``t1``.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from rag_harness.core.settings.loading import load_settings
from rag_harness.core.types import Case
from rag_harness.data.queries import read_queries
from rag_harness.pipelines.parts import RunParts
from rag_harness.studies.textbook import Design
from rag_harness.studies.textbook_retrieval import CALIBRATED, RECORD

ROOT = Path(__file__).parents[1]
MOST_WITHOUT_RESULT = 0.05
STEPS = 100


def is_development(case: Case) -> bool:
    """Whether a question is of the half that a floor may be chosen on."""
    return hashlib.blake2b(case.query.text.encode()).digest()[0] % 2 == 0


def share_below(cosines: Sequence[float], floor: float) -> float:
    """Return the share of questions whose best cosine is below ``floor``; 0 of none."""
    return sum(cosine < floor for cosine in cosines) / len(cosines) if cosines else 0.0


def best_floor(answerable: Sequence[float]) -> float:
    """Return the highest step at which at most 5 % of the answerable questions find nothing."""
    steps = [step / STEPS for step in range(STEPS + 1)]
    return max(floor for floor in steps if floor == 0 or share_below(answerable, floor) <= MOST_WITHOUT_RESULT)


def best_cosines(parts: RunParts, cases: Sequence[Case]) -> list[float]:
    retrieval = parts.retrieval(Design().spec(parts))
    found = [retrieval.dense.retrieve(case.query.text, 1) for case in cases]
    parts.flush()
    return [hits[0].score if hits else 0.0 for hits in found]


def main() -> None:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--book", type=Path, default=ROOT / "data/textbook")
    arguments.add_argument("--queries", type=Path, nargs="+", default=[])
    arguments.add_argument("--profile", default="embedded")
    asked = arguments.parse_args()
    files = asked.queries or [asked.book / "queries.jsonl"]
    if missing := [str(file) for file in files if not file.is_file()]:
        sys.exit(f"There is no {', '.join(missing)}. Name the questions with --queries, their book with --book.")
    report(asked.book.absolute(), files, asked.profile)


def report(book: Path, files: Sequence[Path], profile: str) -> None:
    parts = RunParts(load_settings({"profile": profile, "kb_dir": str(book)}, rootdir=ROOT))
    cases = [case for file in files for case in read_queries(file, book) if is_development(case)]
    inside = best_cosines(parts, [case for case in cases if case.answerable])
    outside = best_cosines(parts, [case for case in cases if not case.answerable])
    floor, model = best_floor(inside), parts.retrieval(Design().spec(parts)).embedder.model
    print(f"{len(inside)} answerable questions of the development half, {len(outside)} from outside the book")
    print("floor   find nothing   outside below")
    for shown in sorted({floor - 0.05, floor, floor + 0.05, RECORD}):
        print(f"{shown:5.2f}   {share_below(inside, shown):12.1%}   {share_below(outside, shown):13.1%}")
    print(f"{model}: {floor:.2f}; floors.py has {CALIBRATED.get(model, 'none')}")


if __name__ == "__main__":
    main()
