"""Does the embedded judge see one changed thing in a claim? By kind of change, and on claims that are true.

    python benchmarks/changed_claims.py benchmarks/changed_claims/dev.jsonl --cache /tmp/changed [--show]

Each line is a claim with the passages of its context: a sentence with one thing changed, or none; README.md in that
folder says who wrote them, and how. Flagged is a verdict of 0.5 or less; ``models alone`` is without the rules of
``evaluation/judges/embedded/unsupported_details.py``. The bounds hold with 95 % each.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[1]))

from side_by_side import show

from rag_harness.core.settings.loading import load_settings
from rag_harness.evaluation.judges.embedded.judge import create
from rag_harness.evaluation.judges.embedded.judgement import ALLOWED
from rag_harness.evaluation.measures.opinion import Material, Verdicts
from rag_harness.pipelines.parts import RunParts
from rag_harness.stats.distributions import share_bounds

FALSE = ("new_number", "swapped_number", "foreign_name", "negation", "swapped_name", "crossed")
TRUE = ("copied", "paraphrase", "reformatted", "negated_true")
RULES = "rag_harness.evaluation.judges.embedded.judgement.absent"


@dataclass(frozen=True)
class Judged:
    """A claim with the verdict of the models alone, that of the judge, and its score."""

    kind: str
    claim: str
    alone: float
    value: float
    score: float
    reason: str


async def judged(file: Path, cache: Path) -> list[Judged]:
    """Return the claims of a file with their verdicts."""
    cases = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    with_rules = await verdicts(cases, cache / "rules")
    with patch(RULES, lambda text, *_: [""] * len(text.sentences)):
        alone = await verdicts(cases, cache / "alone")
    return [row(case, *said) for case, *said in zip(cases, alone, with_rules, strict=True)]


async def verdicts(cases: Sequence[dict[str, str]], cache: Path) -> list[Verdicts]:
    cache.mkdir(parents=True, exist_ok=True)
    parts = RunParts(load_settings({"mode": "auto", "cache_dir": str(cache)}, rootdir=cache))
    judge = create(parts)
    materials = [Material("", case["claim"], tuple(case["context"])) for case in cases]
    found = [await judge.opinion(material, ()).supported("answer", "contexts") for material in materials]
    parts.flush()
    return found


def row(case: dict[str, str], alone: Verdicts, said: Verdicts) -> Judged:
    worst = min(said.each, key=lambda verdict: verdict.value or 0.0)
    before = min(verdict.value or 0.0 for verdict in alone.each)
    return Judged(case["kind"], case["claim"], before, worst.value or 0.0, said.share or 0.0, worst.reason)


def line(kind: str, found: Sequence[Judged]) -> list[str]:
    """Return the row of some claims."""
    flagged = sum(each.value <= ALLOWED for each in found)
    low, high = share_bounds(flagged, len(found))
    newly = sum(each.value <= ALLOWED < each.alone for each in found)
    alone = sum(each.alone <= ALLOWED for each in found)
    return [
        kind,
        str(len(found)),
        f"{alone / len(found):.0%}",
        f"{flagged / len(found):.0%}",
        f"{low:.0%} to {high:.0%}",
        f"{newly / len(found):.1%}",
        f"{fmean(each.score for each in found):.2f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="claims, a line of JSON each")
    parser.add_argument("--cache", type=Path, required=True, help="keeps judgements between runs")
    parser.add_argument("--show", action="store_true", help="print each claim with its verdict")
    options = parser.parse_args()
    found = asyncio.run(judged(options.file, options.cache))
    groups = [(kind, [each for each in found if each.kind == kind]) for kind in (*FALSE, *TRUE)]
    groups += [("all true", [each for each in found if each.kind in TRUE])]
    header = ["kind", "n", "models alone", "flagged", "at least, at most", "newly flagged", "mean faithfulness"]
    show(options.file.name, header, [line(*group) for group in groups])
    if options.show:
        for each in found:
            print(f"{each.kind:15} {each.alone:.2f} {each.value:.2f} {each.claim}  {each.reason}")


if __name__ == "__main__":
    main()
