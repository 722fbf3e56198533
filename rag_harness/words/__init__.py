"""Text as words: terms and stems, sentences, citation marks, the language, near duplicates, contradictions.

Everything here is a rule over text, linear in its length, and asks no model. Reader, judges, attribution, questions and
pipelines call this room. It knows no row and no gold, and never decides what an answer is worth. Begin reading with
``terms.py``.
"""
