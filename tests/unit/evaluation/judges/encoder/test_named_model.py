"""Which models can judge, told by their configs. No weights are read and no package of models is imported."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rag_harness.core.errors import PrerequisiteError
from rag_harness.evaluation.judges.encoder_models import known_format, named_model

PAIR = {"architectures": ["DebertaV2ForSequenceClassification"], "id2label": {"0": "no", "1": "yes"}}
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def model_in(folder: Path, config: dict[str, Any], weights: bytes = b"weights") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(weights)
    return folder


def refusal(folder: Path) -> str:
    with pytest.raises(PrerequisiteError) as raised:
        named_model(str(folder))
    return str(raised.value)


@pytest.mark.parametrize(
    "labels", [{"0": "LABEL_0", "1": "LABEL_1"}, {"0": "0", "1": "1"}, {"0": "LABEL_0"}, None, {"1": "yes"}]
)
def test_labels_without_names_are_refused(tmp_path: Path, labels: Any) -> None:
    said = refusal(model_in(tmp_path / "own", PAIR | {"id2label": labels}))
    assert "have no names" in said
    assert '"id2label": {"0": "unsupported", "1": "supported"}' in said


@pytest.mark.parametrize(
    "labels", [{"0": "red", "1": "blue"}, {"0": "yes", "1": "supported"}, {"0": "a", "1": "b", "2": "c"}, {"0": "yes"}]
)
def test_labels_that_do_not_say_what_supports_are_refused(tmp_path: Path, labels: dict[str, str]) -> None:
    said = refusal(model_in(tmp_path, PAIR | {"id2label": labels}))
    assert f"are {', '.join(labels.values())}: one of several must mean that a claim is supported" in said


def test_code_of_a_models_own_is_refused_with_the_reason(tmp_path: Path) -> None:
    config = PAIR | {"auto_map": {"AutoModelForSequenceClassification": "modeling.Own"}}
    said = refusal(model_in(tmp_path / "hhem", config))
    assert "brings code of its own, which would run here with all your rights (auto_map in its config.json)" in said
    assert "Such code is never run." in said


def test_weights_in_pickles_are_refused(tmp_path: Path) -> None:
    folder = model_in(tmp_path / "own", PAIR)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    assert "has no *.safetensors" in refusal(folder)


@pytest.mark.parametrize(
    ("name", "architectures", "said"),
    [
        ("own", ["BertModel"], "is BertModel. A judge has to be a classifier"),
        ("own", [], "is of no architecture that its config.json names"),
        ("own", ["T5ForConditionalGeneration"], "nothing in it says what it was trained to answer"),
        ("MiniCheck-Flan-T5-Large", ["RobertaForSequenceClassification"], "are of the family 'sequence-to-sequence'"),
    ],
)
def test_other_architectures_are_refused(tmp_path: Path, name: str, architectures: list[str], said: str) -> None:
    assert said in refusal(model_in(tmp_path / name, PAIR | {"architectures": architectures}))


def test_a_folder_without_a_config_is_refused(tmp_path: Path) -> None:
    assert "has no readable config.json" in refusal(tmp_path)
    (tmp_path / "config.json").write_text("[]")
    assert "is not a JSON object" in refusal(tmp_path)


@pytest.mark.parametrize(
    "name", ["", "embedded/alignment", "mock/word-overlap", "no/such/folder", "gpt-4o", "a/b@main"]
)
def test_what_names_no_model_is_refused(name: str) -> None:
    with pytest.raises(PrerequisiteError, match=r"neither a folder here nor a name on the hub\. Name one: lytang/"):
        named_model(name)


def test_two_models_of_one_name_are_told_apart_by_their_files(tmp_path: Path) -> None:
    one, two = (model_in(tmp_path / side / "judge", PAIR, side.encode()) for side in ("a", "b"))
    assert named_model(str(one)).revision != named_model(str(two)).revision
    before = named_model(str(one)).revision
    (one / "tokenizer.json").write_text("{}")
    assert named_model(str(one)).revision != before
    (one / "tokenizer.json").unlink()
    assert named_model(str(one)).revision == before


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("lytang/MiniCheck-RoBERTa-Large", "minicheck-roberta"),
        (f"lytang/MiniCheck-Flan-T5-Large@{COMMIT}", "minicheck-flan-t5"),
        ("/models/FactCG-DeBERTa-v3-Large", "factcg-deberta"),
        (
            f"/hub/models--KRLabsOrg--lettucedect-large-modernbert-en-v1/snapshots/{COMMIT}",
            "lettucedect-large-modernbert-en",
        ),
        ("cross-encoder/nli-deberta-v3-base", "nli-deberta-v3"),
        ("/home/minicheck-roberta/other", None),
    ],
)
def test_formats_are_known_by_the_models_own_name(name: str, called: str | None) -> None:
    known = known_format(name)
    assert (known.called if known else None) == called


class Hub:
    """A hub whose cache has one model, or which has to be asked for it."""

    def __init__(self, folder: Path, is_cached: bool) -> None:
        self.folder, self.is_cached, self.asked = folder, is_cached, list[tuple[str, Any, bool]]()

    def snapshot_download(self, name: str, revision: Any, allow_patterns: Any, local_files_only: bool) -> str:
        self.asked.append((name, revision, local_files_only))
        if local_files_only and not self.is_cached:
            raise FileNotFoundError("not in the cache")
        return str(self.folder)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    made = Hub(model_in(tmp_path / "snapshots" / COMMIT, PAIR), is_cached=True)
    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(snapshot_download=made.snapshot_download))
    return made


def test_a_cached_model_is_not_asked_for_and_its_commit_is_its_revision(hub: Hub) -> None:
    found = named_model("cross-encoder/nli-deberta-v3-base")
    assert (found.revision, found.folder, found.supporting) == (COMMIT, hub.folder, 1)
    assert hub.asked == [("cross-encoder/nli-deberta-v3-base", None, True)]


def test_a_model_that_is_not_cached_is_downloaded_where_models_may_be_called(hub: Hub) -> None:
    hub.is_cached = False
    assert named_model("own/model").folder == hub.folder
    assert [local for *_, local in hub.asked] == [True, False]
    with pytest.raises(PrerequisiteError, match=r"A replay without its files needs its commit: own/model@COMMIT"):
        named_model("own/model", refusal="Record it")


def test_a_replay_of_a_known_model_with_its_commit_needs_no_files(hub: Hub) -> None:
    found = named_model(f"cross-encoder/nli-deberta-v3-base@{COMMIT}", refusal="Record it")
    assert (found.name, found.revision, found.folder) == ("cross-encoder/nli-deberta-v3-base", COMMIT, None)
    assert hub.asked == []
    assert named_model("cross-encoder/nli-deberta-v3-base").revision == found.revision
