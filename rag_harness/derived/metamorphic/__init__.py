"""Metamorphic checks: what must not change an answer is changed, and the two answers are set against each other."""
