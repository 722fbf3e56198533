"""A configuration as an experiment: values of parameters -> pipeline.

``experiment`` builds it, ``in_words`` says it in words. ``pipelines`` finds it by its name; ``derived.tuning`` makes
many and lets them race. It never reads a file. Begin reading with ``experiment.py``.
"""
