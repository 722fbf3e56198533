"""Questions from the files of other tools, as lines of ``queries.jsonl``.

``sources/`` has a file a tool: which of its fields is which of ours, and what of it has no counterpart; ``promptfoo/``
makes expectations of assertions; ``published/`` makes plain records of nested ones. All else is the same for all tools:
evidence is placed in the documents (``context_places``), lines get their ids (``query_line_writing``), and what could
not be mapped is counted (``notes``). ``commands`` calls it. It asks no model, runs no code of a config and fetches
nothing. Public: ``import_questions``, ``guessed_source``, ``SOURCES``. Begin reading with ``importing.py``.
"""
