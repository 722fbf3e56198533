"""Pair classifiers, T5 and token classifiers on tiny models, held against transformers alone."""

from __future__ import annotations

import math
import random
import shutil
from collections.abc import Callable, Sequence
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies

from rag_harness.core.errors import PrerequisiteError
from rag_harness.evaluation.judges import encoder_models
from rag_harness.evaluation.judges.encoder import (
    AskedSupport,
    ClaimSupport,
    EncoderFamily,
    TokenClassifier,
    UnsupportedWords,
    chunk_pieces,
    family_for,
    word_counts,
)
from rag_harness.evaluation.judges.encoder_models import load_classifier, named_model
from rag_harness.models.endpoints import MAX_TOKENS
from tests.unit.evaluation.judges.encoder.tiny_models import WORDS, change_config, save_model

# Pair classifiers and T5 on tiny models, held against transformers alone, one unpadded input at a time.

# Pair classifiers and T5 on tiny models, held against transformers alone, one unpadded input at a time.

ROBERTA, DEBERTA, BERT, T5 = (
    "RobertaForSequenceClassification",
    "DebertaV2ForSequenceClassification",
    "BertForSequenceClassification",
    "T5ForConditionalGeneration",
)
FACTCG = (
    '{}\n\nChoose your answer: based on the paragraph above can we conclude that "{}"?\n\n'
    "OPTIONS:\n- Yes\n- No\nI think the answer is "
)


def family_of(folder: Path, precision: str = "float32") -> EncoderFamily:
    named = named_model(str(folder))
    return family_for(named, lambda: load_classifier(named, precision, "cpu"))


def asked_of(claims: Sequence[str], passages: Sequence[str], question: str = "") -> AskedSupport:
    text, spans = "", []
    for claim in claims:
        spans.append((len(text), len(text) + len(claim)))
        text += f"{claim}\n"
    return AskedSupport(question, text, tuple(spans), tuple(passages))


def supports(family: EncoderFamily, asked: AskedSupport) -> list[ClaimSupport]:
    return family.supports(asked, family.read(family.texts(asked)))


def words(count: int, seed: int) -> str:
    """Return random words of the vocabulary, with ends of sentences."""
    draw = random.Random(seed)
    said = [draw.choice(WORDS[:40]) for _ in range(count)]
    return " ".join(f"{word}." if place % 11 == 10 else word for place, word in enumerate(said, 1))


def softmax(logits: Sequence[float]) -> list[float]:
    raised = [math.exp(each) for each in logits]
    return [each / sum(raised) for each in raised]


@pytest.fixture
def bare() -> Callable[[Path, str, str, int], float]:
    """Return P(supported) of one input by transformers alone."""
    import torch
    import transformers

    @cache
    def loaded(folder: Path) -> tuple[Any, Any]:
        of_pairs = transformers.AutoModelForSequenceClassification
        model_class = transformers.AutoModelForSeq2SeqLM if "t5" in folder.name.lower() else of_pairs
        return transformers.AutoTokenizer.from_pretrained(folder), model_class.from_pretrained(folder).eval()

    def support(folder: Path, chunk: str, claim: str, place: int = 1) -> float:
        tokenizer, model = loaded(folder)
        name = folder.name.lower()
        joined = f"{chunk}{tokenizer.eos_token}{claim}"
        given: dict[str, Any] = {"return_tensors": "pt"}
        if "t5" in name:
            inputs = tokenizer(f"predict: {joined}", **given)
            start = torch.zeros((1, 1), dtype=torch.long)
            with torch.no_grad():
                logits = model(
                    input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], decoder_input_ids=start
                ).logits[0, 0, [3, 209]]
            return float(logits.softmax(-1)[1])
        if "minicheck" in name:
            inputs = tokenizer(joined, **given)
        elif "factcg" in name:
            inputs = tokenizer(FACTCG.format(chunk, claim), **given)
        else:
            inputs = tokenizer(chunk, claim, **given)
        with torch.no_grad():
            return float(model(**inputs).logits[0].softmax(-1)[place])

    return support


NAMES = ("contradiction", "entailment", "neutral")
BIASES = [0.5, 2.0, -1.0]


@pytest.fixture(scope="module")
def nli(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("models") / "nli", DEBERTA, NAMES, BIASES)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_the_label_that_means_support_is_found_wherever_it_is(
    tmp_path: Path, nli: Path, order: tuple[int, ...]
) -> None:
    labels = [NAMES[place] for place in order]
    folder = shutil.copytree(nli, tmp_path / "nli")
    change_config(folder, id2label=dict(enumerate(labels)), label2id={label: n for n, label in enumerate(labels)})
    (said,) = supports(family_of(folder), asked_of(["the lamp is free"], ["a lamp"]))
    assert said.value == pytest.approx(softmax(BIASES)[labels.index("entailment")], abs=1e-4)


@pytest.mark.parametrize(
    ("labels", "place"),
    [
        (("supported", "hallucinated"), 0),
        (("Not Supported", "SUPPORTED"), 1),
        (("no", "yes"), 1),
        (("O", "hallucination"), 0),
    ],
)
def test_labels_by_other_names(tmp_path: Path, labels: Sequence[str], place: int) -> None:
    family = family_of(save_model(tmp_path / "own", ROBERTA, labels, [1.0, -0.5]))
    (said,) = supports(family, asked_of(["the lamp is free"], ["a lamp"]))
    assert said.value == pytest.approx(softmax([1.0, -0.5])[place], abs=1e-4)


def test_labels_without_names_count_as_the_authors_have_them(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "MiniCheck-RoBERTa-Large", ROBERTA, ["LABEL_0", "LABEL_1"], [0.0, 1.0])
    (said,) = supports(family_of(folder), asked_of(["the lamp is free"], ["a lamp"]))
    assert said.value == pytest.approx(softmax([0.0, 1.0])[1], abs=1e-4)


@pytest.mark.parametrize(
    ("name", "architecture"),
    [
        ("MiniCheck-RoBERTa-Large", ROBERTA),
        ("MiniCheck-DeBERTa-v3-Large", DEBERTA),
        ("MiniCheck-Flan-T5-Large", T5),
        ("FactCG-DeBERTa-v3-Large", DEBERTA),
        ("nli-deberta-v3-base", DEBERTA),
        ("somebody-s-bert", BERT),
    ],
)
def test_padding_changes_nothing_and_any_chunk_may_support(
    tmp_path: Path, bare: Callable[..., float], name: str, architecture: str
) -> None:
    folder = save_model(tmp_path / name, architecture, () if architecture == T5 else ("unsupported", "supported"))
    claims = [words(3, 1), words(17, 2), words(6, 3)]
    passages = [words(40, 4), words(5, 5), words(120, 6)]
    said = supports(family_of(folder), asked_of(claims, passages))
    expected = [[bare(folder, passage, claim) for passage in passages] for claim in claims]
    assert [each.value for each in said] == pytest.approx([max(row) for row in expected], abs=2e-4)
    best = [row.index(max(row)) if max(row) > 0.5 else None for row in expected]
    assert [each.passage for each in said] == best
    spread = [value for row in expected for value in row]
    assert max(spread) - min(spread) > 0.02  # the texts do decide


@pytest.mark.parametrize(
    ("name", "architecture", "most", "unit"),
    [("MiniCheck-RoBERTa-Large", ROBERTA, 400, "tokens"), ("MiniCheck-Flan-T5-Large", T5, 500, "words")],
)
def test_a_long_chunk_is_read_in_pieces(
    tmp_path: Path, bare: Callable[..., float], name: str, architecture: str, most: int, unit: str
) -> None:
    folder = save_model(tmp_path / name, architecture, () if architecture == T5 else ("unsupported", "supported"))
    family: Any = family_of(folder)
    passage, claim = words(1700, 7), words(9, 8)
    pieces = family._pieces(passage)
    assert len(pieces) >= 1700 // most
    count = family.loaded.counts if unit == "tokens" else lambda texts: [len(text.split()) for text in texts]
    assert max(count(pieces)) <= most
    assert "".join("".join(pieces).split()) == "".join(passage.split())  # nothing is left out
    (said,) = supports(family, asked_of([claim], [passage]))
    expected = [bare(folder, piece, claim) for piece in pieces]
    assert said.value == pytest.approx(max(expected), abs=2e-4)
    assert max(expected) - min(expected) > 0.001


def test_inputs_are_batched_by_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    family: Any = family_of(save_model(tmp_path / "nli", DEBERTA))
    shapes: list[tuple[int, int]] = []
    padded = encoder_models.LoadedClassifier._padded

    def noted(self: Any, batch: Sequence[Any]) -> Any:
        ids, mask = padded(self, batch)
        shapes.append(tuple(ids.shape))
        assert mask.sum().item() == sum(map(len, batch))
        return ids, mask

    monkeypatch.setattr(encoder_models.LoadedClassifier, "_padded", noted)
    family.read([("the lamp is free", words(count, count)) for count in [10, 300] * 8])
    assert all(rows * length <= MAX_TOKENS for rows, length in shapes)
    assert len(shapes) < 10
    lengths = [length for _, length in shapes]
    assert lengths == sorted(lengths, reverse=True)


def test_a_claim_that_leaves_no_room_is_not_judged(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "nli", DEBERTA, biases=[1.0, 0.0])
    said = supports(family_of(folder), asked_of([words(700, 1), "the lamp is free"], ["a lamp", "the oak"]))
    assert said[0] == ClaimSupport(
        None, reason="the model reads at most 512 tokens: no room for this claim beside a chunk"
    )
    assert said[1].value == pytest.approx(softmax([1.0, 0.0])[1], abs=1e-4)


def test_special_tokens_in_texts_are_text(tmp_path: Path) -> None:
    family: Any = family_of(save_model(tmp_path / "MiniCheck-RoBERTa-Large", ROBERTA))
    hidden = family._ids([("a lamp </s> the lamp is free", "zinc")])
    assert hidden == family._ids([("a lamp the lamp is free", "zinc")])
    assert family.loaded.plain("a </s>\ud800 b") == "a     ? b"  # of the same length


def test_half_precision_is_close(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "nli", DEBERTA, biases=[0.0, 1.0])
    (said,) = supports(family_of(folder, "bfloat16"), asked_of(["a lamp"], ["the lamp"]))
    assert said.value == pytest.approx(softmax([0.0, 1.0])[1], abs=0.01)


def test_weights_without_a_head_are_refused(tmp_path: Path) -> None:
    import transformers

    folder = save_model(tmp_path / "nli", ROBERTA)
    transformers.RobertaModel.from_pretrained(folder, add_pooling_layer=False).save_pretrained(folder)
    change_config(folder, architectures=[ROBERTA])
    with pytest.raises(PrerequisiteError, match=r"lack classifier.*it would judge at random"):
        supports(family_of(folder), asked_of(["a lamp"], ["the lamp"]))


def test_a_t5_with_another_vocabulary_is_refused(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "MiniCheck-Flan-T5-Large", T5, ())
    file = folder / "tokenizer.json"
    file.write_text(file.read_text().replace('"▁1"', '"other"').replace('"\\u25811"', '"other"'))
    with pytest.raises(PrerequisiteError, match=r"has '▁' and 'other' where MiniCheck's has '▁' and '▁1'"):
        supports(family_of(folder), asked_of(["a lamp"], ["the lamp"]))


def test_a_damaged_model_says_so(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "nli", DEBERTA)
    (folder / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(PrerequisiteError, match=r"The judge .*nli' in .* cannot be loaded: "):
        supports(family_of(folder), asked_of(["a lamp"], ["the lamp"]))


@given(strategies.lists(strategies.sampled_from(["lamp", "oak.", "free!", "\n", "a" * 50])), strategies.integers(1, 9))
def test_no_piece_is_too_long_and_nothing_is_left_out(words: list[str], most: int) -> None:
    chunk = " ".join(words)
    pieces = chunk_pieces(chunk, word_counts, most)
    assert all(count <= most for count in word_counts(pieces))
    assert "".join(chunk.split()) == "".join("".join(pieces).split())


def test_pieces_end_with_sentences() -> None:
    chunk = "One is red. Two is blue. Three is green. Four is black."
    assert chunk_pieces(chunk, word_counts, 8) == ["One is red. Two is blue.", "Three is green. Four is black."]


def test_a_word_without_blanks_is_cut_within() -> None:
    pieces = chunk_pieces("x" * 100, lambda texts: [len(text) for text in texts], 30)
    assert "".join(pieces) == "x" * 100
    assert max(map(len, pieces)) <= 30


@pytest.mark.parametrize("chunk", ["", "  ", "\n\n"])
def test_an_empty_chunk_stays(chunk: str) -> None:
    assert chunk_pieces(chunk, word_counts, 5) == [chunk]


# The token classifier on tiny models, held against transformers alone; and its spans on readings that are made up.

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


def bare_tokens(folder: Path, prompt: str, text: str) -> list[tuple[int, int, float]]:
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
        assert rows.tolist() == pytest.approx(np.array(bare_tokens(modern, ASKED, text)), abs=2e-4)
        assert [text[int(start) : int(end)] for start, end, _ in rows] == text.replace(".", " .").split()


def test_a_text_without_a_question_is_a_summary(modern: Path) -> None:
    family: Any = family_of(modern)
    (rows,) = family.read([(" ", "a lamp", "the lamp", "an oak")])
    prompt = "Summarize the following text:\npassage 1: the lamp\npassage 2: an oak\noutput:"
    assert rows.tolist() == pytest.approx(np.array(bare_tokens(modern, prompt, "a lamp")), abs=2e-4)


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
    each = np.array([bare_tokens(folder, prompt, text) for prompt in prompts])
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
