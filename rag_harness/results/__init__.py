"""Rows, judged scores, cases and the run's manifest: their files, where they lie, and whether they are whole.

Every room of the evaluation calls it. It never computes a score, and never asks a pipeline. Public:
``ExperimentResult`` and the readers and writers of files. Begin reading with ``row.py``.
"""
