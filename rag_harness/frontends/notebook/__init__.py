"""Evaluates a pipeline from a notebook: ``rag_harness.evaluate`` asks, judges and keeps as a run of pytest does.

``evaluate`` makes experiment, questions and settings of what a person hands over, ``run`` asks and judges and leaves
what a report reads, ``evaluation`` is what comes back. Only the table of public names imports it. It knows no pytest:
what pytest alone can do is refused by name. Begin reading with ``evaluate.py``.
"""
