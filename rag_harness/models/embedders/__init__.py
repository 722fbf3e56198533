"""Adapters of embedding models."""
