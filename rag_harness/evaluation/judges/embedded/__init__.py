"""The embedded judge, deterministic, without a chat model and without a network."""
