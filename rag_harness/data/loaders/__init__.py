"""Loaders of files, one for each suffix, found under the entry point ``rag_harness.loaders``.

``documents`` calls them in a process with limits (``child_process``): a loader may hang or crash on a bad file. A
loader never fetches anything and runs no code of a file. Begin reading with ``text.py`` and ``reading.py``.
"""
