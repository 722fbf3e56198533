"""The embedded judge's time for an answer: computed with the vectors of its sources in memory, and replayed.

    pytest -m e3
    python benchmarks/judging_embedded.py output/e3_filtered_rag.jsonl

Each answer is asked for all that faithfulness, factuality, context precision and answer relevancy need. The first round
embeds the sources; the second computes every judgement again, as other experiments with the same chunks do; the third
reads what the second has kept. What a forward pass over 200 word pieces takes stands beside, for machines differ.

Last, how well the alignment of a chunk with the ground truth predicts whether the chunk has an evidence quote. Where
there are quotes, these decide. The threshold for cases without quotes is chosen here.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from side_by_side import show

from rag_harness.core.concurrency import inline
from rag_harness.evaluation.judges.embedded.judge import USEFUL_FROM, EmbeddedOpinion
from rag_harness.evaluation.judges.embedded.judgement import JudgementReading, KeptJudgements
from rag_harness.evaluation.measures.opinion import Material
from rag_harness.models.array_store import ArrayStore, CachedEmbedder
from rag_harness.models.embedders import SentenceTransformersEmbedder

KB = Path(__file__).parents[1] / "data/kb"


def materials(rows: Path) -> Iterator[Material]:
    """Yield what was answered, with its gold."""
    questions = [json.loads(line) for line in (KB / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    quotes = {row["query_id"]: [each["quote"] for each in row.get("evidence", ())] for row in questions}
    for line in rows.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        pages = [(KB / name).read_text(encoding="utf-8") for name in row["context_reference"]]
        contexts = tuple(chunk["text"] for chunk in row["retrieved_chunks"])
        yield Material(
            row["query"],
            row["llm_answer"],
            contexts,
            row["ground_truth"],
            tuple(pages),
            tuple(quotes[row["query_id"]]),
            abstained=row["abstained"],
        )


async def judged(
    all_materials: Sequence[Material], reading: JudgementReading, kept: KeptJudgements, alone: bool
) -> None:
    for material in all_materials:
        opinion = EmbeddedOpinion(material, reading, kept)
        await opinion.supported("answer", "contexts")
        if alone:
            continue
        await opinion.supported("answer", "gold_pages")
        await opinion.usefulness()
        await opinion.relevancy()


def timed(
    name: str, all_materials: Sequence[Material], reading: JudgementReading, kept: KeptJudgements, alone: bool = False
) -> list[str]:
    wall, cpu = perf_counter(), process_time()
    asyncio.run(judged(all_materials, reading, kept, alone))
    count = len(all_materials)
    return [name, f"{1000 * (perf_counter() - wall) / count:.2f}", f"{1000 * (process_time() - cpu) / count:.2f}"]


def separation(all_materials: Sequence[Material], reading: JudgementReading) -> list[list[str]]:
    """Return, by threshold, how many chunks with a quote and how many without one are told right."""
    scores, holds = [], []
    for material in all_materials:
        if material.quotes and material.ground_truth:
            quoted = [
                any(" ".join(q.split()) in " ".join(text.split()) for q in material.quotes)
                for text in material.contexts
            ]
            scores += reading.alignments(material.ground_truth, material.contexts)[:, 0].tolist()
            holds += quoted
    values, quote = np.array(scores), np.array(holds)
    rows = []
    for threshold in np.arange(0.40, 0.86, 0.05):
        right, wrong = float((values >= threshold)[quote].mean()), float((values >= threshold)[~quote].mean())
        rows.append([f"{threshold:.2f}", f"{right:.2f}", f"{1 - wrong:.2f}", f"{(right + 1 - wrong) / 2:.3f}"])
    return rows


def forward_pass(embedder: Any) -> float:
    """Return the milliseconds of CPU that the model takes for 200 word pieces."""
    text = "word " * 200
    embedder.pieces(text, [])
    started = process_time()
    for _ in range(5):
        embedder.pieces(text, [])
    return 200 * (process_time() - started)


def main() -> None:
    # Under a debugger work is done in place: here too, so that the time is the work's alone.
    inline.set(True)
    found = list(materials(Path(sys.argv[1])))
    model = SentenceTransformersEmbedder()
    with TemporaryDirectory() as folder:
        embedder: Any = CachedEmbedder(model, ArrayStore([], Path(folder) / "vectors"))
        reading, store = JudgementReading(lambda: embedder), ArrayStore([], Path(folder) / "judged")
        rows = [timed("first, sources embedded", found, reading, KeptJudgements(ArrayStore([]), False, ""))]
        fresh: Any = CachedEmbedder(model, ArrayStore([], Path(folder) / "again"))
        vars(reading)["_embedder"] = fresh
        rows.append(timed("again, sources in memory", found, reading, KeptJudgements(store, True, "")))
        nothing = KeptJudgements(ArrayStore([]), False, "")
        rows.append(timed("the same, faithfulness alone", found, reading, nothing, alone=True))
        store.flush()
        replayed = KeptJudgements(ArrayStore([Path(folder) / "judged"]), False, "nothing may be computed")
        rows.append(timed("replayed", found, JudgementReading(lambda: embedder), replayed))
        words = np.mean([len(material.answer.split()) for material in found])
        show(f"{len(found)} answers of {words:.0f} words", ["", "ms an answer", "CPU ms an answer"], rows)
        print(f"a forward pass over 200 word pieces: {forward_pass(model):.0f} ms of CPU")
        header = ["threshold", "with a quote", "without", "balanced"]
        show(f"alignment with the ground truth; in use {USEFUL_FROM}", header, separation(found, reading))


if __name__ == "__main__":
    main()
