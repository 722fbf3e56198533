"""Is retrieval still good? One test a golden entry; a miss is tolerated as long as the gates in pytest.ini hold."""

from rag_harness import RetrievalResult


def test_finds_what_is_expected(rag_retrieval: RetrievalResult) -> None:
    assert rag_retrieval.found
