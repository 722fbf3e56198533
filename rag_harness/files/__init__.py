"""Files whole or not there, lines of JSON, locks, room on the disk, digests, the log, and what git says has changed.

Every room above may call it. It knows no noun of the harness, and never decides what is kept. Begin reading with
``atomic.py``.
"""
