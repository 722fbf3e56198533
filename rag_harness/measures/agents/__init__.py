"""Measures of what an agent did: its searches, its calls of tools, its steps. None of them asks a judge.

``steps_told`` says what a row tells of its steps, and where it does not tell enough. What was not told is not measured:
a gate never passes on it.
"""
