"""The embedded judge, deterministic, without a chat model and without a network.

Texts are aligned by words and vectors (``alignment``), ``features`` go into two fitted models (``judgement``), and
rules find what vectors do not show (``unsupported_details``, ``short_answers``). It never guesses where they cannot
decide. Begin reading with ``judge.py``.
"""
