"""What ``rag-harness`` can do without pytest: one file for each group of commands.

A command ``x`` is two functions, ``x_arguments(parser)`` and ``run_x(chosen) -> exit status``; ``__main__`` names them,
and nothing else calls this room. ``starter/`` is what ``rag-harness init`` writes. Commands hand over to rooms and hold
no logic of their own; they never import pytest. Begin reading with ``report.py``.
"""

FOUND = 1
"""Exit status if something was found."""
