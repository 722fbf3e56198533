"""Adapters of vector indexes."""
