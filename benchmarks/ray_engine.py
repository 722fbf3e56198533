"""5,000 trials against a server of 200 ms: two Ray nodes with 128 in flight each, beside the local engine with 256.

    python benchmarks/ray_engine.py [--trials N] [--repetitions N] [--rpm N]

Needs the extra ``ray``. Both nodes, the server and the tests share this machine, so the local engine has the better
part of it. ``--rpm`` caps calls a minute; the server says how many came in its busiest minute.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from engine_suites import write_harness
from mock_server import MockServer, running
from side_by_side import TIMES, Run, Took, alternate, ratio, run, show, times

DELAY, NODES, EACH = 0.2, 2, 128
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]


class Field:
    """One suite, one server, and what the server counted in the last run of each engine."""

    def __init__(self, folder: Path, server: MockServer, asked: argparse.Namespace) -> None:
        self.folder, self.server, self.rpm = folder, server, asked.rpm
        self.seen: dict[str, dict[str, float]] = {}
        write_harness(folder, server.url, asked.trials)

    def take(self, name: str, *options: str) -> Took:
        """Run all trials, and keep what the server saw of it."""
        self.server.reset()
        limits = [f"--rag-concurrency={NODES * EACH}", f"--rag-rpm={self.rpm}"]
        took = run([*PYTEST, "--rag-mode=live", "--rag-overwrite", *limits, *options], self.folder)
        self.seen[name] = self.server.stats()
        return took


def _cluster() -> Any:
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    for _ in range(NODES - 1):
        cluster.add_node(num_cpus=1)
    return cluster


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=5000)
    parser.add_argument("--repetitions", type=int, default=2)
    parser.add_argument("--rpm", type=int, default=0)
    asked = parser.parse_args()
    cluster = _cluster()
    with tempfile.TemporaryDirectory() as folder, running(DELAY) as server:
        field = Field(Path(folder), server, asked)
        on_ray = ("--rag-engine=ray", f"--rag-ray-address={cluster.address}")
        runs: dict[str, Run] = {"local": partial(field.take, "local"), "ray": partial(field.take, "ray", *on_ray)}
        took = alternate(runs, asked.repetitions)
        rows = [[name, *times(each), *map(str, field.seen[name].values())] for name, each in took.items()]
        show(f"{asked.trials} trials, {NODES} × {EACH} in flight", ["engine", *TIMES, *field.seen["ray"]], rows)
    cluster.shutdown()
    print(
        f"ray / local {ratio(took['ray'], took['local']):.2f}; the limit: {asked.trials * DELAY / NODES / EACH:.1f} s"
    )


if __name__ == "__main__":
    main()
