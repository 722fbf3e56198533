"""A pipeline that says how sure it is, and declines where it is not: ``r1``, and what each of its steps is worth.

A step is a file, and ``engine`` goes through them; ``assembly`` puts an experiment together. Files named as in the
folder above are experiments.
"""
