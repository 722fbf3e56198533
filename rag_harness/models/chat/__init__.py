"""Adapters of chat models."""
