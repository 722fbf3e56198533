"""The rooms whose code is mutated, the tests that must notice, and how many mutants are drawn."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]


class Room(NamedTuple):
    """Part of the package, and the tests that are to kill its mutants.

    Attributes:
        code: what the paths of its files begin with.
        starts_suites: its tests run pytest in processes of their own, so each mutant is written into its file.
    """

    code: tuple[str, ...]
    tests: tuple[str, ...]
    sampled: int
    held_out: int
    starts_suites: bool = False

    def files(self) -> list[str]:
        return [str(path.relative_to(ROOT)) for pattern in self.tests for path in sorted(ROOT.glob(pattern))]


ROOMS = {
    "gates": Room(
        ("rag_harness/runs/gates/",),
        (
            "tests/unit/runs/gates/test_*.py",
            "tests/unit/tables/test_conversations.py",
            "tests/unit/tables/test_noise.py",
        ),
        60,
        9,
    ),
    "stats": Room(
        ("rag_harness/stats/",),
        ("tests/unit/stats/**/test_*.py", "tests/unit/runs/gates/test_early_stopping.py"),
        60,
        9,
    ),
    "measures": Room(("rag_harness/evaluation/measures/",), ("tests/unit/evaluation/measures/**/test_*.py",), 60, 9),
    "calibration": Room(
        ("rag_harness/evaluation/judges/calibration/",),
        ("tests/unit/evaluation/judges/calibration/**/test_*.py",),
        60,
        9,
    ),
    "attribution": Room(("rag_harness/diagnosis/",), ("tests/unit/diagnosis/**/test_*.py",), 60, 15),
    "scrubbing": Room(
        ("rag_harness/models/recording/scrubbing.py",), ("tests/unit/models/recording/**/test_*.py",), 30, 4
    ),
    "plugin": Room(("rag_harness/frontends/pytest_plugin/",), ("tests/plugin/test_*.py",), 40, 0, starts_suites=True),
    "resume": Room(
        ("rag_harness/runs/journal.py", "rag_harness/runs/journal.py", "rag_harness/runs/fingerprint.py"),
        ("tests/unit/runs/test_*.py", "tests/plugin/test_*.py"),
        20,
        0,
        starts_suites=True,
    ),
}
