"""Says what to write where a test asks a pipeline that is nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_harness.errors import meant

if TYPE_CHECKING:
    from collections.abc import Collection

_TO_PASTE = """\
import pytest

class Pipeline:
    def answer(self, query):
        found = [{"text": "What your search has found.", "source": "page.md"}]
        return {"answer": f"What you answer to: {query.text}", "contexts": found}

@pytest.fixture(scope="session")
def rag_pipeline():
    return Pipeline()
"""


def missing_pipeline(test: str, name: str, known: Collection[str]) -> str:
    """Return the message for a test of the experiment ``name``, which is none of ``known``: code to paste ends it."""
    file = test.partition("::")[0]
    return (
        f"No pipeline answers for {name!r}.{meant(name, known)} {file} gets a pipeline of your own from a fixture "
        f"rag_pipeline, and no conftest.py above it has one. Paste this into conftest.py:\n\n{_TO_PASTE}"
    )
