"""Metamorphic checks: change something that must not change the answer, and compare the two answers."""
