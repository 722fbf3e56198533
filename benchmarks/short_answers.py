"""Does the embedded judge know right from wrong in short answers, in numbers in words, and in other languages?

    python benchmarks/short_answers.py benchmarks/short_answers/*.jsonl [--show]

Each line has a question, its contexts, an answer and what it is: ``faithful`` or ``unfaithful``. The README in that
folder says who wrote the cases, and which were looked at. Everything is asked through the judge's face, as ``judge
score`` asks: called faithful is a score that is not ``hallucinated``, flagged one that is, scored any. Intervals are
exact (Clopper and Pearson), 95 %.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from side_by_side import show

from rag_harness.core.settings.loading import load_settings
from rag_harness.core.text.refusals import declines
from rag_harness.evaluation.judges.embedded.judge import create
from rag_harness.evaluation.judges.factory import judged
from rag_harness.evaluation.measures import Score
from rag_harness.evaluation.measures.judged import Faithfulness
from rag_harness.evaluation.measures.opinion import Judge, Material
from rag_harness.pipelines.parts import RunParts
from rag_harness.stats.distributions import clopper_pearson

MEASURE = Faithfulness()


@dataclass(frozen=True)
class Judged:
    """A case with its score."""

    case: Mapping[str, Any]
    score: Score

    @property
    def is_right(self) -> bool:
        return bool(self.case["label"] == "faithful")

    @property
    def is_scored(self) -> bool:
        return self.score.value is not None

    @property
    def is_flagged(self) -> bool:
        return bool(self.score.detail.get("hallucinated"))


async def of_file(file: Path, judge: Judge) -> list[Judged]:
    """Return the cases of a file with their scores."""
    cases = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    scores = [await judged(material_of(case), [MEASURE], judge) for case in cases]
    return [Judged(case, said[MEASURE.name]) for case, said in zip(cases, scores, strict=True)]


def material_of(case: Mapping[str, Any]) -> Material:
    answer = case["answer"]
    return Material(case["question"], answer, tuple(case["contexts"]), abstained=declines(answer, ()))


def row(name: str, found: Sequence[Judged]) -> list[str]:
    """Return the row of some cases."""
    right, wrong = [each for each in found if each.is_right], [each for each in found if not each.is_right]
    return [
        name,
        share(sum(each.is_scored and not each.is_flagged for each in wrong), len(wrong)),
        share(sum(each.is_flagged for each in right), len(right)),
        share(sum(each.is_scored for each in right), len(right)),
    ]


def share(count: int, of: int) -> str:
    if not of:
        return "-"
    low, high = clopper_pearson(count, of)
    return f"{count}/{of} = {100 * count / of:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"


def is_shown(each: Judged) -> bool:
    """Return whether a case was judged wrongly, or was right and not judged."""
    return each.is_flagged or not each.is_scored if each.is_right else each.is_scored and not each.is_flagged


def explained(each: Judged) -> str:
    case, score = each.case, each.score
    reasons = [str(claim.get("reason", "")) for claim in score.detail.get("claims", ())]
    said = "-" if score.value is None else f"{score.value:.2f}"
    return f"{case['label'][:5]} {said} {case['question']} -> {case['answer']!r} | {score.reason or '; '.join(reasons)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", type=Path, nargs="+", help="cases, a JSON line each")
    parser.add_argument("--show", action="store_true", help="print each case that was judged wrongly, or not at all")
    options = parser.parse_args()
    rows = []
    with TemporaryDirectory() as cache:
        parts = RunParts(load_settings({"mode": "auto", "cache_dir": cache}, rootdir=Path(cache)))
        judge = create(parts)
        for file in options.files:
            found = asyncio.run(of_file(file, judge))
            rows.append(row(file.stem, found))
            kinds = list(dict.fromkeys(str(each.case.get("sub", "")) for each in found))
            rows += [
                row(f"  {kind}", [each for each in found if each.case.get("sub") == kind]) for kind in kinds if kind
            ]
            if options.show:
                print(*map(explained, filter(is_shown, found)), sep="\n")
    show("embedded judge", ["cases", "false, called faithful", "right, flagged", "right, scored"], rows)


if __name__ == "__main__":
    main()
