"""``embedded/extractive``: a small deterministic baseline reader behind the OpenAI chat completions API.

It is not a language model: it quotes the sentences and table rows of the prompt's context that answer the question
best, with citations, or says that it does not know. It lets a whole evaluation run without a key and is called a
baseline reader wherever its results are shown.
"""

from __future__ import annotations

from rag_harness.models.reader.app import app

__all__ = ["app"]
