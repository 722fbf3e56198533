"""Kinds of expectations that come with the package."""
