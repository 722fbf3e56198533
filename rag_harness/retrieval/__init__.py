"""Chunks, vectors, index and words: from a query to ranked hits.

``retrieval.py`` makes a ``Retrieval`` of an ``IndexSpec``; ``chunking/`` has one chunker a file, ``indexes/`` one
adapter a technology, ``bulk/`` ingests more documents than a process can hold. Pipelines, service and commands call
this room. It never asks a chat model and knows no gold. Begin reading with ``retrieval.py``.
"""
