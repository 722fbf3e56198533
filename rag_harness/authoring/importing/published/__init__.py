"""Published forms whose records are nested: each becomes plain records, whose fields the names of columns tell.

Begin reading with ``unfolding.py``.
"""
