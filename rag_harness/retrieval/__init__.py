"""Retrieval of chunks for a query: chunking, vector indexes, BM25, ranking.

``retrieval.py`` makes a ``Retrieval`` from an ``IndexSpec``. Each file of ``chunking/`` is a chunker, and each of
``indexes/`` the adapter of a technology. Every room above calls it. It never calls a
chat model and knows no gold. Begin reading with ``retrieval.py``.
"""
