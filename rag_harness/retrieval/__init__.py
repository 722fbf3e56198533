"""Retrieval of chunks for a query: chunking, vector indexes, BM25, ranking.

``builder`` makes a ``Retrieval`` from an ``IndexSpec``, ``retrievers`` search it. Pipelines, studies, engine and
service call it. It never calls a chat model and knows no gold. Begin reading with ``builder.py``.
"""
