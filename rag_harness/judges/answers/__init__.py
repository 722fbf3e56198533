"""Answers of any system, from a file of JSON lines, judged without a run."""
