"""Measures of retrieval and of answers."""
