"""Reads ``output/`` and nothing else: tables, summaries, comparisons, baselines, speed.

The plugin, ``derived`` and ``page`` call this room. It never runs a trial and never judges an answer: every figure
comes from result files. Public: ``load_results`` and what makes tables. Begin reading with ``tables.py``.
"""
