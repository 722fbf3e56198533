"""What expectations cost: E3 replayed with five expectations a question, beside E3 replayed without any.

    python benchmarks/expectations.py [--repetitions 7]

The questions are those of the retail study, in a file of their own. Both runs look at the same 200 recorded answers.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from functools import partial
from pathlib import Path

from side_by_side import TIMES, alternate, median, run, show, times

ROOT = Path(__file__).resolve().parents[1]
FIVE = [
    {"contains": "within 45 days"},
    {"not": {"regex": r"\brefunds?\b in full"}},
    {"cites": "returns*.md"},
    {"number": 45, "unit": "days"},
    {"max_words": 120, "weight": 2},
]


def main() -> None:
    """Time both and print what five expectations a question add."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repetitions", type=int, default=7)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = [json.loads(line) for line in (ROOT / "data" / "kb" / "queries.jsonl").read_text().splitlines()]
        asked = {"none": [], "five": FIVE}
        runs = {}
        for which, expect in asked.items():
            file = folder / f"{which}.jsonl"
            file.write_text("".join(json.dumps({**line, "expect": expect}) + "\n" for line in lines))
            command = [sys.executable, "-m", "pytest", "-q", "-m", "e3", "--rag-mode=replay", "-p", "no:cacheprovider"]
            # Most answers break these five on purpose. To explain each of them is another piece of work.
            command += ["-o", "rag_attribute=false"]
            command += [f"--rag-queries={file}", f"--rag-output={folder / which}", "--rag-overwrite"]
            runs[which] = partial(run, command, ROOT)
        took = alternate(runs, chosen.repetitions)
    show(
        "200 answers of E3, replayed", ["expectations", *TIMES], [[which, *times(each)] for which, each in took.items()]
    )
    print(f"five expectations a question add {median(took['five']) - median(took['none']):+.2f} s")


if __name__ == "__main__":
    main()
