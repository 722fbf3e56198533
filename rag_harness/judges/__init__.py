"""Judges: what answers judged measures, one file or folder each, by the entry point ``rag_harness.judges``.

Registered is ``create(parts) -> Judge``; ``parts`` is a ``JudgeParts``.
"""
