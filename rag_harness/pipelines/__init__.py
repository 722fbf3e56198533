"""Pipelines: the parts of an experiment, services and apps under test, a user's own, and simulated users."""
