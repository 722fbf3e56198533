"""The ingredients of an experiment: parts, traces, services, apps under test, and a user's own pipelines.

``parts`` hands out data, models and retrieval, ``trace`` notes the steps of an answer, ``experiments`` finds an
experiment by its name. Studies, engine, frontends and service call it. It imports no study, measure or judge. Begin
reading with ``parts.py``.
"""
