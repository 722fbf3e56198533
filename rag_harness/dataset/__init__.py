"""Documents, queries and gold: from files into nouns.

``queries``, ``golden``, ``beir`` and ``trec`` read cases; ``library`` and ``knowledge_base`` read documents;
``ingest/`` has one loader a file type, and parses in a process with limits. Every room above may call it. It never
cuts, embeds or asks anything. Public: ``data.DataSets`` and the readers. Begin reading with ``data.py``.
"""
