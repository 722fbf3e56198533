"""Keys of a question's metadata by which a check of the documents and a review tell each other what they found."""

from __future__ import annotations

AFFECTED = "affected"
"""Why a person must look at a question again: the documents have changed."""
LOOKED_AT = "not_answered_by"
"""Pages that have the words of a question, and that somebody found not to answer it."""
