"""Tests of promptfoo: configs in YAML and JSON, test files, and CSV with ``__expected`` columns.

``config_tests`` finds the tests, ``csv_tests`` reads rows, ``assertions`` makes expectations of what a test asserts, by
the tables of ``assertion_types``. Code of a config is never run, and nothing is fetched. Begin reading with
``asked_tests.py``.
"""
