"""Adapters to rerankers."""
