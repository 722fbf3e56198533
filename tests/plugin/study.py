"""The shipped study, replayed in a Python without what a replay must not need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORKERS = ("--tx=2*popen", "--dist=load")
"""Two workers, whatever the run would choose: a replay with ``-n 2`` may start none."""
BLOCKED = ["sentence_transformers", "tiktoken", "tokenizers", "torch", "transformers"]
BLOCKER = f"""
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {BLOCKED!r}:
            raise ImportError(f"{{name}} is not there", name=name)

sys.meta_path.insert(0, Blocked())
"""


def replay(folder: Path, *args: str, python: str = "") -> subprocess.CompletedProcess[str]:
    """Replay with results in ``folder``/out; Python has to start anew for it, or nothing is blocked.

    It has as many threads as for anybody: no digit may depend on them. ``python`` is another Python: the one that has
    started (``warm_python.py``) has one thread, blocks nothing, and takes three seconds less.
    """
    (folder / "sitecustomize.py").write_text(BLOCKER)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("RAG_", "OPEN", "OMP_"))}
    # As in conftest.py: our own tests alone need these plugins.
    kept |= {"RAG_SECTIONS": "all", "PYTEST_ADDOPTS": "-p no:hypothesispytest -p no:syrupy"}
    places = [f"--rag-output={folder / 'out'}", f"--rag-logs={folder}", f"--rag-cache-dir={folder / 'none'}"]
    command = [python or sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rag-mode=replay"]
    return subprocess.run(
        [*command, *places, *args],
        cwd=ROOT,
        env={**kept, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
