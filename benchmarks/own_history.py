"""Conversations with own history on calls that take 200 ms: 100 conversations of 5 turns, 64 in flight, and the limit.

    python benchmarks/own_history.py [--repetitions 5]

Needs the core install, in an environment of its own. A turn is asked when the answer before it is on the disk, so five
calls of a conversation are one after the other. The limit is what calls need if 64 are in flight all the time: 500
times 200 ms over 64. ``alone`` is the same questions without conversations, each by itself; ``start`` is one question:
what pytest, the plugin and the end of a run take. All run in turn against one server on 127.0.0.1, which counts.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from engine_suites import write_harness
from mock_server import MockServer, running
from side_by_side import Run, Took, alternate, median, run

DELAY, IN_FLIGHT = 0.2, 64
CONVERSATIONS, TURNS = 100, 5
LIMIT = CONVERSATIONS * TURNS * DELAY / IN_FLIGHT
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rag-mode=live", "--rag-overwrite"]


def suite(folder: Path, server: MockServer, lines: Sequence[Mapping[str, object]]) -> Path:
    """Write a suite that asks these questions."""
    write_harness(folder, server.url, 0)
    (folder / "kb" / "queries.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    return folder


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=5)
    repetitions = parser.parse_args().repetitions
    questions = [[f"question {TURNS * n + turn}" for turn in range(TURNS)] for n in range(CONVERSATIONS)]
    talks = [{"conversation": f"c{n}", "turns": [{"query": q} for q in asked]} for n, asked in enumerate(questions)]
    single = [{"query_id": f"q{n}", "query": q} for n, q in enumerate(q for asked in questions for q in asked)]
    with tempfile.TemporaryDirectory() as place, running(DELAY) as server:
        folder, counted = Path(place), {}
        lines: dict[str, Sequence[Mapping[str, object]]]
        lines = {"own history": talks, "alone": single, "start": single[:1]}
        suites = {name: suite(folder / name.replace(" ", "-"), server, each) for name, each in lines.items()}

        def asked(name: str, *more: str) -> Run:
            def once() -> Took:
                server.reset()
                took = run([*PYTEST, f"--rag-concurrency={IN_FLIGHT}", *more], suites[name])
                counted[name] = server.stats()
                return took

            return once

        own = asked("own history", "--rag-history=own")
        took = alternate({"own history": own, "alone": asked("alone"), "start": asked("start")}, repetitions)
        start = median(took["start"]) - DELAY
        for name, each in took.items():
            seconds, seen = median(each), counted[name]
            share = (seconds - start) / LIMIT
            print(
                f"{name:<12} {seconds:5.2f} s, without start {seconds - start:5.2f} s = {share:4.2f} x the limit of "
                f"{LIMIT:.2f} s; {seen['calls']:.0f} calls, at most {seen['most']:.0f} in flight"
            )


if __name__ == "__main__":
    main()
