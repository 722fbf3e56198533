"""Kinds of expectations that come with the package, rubrics, and snapshots of answers.

``records.expectations`` has their base class, and ``measures.expectations`` makes scores of what they find. A kind
looks at an answer alone: it knows no row, and only rubrics and similar texts need a model. Begin reading with
``text.py``.
"""
