"""What the plugin costs a suite that does not use it, and what collecting costs one that does.

    python benchmarks/plugin_overhead.py [RUNS]

Runs alternate with and without the plugin, so that a machine that slows down slows both; the median is what counts.
Beside the time that passed stands the processor's, which other work on the machine does not lengthen as much.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from side_by_side import Run, Took, alternate, median, run

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
    others = without if without is not None else [*args, "-p", "no:rag_harness"]
    took = alternate(
        {"ours": pytest_run(folder, args, byte_code), "theirs": pytest_run(other or folder, others, byte_code)}, runs
    )
    wall, base = median(took["ours"]), median(took["theirs"])
    cpu, base_cpu = (statistics.median(each.cpu for each in took[name]) for name in ("ours", "theirs"))
    print(
        f"{title}: {wall:.3f} s, without {base:.3f} s, difference {(wall - base) * 1000:+.0f} ms, "
        f"of the processor {(cpu - base_cpu) * 1000:+.0f} ms ({runs} runs)"
    )


def pytest_run(folder: Path, args: list[str], byte_code: bool) -> Run:
    """Return a run of pytest in ``folder``; without byte code, one that finds none of ours and leaves none."""

    def once() -> Took:
        if not byte_code:
            for cache in Path(rag_harness.__file__).parent.rglob("__pycache__"):
                shutil.rmtree(cache)
        environment = {} if byte_code else {"PYTHONDONTWRITEBYTECODE": "1"}
        return run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *args], folder, environment)

    return once


if __name__ == "__main__":
    main()
