"""Judges: what answers judged measures, one file or folder each, by the entry point ``rag_harness.judges``.

Registered is ``create(parts) -> Judge``; ``parts`` is a ``JudgeParts``. ``calibration/`` holds a judge against people,
and a pipeline's confidence against gold. Engine, commands and the reliability study call this room. It never reads
rows from files by itself, and never turns verdicts into scores: ``measures`` does. Begin reading with ``made.py``.
"""
