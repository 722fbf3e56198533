"""Loaders of docx, pptx and xlsx, and of the same with macros, which are never run.

``ingest`` finds them by suffix. Nothing here opens a file or an address that a document names. Public: the loaders
``word``, ``slides`` and ``sheets``, each with ``load`` and ``parse``. Begin reading in ``package``.
"""
