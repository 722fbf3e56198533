"""Data of experiments, from files: documents, questions, golden sets, conversations and public collections.

``datasets`` reads each of them once for a run. Pipelines, engine, authoring and commands call it. It writes none of
these files, and knows no row. Begin reading with ``documents.py`` and ``queries.py``.
"""
