"""What ``rag-harness`` can do without pytest: a file a group, and for each command what it takes and what it does.

A command ``x`` is a pair of functions, ``x_arguments(parser)`` and ``run_x(chosen) -> exit status``; ``__main__`` names
them. Rooms that have commands of their own keep them in a file of theirs.
"""

FOUND = 1
"""Exit status when something was found."""
