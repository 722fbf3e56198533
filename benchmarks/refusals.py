"""How many refusals are found, and how many answers are taken for refusals?

    python benchmarks/refusals.py [FILE ...]

``refusals.jsonl`` has 2,035 answers of five second hands, which were read when the rules were written. Answers that ask
back or refer elsewhere and say no more are left out: they do not say that there is no answer.
``refusals_held_out.jsonl`` has 400 of a sixth hand, which nobody has read: its figures are those to expect. Intervals
at 95 % are those of Clopper and Pearson.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rag_harness.core.text.refusals import declines
from rag_harness.stats.distributions import clopper_pearson

HERE = Path(__file__).parent
SETS = (HERE / "refusals.jsonl", HERE / "refusals_held_out.jsonl")


def share(lines: Sequence[dict[str, Any]]) -> str:
    """Return how many answers are found to decline, with the exact interval of their share."""
    found = sum(declines(line["answer"]) for line in lines)
    low, high = clopper_pearson(found, len(lines))
    return f"{found:>4} of {len(lines):<4} {found / len(lines):6.1%} [{low:.1%}, {high:.1%}]"


def main() -> None:
    """Print a line a language."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, default=SETS)
    for file in parser.parse_args().files:
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        print(f"{file.name:28}{'refusals that are found':36}answers that are taken for refusals")
        for language in ("all", *dict.fromkeys(line["language"] for line in lines)):
            mine = [line for line in lines if language in ("all", line["language"])]
            refusing, answering = ([line for line in mine if line["declines"] is does] for does in (True, False))
            print(f"  {language:26}{share(refusing):36}{share(answering)}")


if __name__ == "__main__":
    main()
