"""Finds why trials failed: runs them again with one thing changed, and compares their rows with the gold."""
