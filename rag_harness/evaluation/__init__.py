"""How good an answer is: measures, kinds of expectations, judges, and their calibration with people.

The engine, tables, diagnosis and frontends call it. It reads rows and cases, and knows no run and no result file.
Begin reading with ``measures/measure.py`` and ``measures/opinion.py``.
"""
