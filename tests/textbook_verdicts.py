"""Are the verdicts of a run on the textbook those of its page? ``python -m tests.textbook_verdicts SUMMARY PAGE``.

Standard library only: it runs in an installation of the core.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

TIMES = re.compile(r"_ms")
"""Gates on times: the recorded ones stay, but retrieval is timed anew."""


def wrong(summary: Path, page: Path) -> Iterator[str]:
    """Yield what the page does not tell as the run has it."""
    found = json.loads(summary.read_bytes())["gates"]
    gates = [gate for gate in found if gate["gate"].startswith("t") and gate["state"] != "not judged"]
    rows = [line.split("|")[1:-1] for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    told = [" ".join(row) for row in rows if len(row) == 4]
    for gate in gates:
        value, state = f"{gate['value']:.2f}", gate["state"]
        if not TIMES.search(gate["gate"]) and not any(value in row and state in row for row in told):
            yield f"{gate['gate']} is {state} at {value}: no row of the page says so"
    states = Counter(gate["state"] for gate in gates if not TIMES.search(gate["gate"]))
    if states != {"passed": 4, "failed": 3, "undecided": 8}:
        yield f"{dict(states)}: the page tells of other numbers"


if __name__ == "__main__":
    found = list(wrong(Path(sys.argv[1]), Path(sys.argv[2])))
    print("\n".join(found) or "the verdicts are those of the page")
    sys.exit(bool(found))
