"""Readers of documents, queries and gold from files.

``queries``, ``golden``, ``beir`` and ``trec`` read cases. ``library`` and ``knowledge_base`` read documents.
``ingest/`` has one loader for each file type, and parses in a process with limits. Every room above may call it. It
never cuts or embeds texts, and asks no model. Public: ``data.DataSets`` and the readers. Begin with ``data.py``.
"""
