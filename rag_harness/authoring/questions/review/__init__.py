"""The review of drafted questions: a person reads them with their evidence, and accepts, edits or rejects them.

``rows`` has the decisions, ``file`` keeps the questions whole at every moment, ``presentation`` is what a reviewer
sees, and ``page`` the same as one HTML file. Commands call it. It decides nothing itself. Begin reading with
``rows.py``.
"""
