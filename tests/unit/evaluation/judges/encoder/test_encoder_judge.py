"""The encoder judge behind measures: what it answers, what it says that it cannot, what is kept."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import ModelOutputError
from rag_harness.core.registry import resolve
from rag_harness.core.settings import Settings
from rag_harness.evaluation.judges import encoder as judge_file
from rag_harness.evaluation.judges.encoder import MOST_CLAIMS, EncoderJudge, create
from rag_harness.evaluation.judges.factory import judged
from rag_harness.evaluation.judges.traits import says_the_same
from rag_harness.evaluation.measures import Score
from rag_harness.evaluation.measures.judged import (
    AnswerCorrectness,
    AnswerRelevancy,
    ContextPrecision,
    ContextRecall,
    Factuality,
    Faithfulness,
    JudgedMeasure,
    NuggetRecall,
)
from rag_harness.evaluation.measures.opinion import Material
from rag_harness.models.array_store import StoreRoom
from tests.unit.evaluation.judges.encoder.test_encoder import DEBERTA, softmax
from tests.unit.evaluation.judges.encoder.tiny_models import save_model
from tests.unit.evaluation.judges.rows import ROW

MODERN = "ModernBertForTokenClassification"
YES = softmax([0.0, 1.0])[1]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    save_model(folder / "pairs", DEBERTA, ("unsupported", "supported"), [0.0, 1.0])
    save_model(folder / "elsewhere" / "pairs", DEBERTA, ("unsupported", "supported"), [1.0, 0.0])
    save_model(folder / "nli-deberta-v3-base", DEBERTA, ("unsupported", "supported"), [0.0, 1.0])
    save_model(folder / "tokens", MODERN, ("supported", "hallucinated"), [0.0, 1.0])
    return folder


class Parts:
    """The parts of a run that an encoder asks for."""

    def __init__(self, folder: Path, model: Path, mode: Any = "auto") -> None:
        self.settings = Settings(
            rootdir=str(folder), profile="mock", mode=mode, judge="encoder", judge_model=str(model)
        )
        self.stores = StoreRoom(self.settings)


def judge_of(folder: Path, model: Path, mode: Any = "auto") -> EncoderJudge:
    return create(Parts(folder, model, mode))  # type: ignore[arg-type]


def scores(judge: Any, measures: Sequence[JudgedMeasure], material: Material = ROW) -> dict[str, Score]:
    return asyncio.run(judged(material, measures, judge))


def test_what_it_says_and_what_it_cannot(tmp_path: Path, models: Path) -> None:
    judge = judge_of(tmp_path, models / "pairs")
    measures = [
        Faithfulness(), Factuality(), ContextRecall(), AnswerCorrectness(), NuggetRecall(), ContextPrecision(),
        AnswerRelevancy(),
    ]  # fmt: skip
    found = scores(judge, measures)
    supported = ["faithfulness", "factuality", "context_recall", "answer_correctness", "nugget_recall"]
    assert [found[name].value for name in supported] == pytest.approx([YES] * 5, abs=1e-4)
    assert found["context_precision"].value == pytest.approx((1 + 2 / 3) / 2)  # by quotes: the first and the third
    relevancy = found["answer_relevancy"]
    assert (relevancy.value, relevancy.undefined) == (None, False)
    assert relevancy.reason == (
        "not judged: an encoder says whether a text supports a claim, and nothing else; relevancy needs another judge"
    )


def test_without_quotes_it_does_not_know_what_was_useful(tmp_path: Path, models: Path) -> None:
    found = scores(judge_of(tmp_path, models / "pairs"), [ContextPrecision()], replace(ROW, quotes=()))
    assert found["context_precision"].value is None
    assert "quotes of the evidence say which chunks are useful, and there are none" in found["context_precision"].reason


def test_claims_are_sentences_with_their_places(tmp_path: Path, models: Path) -> None:
    answer = "1. The lamp costs approx. 5 euros. It is free! \n\n* \nParcels take 3 days."
    found = scores(judge_of(tmp_path, models / "pairs"), [Faithfulness()], replace(ROW, answer=answer))
    claims = found["faithfulness"].detail["claims"]
    said = [answer[claim["start"] : claim["end"]] for claim in claims]
    assert said == ["1. The lamp costs approx. 5 euros.", "It is free!", "Parcels take 3 days."]
    assert [claim["text"] for claim in claims] == said
    assert found["faithfulness"].detail["hallucinated"] is False


def test_words_that_nothing_supports_are_shown(tmp_path: Path, models: Path) -> None:
    found = scores(judge_of(tmp_path, models / "tokens"), [Faithfulness()])["faithfulness"]
    assert found.value == pytest.approx(1 - YES, abs=1e-4)
    assert [claim["reason"] for claim in found.detail["claims"]] == [
        'not supported: "Returns are free for thirty days."',
        'not supported: "Refunds arrive tomorrow morning."',
    ]
    spans = found.detail["unsupported"]
    assert [(each["claim"], each["start"], each["text"]) for each in spans] == [
        (0, 0, "Returns are free for thirty days."),
        (1, 0, "Refunds arrive tomorrow morning."),
    ]
    assert found.detail["hallucinated"] is True


def test_passages_keep_their_numbers(tmp_path: Path, models: Path) -> None:
    material = replace(ROW, contexts=("", " ", "The lamp is free."))
    found = scores(judge_of(tmp_path, models / "pairs"), [Faithfulness()], material)["faithfulness"]
    assert {claim["passage"] for claim in found.detail["claims"]} == {2}


def test_more_claims_than_are_judged_leave_no_score(tmp_path: Path, models: Path) -> None:
    answer = "The lamp is free. " * (MOST_CLAIMS + 1)
    found = scores(judge_of(tmp_path, models / "pairs"), [Faithfulness()], replace(ROW, answer=answer))["faithfulness"]
    assert found.value is None
    assert (
        found.reason == f"1 of {MOST_CLAIMS + 1} claims without a verdict: the first {MOST_CLAIMS} sentences are judged"
    )


def test_texts_beyond_the_limit_are_not_read(tmp_path: Path, models: Path) -> None:
    found = scores(judge_of(tmp_path, models / "pairs"), [Faithfulness()], replace(ROW, contexts=("lamp " * 90_000,)))
    assert "at most 400,000 are judged" in found["faithfulness"].reason


@pytest.mark.parametrize(("name", "is_judged"), [("nli-deberta-v3-base", False), ("pairs", True)])
def test_a_model_of_english_judges_english(tmp_path: Path, models: Path, name: str, is_judged: bool) -> None:
    answer = "Die Rückgabe der Lampe ist innerhalb von dreißig Tagen kostenlos, und das Geld kommt nach einer Woche."
    found = scores(judge_of(tmp_path, models / name), [Faithfulness()], replace(ROW, answer=answer))["faithfulness"]
    assert found.value is not None if is_judged else found.reason == "not judged: language de"


def test_two_judges_of_one_name_keep_apart(tmp_path: Path, models: Path) -> None:
    one, two = judge_of(tmp_path, models / "pairs"), judge_of(tmp_path, models / "elsewhere" / "pairs")
    assert one.revision != two.revision
    said = [scores(each, [Faithfulness()])["faithfulness"].value for each in (one, two, one)]
    assert said == pytest.approx([YES, 1 - YES, YES], abs=1e-4)


def test_a_replay_loads_no_model(tmp_path: Path, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = Parts(tmp_path, models / "pairs", "record")
    said = scores(create(recording), [Faithfulness()])  # type: ignore[arg-type]
    recording.stores.flush()

    def never(*_: Any) -> Any:
        raise AssertionError("a model is loaded")

    monkeypatch.setattr(judge_file, "load_classifier", never)
    replayed = judge_of(tmp_path, models / "pairs", "replay")
    assert scores(replayed, [Faithfulness()]) == said
    other = scores(replayed, [Faithfulness()], replace(ROW, answer="The oak is free."))["faithfulness"]
    assert other.reason.startswith("No recorded judgement of 'The oak is free.' by the encoder judge. Record it: ")


def test_answers_that_wait_share_batches(tmp_path: Path, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = judge_of(tmp_path, models / "pairs")
    asked: list[int] = []
    read = judge._family.read

    def counted(texts: Sequence[Any]) -> Any:
        asked.append(len(texts))
        return read(texts)

    monkeypatch.setattr(judge._family, "read", counted)

    async def all_at_once() -> Any:
        rows = [replace(ROW, answer=f"The lamp number {number} is free.") for number in range(40)]
        return await asyncio.gather(*(judged(row, [Faithfulness()], judge) for row in rows))

    found = asyncio.run(all_at_once())
    assert [score["faithfulness"].value for score in found] == pytest.approx([YES] * 40, abs=1e-4)
    assert sum(asked) == 40 * len(ROW.contexts)  # each once
    assert len(asked) <= 3


def test_a_text_that_cannot_be_read_is_one_answers_alone(
    tmp_path: Path, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = judge_of(tmp_path, models / "pairs")
    read = judge._family.read

    def failing(texts: Sequence[Any]) -> Any:
        if any("zinc" in claim for claim, _ in texts):
            raise ModelOutputError("no numbers")
        return read(texts)

    monkeypatch.setattr(judge._family, "read", failing)

    async def all_at_once() -> Any:
        rows = [replace(ROW, answer=f"The {word} is free.") for word in ("lamp", "zinc", "oak", "fee")]
        return await asyncio.gather(*(judged(row, [Faithfulness()], judge) for row in rows))

    found = [score["faithfulness"] for score in asyncio.run(all_at_once())]
    assert [score.value for score in found] == [pytest.approx(YES, abs=1e-4), None, *[pytest.approx(YES, abs=1e-4)] * 2]
    assert found[1].reason == "no numbers"


def test_it_is_found_by_its_name_and_says_the_same_twice() -> None:
    assert resolve("judges", "encoder") is create
    assert says_the_same(Settings(judge="encoder"))


def test_it_is_made_without_torch(tmp_path: Path, models: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from tests.unit.evaluation.judges.encoder.test_encoder_judge import judge_of\n"
        f"judge = judge_of(Path({str(tmp_path)!r}), Path({str(models / 'pairs')!r}))\n"
        "print(len(judge.revision), 'torch' in sys.modules, 'transformers' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["16", "False", "False"]
