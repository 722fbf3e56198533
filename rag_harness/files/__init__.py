"""Files and folders: atomic writes, JSON from outside, locks, room on the disk, digests, the log, changes in git.

Every room above may call it. It knows no type of the harness, and never decides what is kept. Begin reading with
``atomic.py``.
"""
