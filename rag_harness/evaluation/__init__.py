"""Evaluation: measures, kinds of expectations, rubrics, judges and calibration."""
