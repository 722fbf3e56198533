"""How often does the rule that compares an answer with its ground truth agree with people?

    python benchmarks/correct_rule.py FILE [FILE ...] [--show]

Each line of a file is an object with ``question``, ``ground_truth``, ``answer`` and ``label``, "correct" or "wrong".
Intervals at 95 % are those of Clopper and Pearson. An answer that the rule cannot check counts for neither side.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rag_harness.core.types import Case, Query
from rag_harness.evaluation.measures.correctness import rightness
from rag_harness.stats.distributions import clopper_pearson

Line = dict[str, Any]


def called(line: Line) -> bool | None:
    """Return what the rule says of an answer; None where it cannot tell."""
    case = Case(Query(line.get("id", ""), line["question"]), ground_truth=line["ground_truth"])
    found = rightness(case, line["answer"], abstained=False)
    return None if found.value is None else found.right


def share(part: int, whole: int) -> str:
    """Return a share with its exact interval."""
    if not whole:
        return "none"
    low, high = clopper_pearson(part, whole)
    return f"{part} of {whole}  {part / whole:.1%} [{low:.1%}, {high:.1%}]"


def report(lines: Sequence[Line], show: bool = False) -> None:
    """Print agreement, false corrects and false wrongs."""
    found = [(line, line["label"] == "correct", called(line)) for line in lines]
    told = [(line, label, said) for line, label, said in found if said is not None]
    print(f"  decided         {share(len(told), len(found))}")
    print(f"  agree           {share(sum(label is said for _, label, said in told), len(told))}")
    wrong, right = ([each for each in told if each[1] is label] for label in (False, True))
    print(f"  false corrects  {share(sum(said for _, _, said in wrong), len(wrong))} that people call wrong")
    print(f"  false wrongs    {share(sum(not said for _, _, said in right), len(right))} that people call correct")
    for line, label, said in found if show else ():
        if said is not label:
            where = {None: "not checked", True: "false correct", False: "false wrong"}[said]
            print(f"    {where}: {line['question']} | {line['ground_truth']} | {line['answer']}")


def main() -> None:
    """Print the figures of each file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--show", action="store_true", help="print each answer on which rule and people differ")
    chosen = parser.parse_args()
    for file in chosen.files:
        print(file.name)
        report([json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()], chosen.show)


if __name__ == "__main__":
    main()
