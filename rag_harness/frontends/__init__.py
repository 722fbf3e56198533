"""What a person starts: the pytest plugin, the commands, and ``evaluate`` in a notebook.

Nothing of the harness imports it but ``__main__`` and the table of public names. It orchestrates, and computes
nothing. Begin reading with ``pytest_plugin/activation.py`` or ``cli/runs.py``.
"""
