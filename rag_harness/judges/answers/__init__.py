"""Judges answers of any system from a file of JSON lines, without a run."""
