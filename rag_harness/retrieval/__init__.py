"""Chunks, vectors, index and words: from a query to ranked hits."""
