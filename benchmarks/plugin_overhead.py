"""What the plugin costs a suite that does not use it, and what collecting costs one that does.

    python benchmarks/plugin_overhead.py [RUNS]

Runs alternate with and without the plugin, so that a machine that slows down slows both; the median is what counts.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    with tempfile.TemporaryDirectory() as folder:
        unused = Path(folder) / "unused"
        unused.mkdir()
        (unused / "test_one.py").write_text("def test_one(): pass\n")
        compare("one test, plugin unused", unused, [], ["-p", "no:rag_harness"], runs)
        used = Path(folder) / "used"
        used.mkdir()
        write_suite(used)
        plain = Path(folder) / "plain"
        plain.mkdir()
        (plain / "test_all.py").write_text(
            "import pytest\n@pytest.mark.parametrize('n', range(800))\ndef test_one(n): pass\n"
        )
        compare("--collect-only, 200 queries x 4 experiments", used, ["--collect-only", "-q"], None, runs, plain)


def write_suite(folder: Path) -> None:
    (folder / "kb").mkdir()
    (folder / "kb" / "a.md").write_text("# A\n\nText.\n")
    lines = [json.dumps({"query_id": f"q_{n:03}", "query": f"question {n}"}) for n in range(200)]
    (folder / "kb" / "queries.jsonl").write_text("\n".join(lines))
    (folder / "pytest.ini").write_text("[pytest]\nrag_kb_dir = kb\nrag_profile = mock\n")
    marks = "".join(f"@pytest.mark.e{n}\n" for n in range(1, 5))
    (folder / "test_all.py").write_text(f"import pytest\n{marks}def test_one(rag_result): pass\n")


def compare(
    title: str, folder: Path, args: list[str], without: list[str] | None, runs: int, other: Path | None = None
) -> None:
    """Time pytest in ``folder`` against the same with other arguments, or against another folder."""
    ours, theirs = [], []
    for _ in range(runs + 1):
        ours.append(seconds(folder, args))
        theirs.append(seconds(other or folder, without if without is not None else [*args, "-p", "no:rag_harness"]))
    median, base = statistics.median(ours[1:]), statistics.median(theirs[1:])
    print(f"{title}: {median:.3f} s, without {base:.3f} s, difference {(median - base) * 1000:+.0f} ms ({runs} runs)")


def seconds(folder: Path, args: list[str]) -> float:
    started = time.perf_counter()
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *args]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
