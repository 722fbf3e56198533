"""Evaluates a pipeline from a notebook: ``rag_harness.evaluate`` asks, judges and keeps as a run of pytest does.

``given_pipeline``, ``given_questions`` and ``given_settings`` make experiment, questions and settings of what a person
hands over; ``notebook_run`` asks and judges; ``notebook_record`` leaves what a report reads; ``evaluation`` is what
comes back, and ``measure_figures`` are its numbers, which ``figures_shown`` writes. Rows lie where those of pytest lie.

``rag_harness/__init__.py`` calls this room, nothing of ours does. It knows no pytest: what pytest alone can do is
refused by name. Public: ``evaluate``, ``aevaluate`` and ``Evaluation``. Begin reading with ``evaluating.py``.
"""
