"""The encoder judge as a user sees it: a folder of a model, scores, spans, resume, and refusals before any question."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.plugin.conftest import Suite
from tests.unit.evaluation.judges.encoder.tiny_models import change_config, save_model

needs_models = pytest.mark.skipif(find_spec("transformers") is None, reason="needs the extra 'local': transformers")
MEASURES = "--rag-measures=faithfulness,answer_relevancy"
SUPPORTED = 0.8808  # the softmax of the biases 0 and 2


# The model's part alone, without weights: loading torch takes ten times as long as all else.
SAYS_SO = f"""
import numpy as np
from rag_harness.evaluation.judges.encoder import PairClassifier

PairClassifier.read = lambda self, texts: [np.array([[{SUPPORTED}]]) for _ in texts]
"""


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that reads pairs; its weights are those of none."""
    folder = tmp_path_factory.mktemp("models") / "pairs"
    folder.mkdir()
    labels = {"id2label": {"0": "unsupported", "1": "supported"}}
    (folder / "config.json").write_text(json.dumps({"architectures": ["DebertaV2ForSequenceClassification"], **labels}))
    save_file({"none": np.zeros(1, np.float32)}, folder / "model.safetensors")
    return folder


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models of both families, made before any test: torch does not bear to be imported twice."""
    folder = tmp_path_factory.mktemp("weights")
    save_model(folder / "pairs", "DebertaV2ForSequenceClassification", ("unsupported", "supported"), [0.0, 2.0])
    return save_model(
        folder / "tokens", "ModernBertForTokenClassification", ("supported", "hallucinated"), [0, 2]
    ).parent


def encoder(folder: Path) -> list[str]:
    return ["--rag-judge=encoder", f"--rag-judge-model={folder}"]


def scores(suite: Suite, measure: str) -> list[dict[str, Any]]:
    file = suite.path / "output" / "scores" / "e3_filtered_rag.jsonl"
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line["measure"] == measure]


def test_a_run_is_judged_by_the_model_of_a_folder(suite: Suite, pairs: Path) -> None:
    suite.pytester.makeconftest(SAYS_SO)
    look_at_scores(suite, pairs)


@needs_models
@pytest.mark.long
def test_a_run_is_judged_by_the_weights_of_a_folder_and_resumed(weights: Path, suite: Suite) -> None:
    found = look_at_scores(suite, weights / "pairs")
    again = suite.run(*encoder(weights / "pairs"), MEASURES)
    again.assert_outcomes(passed=4)
    assert len(scores(suite, "faithfulness")) == found


def look_at_scores(suite: Suite, pairs: Path) -> int:
    """Run the suite, look at the scores, and return how many there are."""
    result = suite.run(*encoder(pairs), MEASURES)
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines([f"judged by {pairs} (method encoder, no LLM)"])
    found = scores(suite, "faithfulness")
    assert found
    assert [line["value"] for line in found if line["value"] is not None] == [SUPPORTED] * len(found)
    assert {(line["judge"], line["model"]) for line in found} == {("encoder", str(pairs))}
    said = {line["reason"] for line in scores(suite, "answer_relevancy") if not line.get("undefined")}
    assert any("relevancy needs another judge" in reason for reason in said)
    return len(found)


@needs_models
@pytest.mark.long
def test_words_that_nothing_supports_are_in_the_files(weights: Path, suite: Suite) -> None:
    suite.run(*encoder(weights / "tokens"), MEASURES).assert_outcomes(passed=4)
    claims = [claim for line in scores(suite, "faithfulness") for claim in line["detail"]["claims"]]
    assert claims
    assert all(claim["reason"] == f'not supported: "{claim["text"]}"' for claim in claims)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"id2label": {"0": "LABEL_0", "1": "LABEL_1"}}, "have no names (LABEL_0, LABEL_1)"),
        # tests/unit/evaluation/judges/encoder/test_named_model.py has all that is refused.
        pytest.param({"auto_map": {"AutoModel": "own.Model"}}, "brings code of its own", marks=pytest.mark.long),
    ],
)
def test_a_model_that_cannot_judge_stops_the_run_before_a_question(
    suite: Suite, pairs: Path, tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    for file in pairs.iterdir():
        (own / file.name).write_bytes(file.read_bytes())
    change_config(own, **changed)
    result = suite.run(*encoder(own), MEASURES)
    assert result.ret != 0
    assert said in result.stdout.str() + result.stderr.str()
    assert not suite.rows()


@pytest.mark.long
def test_without_a_model_the_run_says_which_there_are(suite: Suite) -> None:
    result = suite.run("--rag-judge=encoder", MEASURES)
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*The judge 'encoder' needs a model*lytang/MiniCheck-RoBERTa-Large*"])
    assert not suite.rows()
