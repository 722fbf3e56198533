"""Rules over text: terms and stems, sentences, citation marks, language, near duplicates, contradictions.

Each rule takes time linear in the length of the text, and asks no model. Every room above calls it. It knows no row
and no gold, and never rates an answer. Begin reading with ``terms.py``.
"""
