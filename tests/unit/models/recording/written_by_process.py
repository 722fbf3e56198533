"""Run as a process: ``python -m tests.unit.models.recording.written_by_process FOLDER WRITER``."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from rag_harness.models.array_store import ArrayStore, key_of

if __name__ == "__main__":
    folder, writer = Path(sys.argv[1]), int(sys.argv[2])
    store = ArrayStore([], folder)
    for n in range(40):
        # Half of the keys are written by all of them.
        own, shared = (np.full((1, 3), value, np.float32) for value in (writer, n))
        store.put({key_of(f"own {writer} {n}"): own, key_of(f"shared {n}"): shared})
        if n % 5 == 0:
            store.flush()
    store.flush()
