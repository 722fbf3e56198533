"""Late interaction needs the vectors of tokens: a server that gives none is refused before anybody is asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_harness.core.errors import PrerequisiteError
from rag_harness.core.settings import Settings
from rag_harness.models.model_names import check_token_vectors

OPENAI = replace(Settings(), embed_model="text-embedding-3-small", embed_base_url="https://api.openai.com/v1")


def test_vectors_of_a_server_are_refused_for_late_interaction() -> None:
    with pytest.raises(PrerequisiteError, match="text-embedding-3-small gives one vector a text"):
        check_token_vectors(replace(OPENAI, rerank_model="embedded/late-interaction"))


@pytest.mark.parametrize(
    "settings",
    [
        replace(OPENAI, rerank_model="cross-encoder/ms-marco-MiniLM-L-6-v2"),
        replace(Settings(), rerank_model="embedded/late-interaction"),
    ],
)
def test_what_goes_together_is_not(settings: Settings) -> None:
    check_token_vectors(settings)
