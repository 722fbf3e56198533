"""Pipelines: what an experiment is made of, services and apps under test, pipelines of a user's own, and simulated users."""
