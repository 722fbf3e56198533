"""The OpenAI embedder against a server on this machine."""

from __future__ import annotations

import gzip
import sys
import traceback
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from openai import OpenAI

from rag_harness.core.errors import CriticalError, ModelCallError, ModelOutputError, PrerequisiteError
from rag_harness.core.settings import Settings
from rag_harness.models.embedders import OpenAIEmbedder, TiktokenTokenizer, create_openai
from tests.unit.server import Reply, Server, as_json, refusal, serving

KEY = "sk-secret-0123456789"
MODEL = "text-embedding-3-small"
NAN = float("nan")


def vectors(*rows: Sequence[float], order: Sequence[int] | None = None) -> Reply:
    numbered = [{"object": "embedding", "index": n, "embedding": list(row)} for n, row in enumerate(rows)]
    data = [numbered[n] for n in order] if order else numbered
    return as_json({"object": "list", "model": MODEL, "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}})


def embed(server: Server, texts: Sequence[str], retries: int = 0) -> Any:
    with OpenAI(base_url=server.url, api_key=KEY, max_retries=retries, timeout=5) as client:
        return OpenAIEmbedder(MODEL, server.url, KEY, client=client).embed_documents(texts)


def test_batches_of_100() -> None:
    texts = [f"text {n}" for n in range(205)]
    batches = [vectors(*([float(n), 1.0] for n in range(size))) for size in (100, 100, 5)]
    with serving(*batches) as server:
        found = embed(server, texts)
    assert [len(sent["input"]) for sent in server.requests] == [100, 100, 5]
    assert [text for sent in server.requests for text in sent["input"]] == texts
    assert {sent["model"] for sent in server.requests} == {MODEL}
    assert (found.shape, found.dtype) == ((205, 2), np.float32)
    np.testing.assert_allclose(found[[99, 100, 204], 0] / found[[99, 100, 204], 1], [99, 0, 4], rtol=1e-6)


def test_order_is_that_of_the_index_and_length_is_one() -> None:
    with serving(vectors([3, 4], [0, 2], [5, 0], order=[2, 0, 1])) as server:
        found = embed(server, ["a", "b", "c"])
    np.testing.assert_allclose(found, np.array([[0.6, 0.8], [0, 1], [1, 0]]), atol=1e-7)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (vectors([1, NAN], [1, 1]), "not finite"),
        (vectors([1, float("inf")], [1, 1]), "not finite"),
        (vectors([0, 0], [1, 1]), "zeros"),
        (vectors([1, 1]), "1 vectors for 2"),
        (vectors([1, 1], [2, 2], [3, 3]), "3 vectors for 2"),
        (vectors([1, 1], [2, 2], order=[0, 0]), "2 vectors for 2"),
        (vectors([1, 1], [2]), "no embeddings"),
        (vectors(), "2 texts"),
        (refusal(200, "overloaded"), "2 texts"),
        (Reply(body=b'{"data": ['), "2 texts"),
        (Reply(body=b'{"data": [', length=500), "2 texts"),
        (Reply(body=b"<html>", kind="text/html"), "2 texts"),
        (as_json([]), "2 texts"),
    ],
    ids=[
        "NaN",
        "infinite",
        "zeros",
        "too few",
        "too many",
        "index twice",
        "ragged",
        "none",
        "error with 200",
        "half a JSON",
        "cut off",
        "a web page",
        "list",
    ],
)
def test_unusable_answer(reply: Reply, said: str) -> None:
    with serving(reply) as server, pytest.raises(ModelCallError, match=said):
        embed(server, ["a", "b"])


@pytest.mark.parametrize("status", [401, 402, 403, 404])
def test_hopeless_call_stops_the_run_and_hides_the_key(status: int) -> None:
    with serving(refusal(status, f"Incorrect API key provided: {KEY}")) as server, pytest.raises(CriticalError) as got:
        embed(server, ["a"], retries=4)
    assert len(server.requests) == 1
    assert ("refuses the key of OPENAI_API_KEY" if status == 401 else MODEL) in str(got.value)
    assert KEY not in "".join(traceback.format_exception(got.value))


def test_failed_batch_is_retried() -> None:
    # The SDK sleeps between its retries; this header makes that a millisecond.
    failure = refusal(500, "oops", retry_after_ms="1")
    with serving(failure, refusal(429, "slow", retry_after_ms="1"), vectors([1, 0])) as server:
        assert embed(server, ["a"], retries=4).shape == (1, 2)
    assert len(server.requests) == 3


def test_failure_for_good() -> None:
    with serving(refusal(500, f"oops {KEY}", retry_after_ms="1")) as server, pytest.raises(ModelCallError) as caught:
        embed(server, ["a"], retries=2)
    assert len(server.requests) == 3
    assert caught.value.retries == 2
    assert "Embedding 1 texts" in str(caught.value)
    assert KEY not in "".join(traceback.format_exception(caught.value))


def test_no_texts() -> None:
    assert OpenAIEmbedder(MODEL, "", KEY).embed_documents([]).shape == (0, 1536)


def test_created_from_settings() -> None:
    with serving(vectors([1, 0])) as server:
        settings = Settings(embed_model=f"openai:{MODEL}", embed_base_url=server.url, openai_api_key=KEY)
        embedder = create_openai(SimpleNamespace(settings=settings))
        with embedder._client:
            embedder.embed_queries(["a"])
    assert server.requests[0]["model"] == embedder.model == MODEL
    assert embedder.dimension == 1536


class Encoding:
    def encode_ordinary(self, text: str) -> list[int]:
        return [0] * len(text)


@pytest.fixture
def tiktoken(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """Stand in for the package, which downloads its encodings."""
    module = SimpleNamespace()
    monkeypatch.setitem(sys.modules, "tiktoken", module)
    return module


def test_counts_in_the_models_encoding(tiktoken: SimpleNamespace) -> None:
    tiktoken.get_encoding = {"cl100k_base": Encoding()}.__getitem__
    assert TiktokenTokenizer().count(["abc", ""]) == [3, 0]


def test_encoding_that_cannot_be_downloaded(tiktoken: SimpleNamespace) -> None:
    def fail(name: str) -> None:
        raise ConnectionError("no route")

    tiktoken.get_encoding = fail
    with pytest.raises(PrerequisiteError, match=r"cl100k_base.*no route.*TIKTOKEN_CACHE_DIR"):
        TiktokenTokenizer().count(["abc"])


def made(server: Server, monkeypatch: pytest.MonkeyPatch, timeout: float = 30.0) -> OpenAIEmbedder:
    monkeypatch.setattr("rag_harness.models.embedders._RETRIES", 0)
    return OpenAIEmbedder(MODEL, server.url, KEY, timeout)


def test_a_reply_without_an_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = gzip.compress(b" " * 40_000_000, 1)
    for reply in (Reply(body=b" " * 22_000_000), Reply(body=packed, headers={"content-encoding": "gzip"})):
        with serving(reply) as server, pytest.raises(ModelOutputError, match="answered with more than 20 MB"):
            made(server, monkeypatch).embed_documents(["a"])


def test_a_reply_that_drips_has_its_time_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Reply(body=b" " * 1000, drip=0.02)) as server, pytest.raises(ModelCallError, match="timed out"):
        made(server, monkeypatch, timeout=0.2).embed_documents(["a"])
