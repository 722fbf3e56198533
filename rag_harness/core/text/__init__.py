"""Rules over text: terms, sentences, languages, numbers, citations, refusals and contradictions.

Retrieval, evaluation, authoring and others call it. It asks no model, and says where a language has no rules instead
of using those of English. Begin reading with ``terms.py`` and ``languages.py``.
"""
