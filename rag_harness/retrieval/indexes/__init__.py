"""Adapters to vector indexes."""
