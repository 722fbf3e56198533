"""Metadata keys of a question, by which the check of the documents and the review exchange findings."""

from __future__ import annotations

AFFECTED = "affected"
"""Why a person must look at a question again: its documents have changed."""
LOOKED_AT = "not_answered_by"
"""Pages that have the words of a question, and that a person found not to answer it."""
