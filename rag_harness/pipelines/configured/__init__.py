"""A configuration as an experiment: values of parameters -> pipeline.

``experiment`` builds it, ``wording`` says it in words. ``pipelines`` finds it by its name; ``derived.tuning`` makes
many and lets them race. It never reads a file. Begin reading with ``experiment.py``.
"""
