"""Records of a run: rows, judged scores, cases, manifest and causes, with their files and their integrity.

The engine writes them and everything behind it reads them. It computes no score. The format of a row only ever gains
keys. Begin reading with ``row.py`` and ``files.py``.
"""
