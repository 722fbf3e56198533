"""Traces of pipelines under test: spans by OpenInference's and OpenTelemetry's conventions become the steps of a trial.

Pipelines and commands call this room; it knows spans, and neither rows nor documents of the run. ``span_record`` is a
span as plain values. ``steps`` finds searches, rerankers, model calls and tools among them, ``found_documents`` what a
search brought, ``prompted`` what of it a model was given. ``in_process/`` alone imports the SDK of OpenTelemetry: it
collects the spans of this process. Begin reading with ``seen_trace.py``.
"""
