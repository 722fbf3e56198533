"""``embedded/extractive``: a small deterministic baseline reader behind the OpenAI chat completions API.

It is not a language model. It quotes the sentences and table rows of the context that answer the question best, with
citations, or says that it does not know. With it, a whole evaluation runs without a key. Wherever its results are
shown, it is called a baseline reader.
"""

from __future__ import annotations

from rag_harness.models.reader.app import app

__all__ = ["app"]
