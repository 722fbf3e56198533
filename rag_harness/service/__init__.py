"""One experiment behind HTTP: the experiment that was evaluated is deployed. Needs the extra ``service``.

``app`` wires ``routes/`` to ``corpus/`` (the documents), ``state/`` (SQLite), ``access/`` (who may do what) and
``observing/`` (traces, metrics, logs). Only commands call this room (``serve``, ``keys``, ``queries``), and it is the
only one that knows FastAPI. It imports nothing of the evaluation. Begin reading with ``app.py``.
"""
