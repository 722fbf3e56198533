"""A teaching assistant over a textbook: ``t1`` and the alternatives that its decision record names.

``assistant`` is the pipeline and ``assembly`` puts an experiment together. Files named as in the folder above are
experiments.
"""
