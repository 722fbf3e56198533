"""Features of a claim and its source, and the script that trains on them."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from rag_harness.evaluation.judges.embedded.alignment import EncodedSource, align, passage_of, split_text, unit
from rag_harness.evaluation.judges.embedded.features import RESPONSE_NAMES as RESPONSE
from rag_harness.evaluation.judges.embedded.features import RULE_NAMES as RULES
from rag_harness.evaluation.judges.embedded.features import (
    SENTENCE_NAMES,
    SourceFacts,
    covering_runs,
    declines,
    features,
    near_pairs,
    novel_runs,
    response_features,
    rules,
    same,
)
from rag_harness.evaluation.judges.embedded.judgement import (
    COEFFICIENTS_FILE,
    Logistic,
    at_even_odds,
    coefficients,
    judge,
    parts,
)
from tests.unit.evaluation.judges.embedded.made_up import WordEmbedder, encoded

CONTEXT = "Refunds take 5 days. Parcels are not sent abroad. The shop opens at 9:30 am."


def row(sentence: str, *passages: str) -> dict[str, float]:
    source = EncodedSource(tuple(map(encoded, passages or (CONTEXT,))))
    values, _ = features(encoded(sentence), source, encoded(""))
    assert values.shape == (1, len(SENTENCE_NAMES))
    return dict(zip(SENTENCE_NAMES, values[0].tolist(), strict=True))


def test_a_sentence_of_the_source_is_found_whole() -> None:
    found = row("Refunds take 5 days.")
    assert found["exact:mean"] == found["stem:mean"] == found["recall_all"] == found["recall_top1"] == 1
    assert found["run:max"] == pytest.approx(0.4)  # four words of ten
    assert found["cosine"] == pytest.approx(1, abs=1e-3)
    assert found["max_sim"] == pytest.approx(1, abs=1e-3)
    assert found["number_absent"] == found["negation_differs"] == found["novel_run:max"] == 0


def test_a_number_that_is_nowhere_is_absent() -> None:
    found = row("Refunds take 7 days.")
    assert (found["number_absent"], found["numbers_absent"], found["number_given"]) == (1, 1, 1)


def test_a_number_from_another_sentence_is_not_near_where_there_are_many() -> None:
    many = " ".join(
        ["Refunds take 5 days.", *(f"Refunds take {word} days." for word in ("some", "few", "many")), "Tents cost 80."]
    )
    assert row("Refunds take 80 days.", many)["number_not_near"] == 1


def test_a_negation_that_the_source_does_not_have() -> None:
    assert row("Parcels are sent abroad.")["negation_differs"] == 1
    assert row("Parcels are not sent abroad.")["negation_differs"] == 0


def test_a_time_that_is_nowhere_is_absent() -> None:
    assert row("The shop opens at 10 am.")["time_absent"] == 1
    assert row("The shop opens at 9:30.")["time_absent"] == 0


def test_a_citation_of_another_passage_than_the_best() -> None:
    passages = ("Tents are green.", "Refunds take 5 days.")
    assert row("Refunds take 5 days [Source 1].", *passages)["cites_another"] == 1
    assert row("Refunds take 5 days [Source 2].", *passages)["cites_another"] == 0
    assert row("Refunds take 5 days [Source 9].", *passages)["cites_none_there"] == 1


FIELDS = {"a": {"OutdoorSeating": False, "RestaurantsTakeOut": True, "Music": None, "Ambience": {"intimate": False}}}


@pytest.mark.parametrize(
    ("sentence", "column"),
    [
        ("It has outdoor seating.", "field_no_said_named"),
        ("It does not have outdoor seating.", "field_no_denied_named"),
        ("It offers take-out.", "field_yes_said_named"),
        ("Takeout is not available.", "field_yes_denied_named"),
        ("Guests enjoy music.", "field_null_said_named"),
        ("There is no information about music.", "field_null_declined_named"),
        ("The ambiance is intimate, but not loud.", "field_no_said_named"),
        ("An intimate place.", "field_no_said_bare"),
    ],
)
def test_fields_of_a_structured_source(sentence: str, column: str) -> None:
    passage = passage_of(json.dumps(FIELDS))
    found = dict(zip(RULES, rules(sentence, [""], SourceFacts([], passage.fields), (0, 1)), strict=True))
    assert {name for name, value in found.items() if value and name.startswith("field")} == {column}


def test_a_sentence_that_says_that_nothing_is_said_claims_nothing() -> None:
    assert declines("The passages do not mention a price.")
    assert not declines("The shop does not offer parking.")


def test_runs_pairs_and_novel_words() -> None:
    answer, source = ["a", "b", "x", "a"], ["b", "a", "b"]
    equal = same(answer, source)
    assert covering_runs(equal).tolist() == [2, 2, 0, 1]
    assert near_pairs(equal).tolist() == [True, True, False, False]
    text = split_text("Purple elephants dance slowly. Refunds")
    assert novel_runs(np.array([False, False, True, False, False]), text).tolist() == [2, 2, 0, 1, 1]


def test_the_nearest_sentence_and_its_passage() -> None:
    source = EncodedSource((encoded("😀"), encoded("Tents are green."), encoded("Rain. Refunds take 5 days.")))
    found = align(encoded("Refunds take five days"), source)
    assert source.sentences[found.top[0, 0]] == "Refunds take 5 days."
    assert source.passage_of[found.top[0, 0]] == 2


def test_a_long_text_in_parts_has_all_its_sentences() -> None:
    text = encoded(" ".join(f"Refund number {number} takes five days." for number in range(300)))
    cut = parts(text)
    assert len(cut) > 1
    assert [span for part in cut for span in part.text.sentences] == list(text.text.sentences)
    assert sum(len(part.weights) for part in cut) == len(text.weights)
    fitted = coefficients()
    found = judge(text, EncodedSource((encoded(CONTEXT),)), encoded(""), fitted, text.text)
    assert len(found.unsupported) == 300


def test_what_is_no_number_is_no_direction() -> None:
    assert unit(np.array([[np.nan, 1], [3, 4], [0, 0]], np.float32)).tolist() == [
        [0, 1],
        pytest.approx([0.6, 0.8]),
        [0, 0],
    ]


def test_a_logistic_model_by_hand() -> None:
    model = Logistic(("a", "b"), np.array([1.0, 0.0]), np.array([2.0, 1.0]), np.array([1.0, -1.0]), 0.5)
    assert model.probabilities([[3, 1]])[0] == pytest.approx(1 / (1 + np.exp(-0.5)))
    assert model.probabilities([[np.nan, 0]])[0] == pytest.approx(1 / (1 + np.exp(-0.5)))
    # A value far outside of what was seen counts four standard deviations.
    assert model.probabilities([[1e9, 0]])[0] == pytest.approx(1 / (1 + np.exp(-4.5)))


def test_even_odds() -> None:
    assert at_even_odds(np.array([0.1, 0.5]), 0.1).tolist() == pytest.approx([0.5, 0.9])


def test_coefficients_are_small_name_their_data_and_fit_the_features() -> None:
    assert COEFFICIENTS_FILE.stat().st_size <= 50_000
    fitted = coefficients()
    assert (fitted.sentence.names, fitted.response.names) == (SENTENCE_NAMES, RESPONSE)
    assert set(fitted.data) == {"qa.jsonl", "summary.jsonl", "data2txt.jsonl"}
    assert all(len(digest) == 64 for digest in fitted.data.values())
    assert 0 < fitted.threshold < 1
    assert 0 < fitted.base < 0.5


def test_response_features_take_the_worst_and_all() -> None:
    rows = np.zeros((2, len(SENTENCE_NAMES)))
    rows[:, SENTENCE_NAMES.index("number_absent")] = 1
    found = dict(zip(RESPONSE, response_features([0.5, 0.1], rows), strict=True))
    assert found["max"] == pytest.approx(0)
    assert found["mean"] == pytest.approx(np.log(0.3 / 0.7))
    assert found["many"] == pytest.approx(np.log(2))
    assert found["number_absent:sum"] == pytest.approx(np.log(3))


# The training script, on a tiny RAGTruth that is made up here, with vectors that are made up too.

ROOT = Path(__file__).parents[5]
GOODS = ("tents", "stoves", "ropes", "boots", "lamps", "axes", "maps", "coats", "mugs", "beds", "skis", "kites")


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    pytest.importorskip("sklearn")
    if not (ROOT / "benchmarks").is_dir():
        pytest.skip("benchmarks are no part of an installed package")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("faithfulness_training")


@pytest.fixture
def ragtruth(tmp_path: Path) -> Path:
    """For each of three tasks twelve sources, each with one response that is right and one with a marked lie."""
    folder = tmp_path / "ragtruth"
    folder.mkdir()
    for task in ("qa", "summary", "data2txt"):
        rows = [_row(task, number, goods) for number, goods in enumerate(GOODS)]
        (folder / f"{task}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    return folder


def _row(task: str, number: int, goods: str) -> dict[str, object]:
    text = f"The shop sells {goods} for {number + 20} euros. They are made in Norway."
    sources = {
        "qa": {
            "question": f"What do {goods} cost?",
            "passages": f"passage 1:{text}\n\npassage 2:It opens at noon.\n\n",
        },
        "summary": text,
        "data2txt": {"name": f"Shop of {goods}", "attributes": {"OutdoorSeating": False}, "sells": text},
    }
    lie = "Its owner was born on Mars in 1512."
    wrong = f"The shop sells {goods}. {lie}"
    marked = {"start": wrong.index(lie), "end": len(wrong), "text": lie, "implicit_true": False}
    implied = {"start": 0, "end": 8, "text": "The shop", "implicit_true": True}
    return {
        "source_id": f"{task}{number}",
        "source": sources[task],
        "responses": [
            {"response": f"The shop sells {goods} for {number + 20} euros.", "labels": [implied]},
            {"response": wrong, "labels": [marked]},
        ],
    }


def test_it_learns_what_is_marked_and_writes_coefficients(
    script: ModuleType,
    ragtruth: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = tmp_path / "coefficients.json"
    monkeypatch.setattr(script, "SentenceTransformersEmbedder", WordEmbedder)
    monkeypatch.setattr(script, "COEFFICIENTS_FILE", made)
    monkeypatch.setattr(sys, "argv", ["train", str(ragtruth), "--cache", str(tmp_path / "cache"), "--write"])
    script.main()
    printed = capsys.readouterr().out
    assert "72 responses, 36 hallucinated; 5 folds by source" in printed
    judged = next(line for line in printed.splitlines() if line.startswith("sentence model"))
    assert "100.0" in judged
    said = json.loads(made.read_text(encoding="utf-8"))
    assert list(said["sentence"]["features"]) == list(SENTENCE_NAMES)
    assert set(said["data"]) == {"qa.jsonl", "summary.jsonl", "data2txt.jsonl"}
    # A second run reads what the first has kept, and writes the same bytes.
    before = made.read_bytes()
    monkeypatch.setattr(WordEmbedder, "pieces", None)
    script.main()
    assert made.read_bytes() == before


def test_what_is_true_although_the_source_does_not_say_it_is_not_marked(script: ModuleType, ragtruth: Path) -> None:
    found = list(script.responses(ragtruth))
    assert [bool(response.marked) for response in found] == [False, True] * 36
    assert found[0].passages == ("The shop sells tents for 20 euros. They are made in Norway.", "It opens at noon.")


def test_folds_never_share_a_source(script: ModuleType) -> None:
    groups = np.repeat(np.arange(20), 3)
    for training, test in script.folds(groups, np.tile([0, 1, 0], 20)):
        assert not set(groups[training]) & set(groups[test])
        assert (training ^ test).all()


def test_a_sentence_is_wrong_that_a_marked_span_touches(script: ModuleType) -> None:
    assert [script.overlaps(span, [(5, 10)]) for span in ((0, 5), (0, 6), (9, 20), (10, 20))] == [0, 1, 1, 0]


def test_the_threshold_is_that_of_the_best_f1_smoothed(script: ModuleType) -> None:
    p = np.array([0.1] * 50 + [0.9] * 50)
    assert 0.1 < script.smoothed_threshold(p, np.array([0] * 50 + [1] * 50)) < 0.9
