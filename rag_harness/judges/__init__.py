"""Judges give the verdicts behind judged measures. Each is a file or folder with an entry point ``rag_harness.judges``.

An entry point names ``create(parts) -> Judge``; ``parts`` is a ``JudgeParts``. ``calibration/`` compares a judge with
people's labels, and a pipeline's confidence with gold. Engine, commands and the reliability study call this room. It
never reads rows from files by itself, and never turns verdicts into scores: ``measures`` does. Begin reading with
``made.py``.
"""
