"""Observes a service: traces, metrics, logs, and the ratings of its answers."""
