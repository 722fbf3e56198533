"""Adapters of rerankers."""
