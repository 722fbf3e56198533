"""Loaders of files, found under the entry point ``rag_harness.loaders``."""
