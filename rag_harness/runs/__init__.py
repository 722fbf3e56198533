"""Many trials at once: from cases to rows that are on the disk.

``loop`` runs trials, ``trial`` answers one and makes its row, ``row_judging`` scores it, ``journal`` keeps both before
anybody sees them. ``golden/`` is the experiment that only retrieves, ``distributed/`` runs trials on a Ray cluster.
The plugin and ``derived`` call this room. It never prints, and never judges a gate. Begin reading with ``loop.py``.
"""
