"""Local models: embedding and scoring pairs, beside the library's own defaults.

    python benchmarks/local_models.py [--quick]            needs the extra `local`; half an hour on two cores

With --quick a tenth of the texts and pairs, and no rankings: some minutes.

Ways alternate, so that a machine that slows down slows all of them; times are the median of the rounds, with the
shortest beside it. The cross-encoder has the shape of MiniLM-L6 and random weights, so its times are real and its
scores mean nothing.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import accumulate, chain
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from rag_harness.core.settings.loading import load_settings
from rag_harness.core.types import Chunk, Hit, Matrix
from rag_harness.data.queries import read_queries
from rag_harness.evaluation.measures.ranking import evaluate
from rag_harness.models.array_store import ArrayStore
from rag_harness.models.embedders import DEFAULT_MODEL, SentenceTransformersEmbedder
from rag_harness.models.rerankers import CrossEncoderReranker
from rag_harness.pipelines.parts import RunParts
from rag_harness.records.document_ranking import place_documents

ROOT = Path(__file__).parents[1]
Ways = dict[str, Callable[[], Any]]


def main() -> None:
    import torch

    quick = "--quick" in sys.argv
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}")
    retrieval = RunParts(load_settings({"mode": "replay"}, rootdir=ROOT)).retrieval()
    texts = [chunk.text for chunk in retrieval.chunks]
    rounds = 3 if quick else 5
    embedding(texts, 60 if quick else 600, rounds)
    pairs(texts, 200 if quick else 2000, rounds)
    if not quick:
        rankings(retrieval.chunks)


def embedding(texts: Sequence[str], count: int, rounds: int) -> None:
    """Embed ``count`` texts of 200 to 400 tokens."""
    ours, half = SentenceTransformersEmbedder(), SentenceTransformersEmbedder(precision="bfloat16")
    long = cuts(texts, count, ours)
    plain = plain_model(ours)
    for each in (ours, half):
        each.embed_queries(["loads the weights before the clock starts"])
    ways: Ways = {
        "SentenceTransformer.encode": lambda: plain.encode(long, normalize_embeddings=True, show_progress_bar=False),
        "ours, float32": lambda: ours.embed_documents(long),
        "ours, bfloat16": lambda: half.embed_documents(long),
    }
    compare(f"embed {count} texts of 200 to 400 tokens", ways, rounds, lambda a, b: float((a * b).sum(axis=1).min()))


def plain_model(ours: SentenceTransformersEmbedder) -> Any:
    from sentence_transformers import SentenceTransformer

    plain = SentenceTransformer(str(ours._folder), device="cpu", local_files_only=True)
    plain.max_seq_length = ours.max_tokens
    return plain


def cuts(texts: Sequence[str], count: int, embedder: SentenceTransformersEmbedder) -> list[str]:
    """Cut ``count`` texts of 200 to 400 tokens out of all the chunks' words, one after the other."""
    random = Random(7)
    words = list(chain.from_iterable(text.split() for text in texts))
    ends = [0, *accumulate(tokens - 2 for tokens in embedder.tokenizer().count(words))]
    found: list[str] = []
    while len(found) < count:
        start, wanted = random.randrange(len(words) - 400), random.randint(200, 400)
        stop = next(n for n in range(start, len(words)) if ends[n + 1] - ends[start] + 2 > wanted)
        found.append(" ".join(words[start:stop]))
    return found


def pairs(texts: Sequence[str], count: int, rounds: int) -> None:
    """Score ``count`` pairs of a query and a chunk, 20 chunks a query."""
    random = Random(7)
    queries = [case.query.text for case in read_queries(ROOT / "data/kb/queries.jsonl", ROOT / "data/kb")]
    requests = [(queries[n], hits(random.sample(list(texts), 20))) for n in range(count // 20)]
    asked = [(query, hit.chunk.text) for query, found in requests for hit in found]
    with tempfile.TemporaryDirectory() as folder:
        save_cross_encoder(Path(folder))
        ways = pair_ways(folder, requests, asked)
        compare(f"score {count} pairs", ways, rounds, lambda a, b: 1 - float(np.abs(a - b).max()))


def pair_ways(folder: str, requests: Any, asked: list[tuple[str, str]]) -> Ways:
    """Return the ways to score; each of ours starts with an empty store."""
    from sentence_transformers import CrossEncoder

    plain = CrossEncoder(folder, device="cpu")

    def ours(precision: str) -> Callable[[], Any]:
        reranker = CrossEncoderReranker(folder, ArrayStore([]), precision=precision)
        reranker.rerank("loads the weights", hits(["before the clock starts"]))

        def score() -> Any:
            reranker._pairs = ArrayStore([])
            reranked = reranker.rerank_many(requests)
            scores = {
                (query, hit.chunk.text): hit.rerank_score
                for (query, _), found in zip(requests, reranked, strict=True)
                for hit in found
            }
            return np.array([scores[pair] for pair in asked])

        return score

    return {
        "CrossEncoder.predict": lambda: plain.predict(asked, show_progress_bar=False),
        "ours, float32": ours("float32"),
        "ours, bfloat16": ours("bfloat16"),
    }


def hits(texts: Sequence[str]) -> list[Hit]:
    return [Hit(Chunk(f"{n}", "page.md", text, 0, len(text)), 1.0, n) for n, text in enumerate(texts, 1)]


def save_cross_encoder(folder: Path) -> None:
    """Save a cross-encoder of MiniLM-L6's shape with random weights and MiniLM's own tokenizer."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    torch.manual_seed(7)
    tokenizer = AutoTokenizer.from_pretrained(SentenceTransformersEmbedder(DEFAULT_MODEL)._folder)
    tokenizer.model_max_length = 512
    tokenizer.save_pretrained(folder)
    shape = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}
    config = BertConfig(vocab_size=len(tokenizer), num_labels=1, initializer_range=0.1, **shape)
    BertForSequenceClassification(config).save_pretrained(folder)


def compare(title: str, ways: Ways, rounds: int, agreement: Callable[[Any, Any], float]) -> None:
    """Time each way in turn and print a table; the first way is what the others are held against."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    results: dict[str, Any] = {}
    for _ in range(rounds):
        for name, work in ways.items():
            started = time.perf_counter()
            results[name] = work()
            times[name].append(time.perf_counter() - started)
    first = next(iter(ways))
    print(f"\n{title}\n{'':28}{'median':>9}{'shortest':>10}{'faster':>9}   agreement")
    for name, taken in times.items():
        faster = statistics.median(times[first]) / statistics.median(taken)
        close = agreement(results[first], results[name])
        print(f"{name:28}{statistics.median(taken):7.1f} s{min(taken):8.1f} s{faster:7.2f} ×   {close:.7f}", flush=True)


def rankings(chunks: Sequence[Chunk]) -> None:
    """Rank all chunks for each query that has gold, with the vectors of each way."""
    cases = [case for case in read_queries(ROOT / "data/kb/queries.jsonl", ROOT / "data/kb") if case.context_reference]
    texts, queries = [chunk.text for chunk in chunks], [case.query.text for case in cases]
    float32, bfloat16 = SentenceTransformersEmbedder(), SentenceTransformersEmbedder(precision="bfloat16")
    plain = plain_model(float32)
    cosines: dict[str, Matrix] = {
        "SentenceTransformer.encode": plain.encode(queries) @ plain.encode(texts).T,
        "ours, float32": float32.embed_queries(queries) @ float32.embed_documents(texts).T,
        "ours, bfloat16": bfloat16.embed_queries(queries) @ bfloat16.embed_documents(texts).T,
    }
    print(f"\nrank {len(texts)} chunks for {len(cases)} queries\n{'':28}{'recall@5':>9}{'mrr@10':>9}   worst Spearman")
    first = next(iter(cosines.values()))
    for name, scores in cosines.items():
        found = [place_documents([chunks[n].chunk_id for n in row]) for row in np.argsort(-scores, axis=1)[:, :10]]
        ids = [case.query.query_id for case in cases]
        qrels = {case.query.query_id: case.qrels for case in cases}
        values = evaluate(dict(zip(ids, found, strict=True)), qrels, ["recall@5", "mrr@10"])
        recall_5, mrr_10 = (statistics.mean(by_query.values()) for by_query in values.values())
        worst = min(map(spearman, first, scores))
        print(f"{name:28}{recall_5:9.4f}{mrr_10:9.4f}   {worst:.7f}")


def spearman(one: Any, other: Any) -> float:
    """Return the correlation of two rankings of the same things."""
    return float(np.corrcoef(np.argsort(np.argsort(one)), np.argsort(np.argsort(other)))[0, 1])


if __name__ == "__main__":
    main()
