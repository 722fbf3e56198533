"""Trials derived from those of a run with one thing changed, answered by the same engine and kept in the same files.

``attribution/`` runs failed trials again, with gold in the context or without one step, and finds why they failed.
``metamorphic/`` changes questions and sources, and checks that the answers keep a known relation. The plugin, the
report's page and ``rag-harness explain`` call this room. It never changes a row of the run itself. Begin reading with
``attribution/interventions.py`` and ``metamorphic/checking.py``.
"""
