"""Questions from the files of other tools, as lines of ``queries.jsonl``.

``tool_formats`` says of each tool which of its fields is which of ours. All else is the same for all tools:
``field_mapping`` makes the question, and ``importer`` places its evidence in the documents and writes its line.
Commands call it. It asks no model, runs no code of a config and fetches nothing. Begin reading with ``importer.py``.
"""
