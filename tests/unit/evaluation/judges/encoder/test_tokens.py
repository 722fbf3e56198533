"""The token classifier on tiny models, held against transformers alone; and its spans on readings that are made up."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_harness.evaluation.judges.encoder import AskedSupport, TokenClassifier, UnsupportedWords
from tests.unit.evaluation.judges.encoder.test_encoder import asked_of, family_of, softmax, supports, words
from tests.unit.evaluation.judges.encoder.tiny_models import save_model

MODERN = "ModernBertForTokenClassification"
LABELS = ("supported", "hallucinated")
ASKED = (
    "Briefly answer the following question:\nHow long?\nBear in mind that your response should be strictly based "
    "on the following 2 passages:\npassage 1: the lamp\npassage 2: an oak\nIn case the passages do not contain the "
    "necessary information to answer the question, please reply with: "
    '"Unable to answer based on given passages."\noutput:'
)


@pytest.fixture(scope="module")
def modern(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "lettucedect-base-modernbert-en-v1"
    return save_model(folder, MODERN, LABELS, positions=8192)


@cache
def loaded(folder: Path) -> tuple[Any, Any]:
    import transformers

    model = transformers.AutoModelForTokenClassification.from_pretrained(folder).eval()
    return transformers.AutoTokenizer.from_pretrained(folder), model


def bare(folder: Path, prompt: str, text: str) -> list[tuple[int, int, float]]:
    """Return start, end and P(hallucinated) of each token of ``text``, by transformers alone."""
    import torch

    tokenizer, model = loaded(folder)
    inputs = tokenizer(prompt, text, return_tensors="pt", return_offsets_mapping=True)
    inside = [place for place, side in enumerate(inputs.sequence_ids(0)) if side == 1]
    places = inputs.pop("offset_mapping")[0].tolist()
    with torch.no_grad():
        found = model(**inputs).logits[0].softmax(-1)[:, 1].tolist()
    return [(*places[place], found[place]) for place in inside]


def test_each_token_is_the_models_given_all_passages_at_once(modern: Path) -> None:
    family: Any = family_of(modern)
    texts = [("How long?", words(count, count), "the lamp", "an oak") for count in (3, 30, 12)]
    for (_, text, *_), rows in zip(texts, family.read(texts), strict=True):
        assert rows.tolist() == pytest.approx(np.array(bare(modern, ASKED, text)), abs=2e-4)
        assert [text[int(start) : int(end)] for start, end, _ in rows] == text.replace(".", " .").split()


def test_a_text_without_a_question_is_a_summary(modern: Path) -> None:
    family: Any = family_of(modern)
    (rows,) = family.read([(" ", "a lamp", "the lamp", "an oak")])
    prompt = "Summarize the following text:\npassage 1: the lamp\npassage 2: an oak\noutput:"
    assert rows.tolist() == pytest.approx(np.array(bare(modern, prompt, "a lamp")), abs=2e-4)


def test_beyond_what_it_reads_the_lowest_of_several_inputs_counts(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "lettucedect-base-modernbert-en-v1", MODERN, LABELS, positions=1024)
    family: Any = family_of(folder)
    passages = [words(450, 1), words(75, 2), words(1300, 3), words(175, 4)]
    text = words(40, 5)
    prompts = family._prompts("How long?", text, passages)
    assert 3 <= len(prompts) <= 5
    lengths = [len(family.loaded.tokenizer(prompt, text)["input_ids"]) for prompt in prompts]
    assert max(lengths) <= 1024
    assert max(lengths) > 875  # and no room is wasted
    said = "".join(prompts)
    assert all(sentence in said for passage in passages for sentence in passage.split(".")[:3])
    (rows,) = family.read([("How long?", text, *passages)])
    each = np.array([bare(folder, prompt, text) for prompt in prompts])
    assert rows[:, 2].tolist() == pytest.approx(each[:, :, 2].min(axis=0), abs=2e-4)
    assert (each[:, :, 2].max(axis=0) - each[:, :, 2].min(axis=0)).max() > 0.01


def test_4k_tokens_are_one_input(modern: Path) -> None:
    family: Any = family_of(modern)
    passages = [words(1200, seed) for seed in range(3)]
    inputs: list[int] = []
    run = family.loaded.run

    def noted(ids: Any, forward: Any) -> Any:
        inputs.extend(map(len, ids))
        return run(ids, forward)

    object.__setattr__(family.loaded, "run", noted)
    (rows,) = family.read([("How long?", words(40, 5), *passages)])
    vars(family.loaded).pop("run")
    assert len(inputs) == 1
    assert 3600 < inputs[0] <= 4096
    assert len(rows) >= 40


def test_the_bias_of_a_label_is_its_probability(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "own", MODERN, ("hallucinated", "supported"), [0.3, 1.3])
    said = supports(family_of(folder), asked_of(["the lamp is free", "a lamp"], ["the lamp"]))
    assert [each.value for each in said] == pytest.approx([softmax([0.3, 1.3])[1]] * 2, abs=1e-4)
    assert [each.passage for each in said] == [0, 0]
    assert not any(each.unsupported for each in said)


def test_everything_unsupported_is_one_span_a_claim(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "own", MODERN, LABELS, [0.0, 2.0])
    first, second = supports(family_of(folder), asked_of(["the lamp is free.", "a lamp"], ["oak"]))
    assert first.value == pytest.approx(softmax([0.0, 2.0])[0], abs=1e-4)
    assert first.passage is None
    assert [(words.start, words.end) for words in (*first.unsupported, *second.unsupported)] == [(0, 17), (0, 6)]
    assert first.unsupported[0].probability == pytest.approx(softmax([0.0, 2.0])[1], abs=1e-4)
    assert first.reason == 'not supported: "the lamp is free."'


def test_a_text_that_leaves_no_room_is_not_judged(modern: Path) -> None:
    said = supports(family_of(modern), asked_of([words(4000, 1)], [words(900, 2)]))
    why = "the model reads at most 4096 tokens: no room for a passage beside this text"
    assert [(each.value, each.reason) for each in said] == [(None, why)]


def made_up(text: str, flagged: dict[str, float]) -> Any:
    """Return a reading of ``text`` whose words are unsupported by ``flagged``, each with the blank before it."""
    rows, at = [], 0
    for word in text.split():
        start = text.index(word, at)
        rows.append((max(0, start - 1), start + len(word), flagged.get(word, 0.1)))
        at = start + len(word)
    return np.array(rows)


def test_spans_are_those_words_and_no_blank() -> None:
    text = "It takes 45 long days. It is free."
    asked = AskedSupport("", text, ((0, 22), (23, 34)), ("a", "b"))
    family: Any = TokenClassifier(None, None, 0)  # type: ignore[arg-type]  # no model is asked
    first, second = family.supports(asked, [made_up(text, {"45": 0.9, "long": 0.6, "free.": 0.5})])
    assert first.unsupported == (UnsupportedWords(9, 16, 0.9),)
    assert text[9:16] == "45 long"
    assert first.reason == 'not supported: "45 long"'
    assert (first.value, second.value) == (pytest.approx(0.1), pytest.approx(0.5))
    assert second.unsupported == ()


def test_a_span_over_two_claims_is_cut_between_them() -> None:
    text = "a lamp. the oak"
    asked = AskedSupport("", text, ((0, 7), (8, 15)), ("a",))
    family: Any = TokenClassifier(None, None, 0)  # type: ignore[arg-type]  # no model is asked
    first, second = family.supports(asked, [made_up(text, {"lamp.": 0.8, "the": 0.7})])
    assert first.unsupported == (UnsupportedWords(2, 7, 0.8),)
    assert second.unsupported == (UnsupportedWords(0, 3, 0.7),)
