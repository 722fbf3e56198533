"""Collects the spans of trials in this process. The only room that imports the SDK of OpenTelemetry, beside a service.

It is imported where a trial is traced and nowhere else. Begin reading with ``provider.py``.
"""
