"""The review of drafted questions: a person reads them with their evidence, and accepts, edits or rejects them.

``rows`` has the decisions and keeps the questions whole at every moment, ``page`` shows them to a reviewer, also as
one HTML file. Commands call it. It decides nothing itself. Begin reading with ``rows.py``.
"""
