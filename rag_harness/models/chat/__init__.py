"""Adapters to chat models."""
