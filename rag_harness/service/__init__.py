"""One experiment behind HTTP: what was evaluated is what is deployed. Needs the extra ``service``.

``app`` wires ``routes/`` to ``corpus/`` (documents that come and go), ``state/`` (SQLite), ``access/`` (who may do
what) and ``observing/`` (traces, metrics, logs). Only ``rag-harness serve`` calls this room, and it is the only one
that knows FastAPI. It imports nothing of the evaluation. Begin reading with ``app.py``.
"""
