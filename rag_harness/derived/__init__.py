"""Trials derived from those of a run with one thing changed, answered by the same engine and kept in the same files.

``attribution/`` runs failed trials again, with gold in the context or one step left out, and says why they failed.
``metamorphic/`` changes questions and sources, and says what must hold of the answers. The plugin and the report's
page call this room. It never changes a row of the run itself. Begin reading with ``attribution/interventions.py`` and
``metamorphic/sampled.py``.
"""
