"""Tools for work in one process: time limits, threads for synchronous work, values made once, progress, garbage.

``deadline`` limits time. ``local_work`` runs blocking work beside the event loop. ``once`` makes a value on first use.
``reporting`` reports progress. ``garbage`` pauses the garbage collector. Every room above may call this room. It does
not know what the work is. Begin reading with ``local_work.py``.
"""
