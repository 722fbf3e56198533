"""What all other packages share: types, errors, protocols, settings, the registry of parts, files and processes.

Every package calls it. It imports nothing of the harness outside of itself, and is cheap to import: suites that do
not use the plugin import some of it. Begin reading with ``types.py`` and ``protocols.py``.
"""
