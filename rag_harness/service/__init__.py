"""One experiment behind HTTP: the experiment that was evaluated is deployed. Needs the extra ``service``.

``server`` connects ``routes`` to ``corpus`` (the documents), ``database`` (SQLite), ``authentication`` and ``keys``
(who may do what), and ``observations`` (traces, metrics, logs). Only commands call it, and only it imports FastAPI.
It imports nothing of the evaluation. Begin reading with ``server.py`` and ``questions.py``.
"""
