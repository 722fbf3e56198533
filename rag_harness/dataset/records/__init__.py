"""Records of files that other tools have written: CSV, Parquet, JSON and JSONL. Each has its place for messages.

``dataset.queries`` reads tables of questions with it, and ``authoring.importing`` the files of other tools. It knows
no tool, and never decides what a question is. Public: ``records_in``, ``SourceRecord`` and ``FieldMap``. Begin reading
with ``reading.py``.
"""
