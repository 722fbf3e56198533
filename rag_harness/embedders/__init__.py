"""Adapters to embedding models."""
