"""Tuning: the better configuration of a pipeline, and how sure that is."""
