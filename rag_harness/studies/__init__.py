"""The shipped experiments: one module for each study, and ``experiments``, the table of them all.

An experiment is a function ``build_…(parts) -> Experiment`` of a study, and a line of ``EXPERIMENTS``: name,
function, stem of its result file, data. One that is another with a value changed is a line alone.
``pipelines.experiments`` reads the table by its name, and nothing imports it. Of the evaluation, studies import only
judges and judged measures. Begin reading with ``retail.py``.
"""
