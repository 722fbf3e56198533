"""What the plugin costs a suite that does not use it, and what collecting costs one that does.

    python benchmarks/plugin_overhead.py [RUNS]

Runs alternate with and without the plugin, so that a machine that slows down slows both; the median is what counts.
Beside the time that passed stands the processor's, which other work on the machine does not lengthen as much.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import rag_harness

# Other people's plugins that happen to be installed import what ours would have to.
ALONE = [part for name in ("anyio", "hypothesispytest", "syrupy") for part in ("-p", f"no:{name}")]


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    with tempfile.TemporaryDirectory() as folder:
        unused = Path(folder) / "unused"
        unused.mkdir()
        (unused / "test_one.py").write_text("def test_one(): pass\n")
        without = [*ALONE, "-p", "no:rag_harness"]
        compare("one test, plugin unused, byte code there", unused, ALONE, without, runs)
        compare("one test, plugin unused, no byte code of ours", unused, ALONE, without, runs, byte_code=False)
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
    title: str,
    folder: Path,
    args: list[str],
    without: list[str] | None,
    runs: int,
    other: Path | None = None,
    byte_code: bool = True,
) -> None:
    """Time pytest in ``folder`` against the same with other arguments, or against another folder."""
    ours, theirs = [], []
    others = without if without is not None else [*args, "-p", "no:rag_harness"]
    for _ in range(runs + 1):
        ours.append(took(folder, args, byte_code))
        theirs.append(took(other or folder, others, byte_code))
    (wall, cpu), (base, base_cpu) = median(ours[1:]), median(theirs[1:])
    print(
        f"{title}: {wall:.3f} s, without {base:.3f} s, difference {(wall - base) * 1000:+.0f} ms, "
        f"of the processor {(cpu - base_cpu) * 1000:+.0f} ms ({runs} runs)"
    )


def median(times: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the median of each of the two."""
    return statistics.median(wall for wall, _ in times), statistics.median(cpu for _, cpu in times)


def took(folder: Path, args: list[str], byte_code: bool) -> tuple[float, float]:
    """Return the seconds that passed, and those of the processor."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    if not byte_code:
        env["PYTHONDONTWRITEBYTECODE"] = "1"
        for cache in Path(rag_harness.__file__).parent.rglob("__pycache__"):
            shutil.rmtree(cache)
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *args]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, env=env)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
