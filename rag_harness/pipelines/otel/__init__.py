"""Traces of pipelines under test: spans by OpenInference's and OpenTelemetry's conventions become steps of a trial.

``spans`` has them as plain values, ``steps`` finds searches, rerankers and calls among them, ``files`` reads what
other tools have exported. Pipelines, exports and commands call it; it knows neither rows nor documents of the run.
Only ``in_process`` imports the SDK of OpenTelemetry. Begin reading with ``steps.py``.
"""
