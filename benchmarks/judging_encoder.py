"""What the encoder judge adds to the time of its bare model: 200 answers, five chunks each, faithfulness.

    python benchmarks/judging_encoder.py [--rounds 7] [--only MODEL]

The models are tiny and random: of the work, as much as possible is ours. Bare is transformers alone: every claim and
chunk tokenized in one call, batches of similar length, softmax, maximum over the chunks. The judge is asked by the
measure, 64 answers in flight, with a store that is empty at first. Both run in turn, and the quickest round counts,
since other work on the machine only adds. With the kept readings, the same is judged again without the model.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from side_by_side import show

from rag_harness.core.settings import Settings
from rag_harness.evaluation.judges.encoder import EncoderJudge, _prompt, create
from rag_harness.evaluation.judges.factory import judged
from rag_harness.evaluation.measures.judged import Faithfulness
from rag_harness.evaluation.measures.opinion import Material
from rag_harness.models.array_store import StoreRoom
from rag_harness.models.endpoints import token_batches
from tests.unit.evaluation.judges.encoder.tiny_models import WORDS, save_model

ANSWERS, CHUNKS, SENTENCES, IN_FLIGHT = 200, 5, 3, 64
MODELS = {
    "MiniCheck-RoBERTa-Large": "RobertaForSequenceClassification",
    "nli-deberta-v3-base": "DebertaV2ForSequenceClassification",
    "lettucedect-large-modernbert-en-v1": "ModernBertForTokenClassification",
}


class Parts:
    """The parts of a run that the judge asks for."""

    def __init__(self, folder: Path, model: Path) -> None:
        self.settings = Settings(rootdir=str(folder), profile="mock", judge="encoder", judge_model=str(model))
        self.stores = StoreRoom(self.settings)


def materials() -> list[Material]:
    """Return answers of three sentences to chunks of about 130 words, none of them twice."""
    draw = random.Random(0)

    def sentence(words: int) -> str:
        return " ".join(draw.choice(WORDS[:45]) for _ in range(words)).capitalize() + "."

    return [
        Material(
            "How long does a refund take?",
            " ".join(sentence(12) for _ in range(SENTENCES)),
            tuple(" ".join(sentence(13) for _ in range(10)) for _ in range(CHUNKS)),
        )
        for _ in range(ANSWERS)
    ]


def bare_pairs(tokenizer: Any, model: Any, asked: Sequence[Material], joined: bool) -> None:
    import torch

    pairs = [
        (chunk, f"{claim.strip()}.")
        for each in asked
        for claim in each.answer.split(".")[:-1]
        for chunk in each.contexts
    ]
    if joined:
        encoded = tokenizer([f"{chunk}{tokenizer.eos_token}{claim}" for chunk, claim in pairs])["input_ids"]
    else:
        encoded = tokenizer(*map(list, zip(*pairs, strict=True)))["input_ids"]
    found = torch.empty(len(pairs))
    for places in token_batches([len(ids) for ids in encoded]):
        batch = tokenizer.pad({"input_ids": [encoded[place] for place in places]}, return_tensors="pt")
        with torch.inference_mode():
            logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
        found[places] = logits.softmax(-1)[:, 1]
    found.reshape(-1, CHUNKS).max(dim=1)


def bare_tokens(tokenizer: Any, model: Any, asked: Sequence[Material], prompt: Callable[..., str]) -> None:
    import torch

    prompts = [prompt(each.question, each.contexts) for each in asked]
    encoded = tokenizer(prompts, [each.answer for each in asked], return_offsets_mapping=True)
    for places in token_batches([len(ids) for ids in encoded["input_ids"]]):
        batch = tokenizer.pad({"input_ids": [encoded["input_ids"][place] for place in places]}, return_tensors="pt")
        with torch.inference_mode():
            logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
        logits.softmax(-1)[:, :, 1].numpy()


async def all_judged(judge: EncoderJudge, asked: Sequence[Material]) -> list[float | None]:
    slots = asyncio.Semaphore(IN_FLIGHT)

    async def one(material: Material) -> float | None:
        async with slots:
            return (await judged(material, [Faithfulness()], judge))["faithfulness"].value

    return await asyncio.gather(*map(one, asked))


def timed(work: Callable[[], Any]) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started


def bare_of(loaded: Any, name: str, asked: Sequence[Material]) -> Callable[[], None]:
    """Return what transformers alone does for these answers."""
    if "lettucedect" in name:
        return lambda: bare_tokens(loaded.tokenizer, loaded.model, asked, _prompt)
    return lambda: bare_pairs(loaded.tokenizer, loaded.model, asked, name.startswith("MiniCheck"))


def row(folder: Path, name: str, architecture: str, rounds: int) -> list[str]:
    """Return the times of one model: bare, judged, judged again from the store, and what is added."""
    asked = materials()
    labels = ("supported", "hallucinated") if "lettucedect" in name else ("unsupported", "supported")
    model = save_model(folder / name, architecture, labels, positions=8192)
    loaded = create(Parts(folder, model))._load()  # type: ignore[arg-type]
    bare, times = bare_of(loaded, name, asked), []
    for number in range(rounds + 1):
        judge = create(Parts(folder / f"{name}-{number}", model))  # type: ignore[arg-type]
        vars(judge._family)["loaded"] = loaded
        ask = partial(asyncio.run, all_judged(judge, asked))
        again = partial(asyncio.run, all_judged(judge, asked))
        times.append([timed(bare), timed(ask), timed(again)])
    best = [min(each) for each in zip(*times[1:], strict=True)]  # the first round warms torch
    return [name, *(f"{seconds:.2f}" for seconds in best), f"{100 * (best[1] / best[0] - 1):+.1f} %"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", choices=MODELS, help="one of the models")
    chosen = parser.parse_args()
    import torch

    torch.set_num_threads(1)  # of tiny layers, two threads wait for each other more than they work
    wanted = {name: MODELS[name] for name in MODELS if chosen.only in (None, name)}
    with TemporaryDirectory() as folder:
        rows = [row(Path(folder), name, architecture, chosen.rounds) for name, architecture in wanted.items()]
    header = ["tiny model", "bare, s", "judged, s", "again, from the store, s", "added"]
    show(f"{ANSWERS} answers of {SENTENCES} sentences x {CHUNKS} chunks", header, rows)


if __name__ == "__main__":
    main()
