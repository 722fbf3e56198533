"""Compares judges with people: labels, agreement, saved calibrations, and means that are corrected by them.

Gates, tables, studies and commands call it. It never changes a score: a corrected mean is shown beside the judge's.
Begin reading with ``labels.py`` and ``agreement.py``.
"""
