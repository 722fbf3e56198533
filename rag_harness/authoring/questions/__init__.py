"""Questions from documents: drafts with and without a model, filters, changes of documents, and review.

``facts`` are what a text states, ``answerable`` and ``gap_questions`` ask for them or for what is not stated,
``drafts`` has the filters. ``document_changes`` says whether questions still fit. Commands and the plugin call it. It
accepts no draft: a person does that in ``review``. Begin reading with ``generator.py``.
"""
