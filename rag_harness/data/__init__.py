"""Data of experiments: documents, questions, golden sets, conversations and public collections, from files."""
