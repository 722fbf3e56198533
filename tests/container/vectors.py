"""Stands where Qdrant's container would: a network of its own, and the stub of a cluster at Qdrant's port in it."""

from __future__ import annotations

import subprocess
import sys

from tests.unit.retrieval.indexes.server.stub import cluster_stub

if __name__ == "__main__":
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with cluster_stub(port=6333):
        print("ready", flush=True)
        # Until who started it closes the pipe, or is no more.
        sys.stdin.read()
