"""Many trials at once: from cases to rows that are on the disk, and the gates on them.

``engine`` runs trials, ``trial`` answers one and makes its row, ``judging`` scores it, ``journal`` keeps both before
anybody sees them. The plugin, notebooks, diagnosis and tables call it. It prints nothing. Begin reading with
``engine.py`` and ``trial.py``.
"""
