"""The figures of docs/dev/results/validation.md and docs/dev/results/study.md that pytest's own output does not show.

    python benchmarks/validation_retrieval.py slices RUN            a saved run by query type and by difficulty
    python benchmarks/validation_retrieval.py pair RUN RUN [SUITE SUITE]     paired difference, p not adjusted
    python benchmarks/validation_retrieval.py bm25 BEIR             steps from bm25s' defaults to Lucene's analysis

RUN is a file that --rag-save wrote, BEIR a folder or zip.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from rag_harness.data.beir import BeirDataset, read_beir
from rag_harness.evaluation.measures.ranking import evaluate
from rag_harness.retrieval.bm25 import K1, B, bm25_words
from rag_harness.stats import difference_interval, mean_or_none, permutation_test
from rag_harness.tables.reader import load_saved_run
from rag_harness.tables.summary import table

MEASURES = (
    "recall@5", "mrr@10", "citation_recall", "evidence_recall", "token_f1", "abstention_rate", "false_abstention_rate",
)  # fmt: skip
PAIRED = (
    "recall@5", "recall@10", "mrr@10", "ndcg@10", "citation_recall", "evidence_recall", "token_f1",
    "false_abstention_rate",
)  # fmt: skip
BEST = 1000

Analysis = Callable[[str], list[str]]


def slices(run: str) -> None:
    """Print each suite's measures: all cases, by query type, by difficulty."""
    for name, suite in load_saved_run(Path(run)).suites.items():
        rows: list[tuple[str, ...]] = [(name, "n", *MEASURES)]
        keys = {(key, value) for case in suite.cases.values() for key, value in case.slices.items()}
        wanted = sorted((k, v) for k, v in keys if k in ("query_type", "difficulty"))
        for where in [{}, *({key: value} for key, value in reversed(wanted))]:
            means = (mean_or_none(suite.values(measure, where).values()) for measure in MEASURES)
            shown = ("-" if mean is None else f"{mean:.3f}" for mean in means)
            rows.append((" ".join(where.values()) or "all", str(suite.total_of(where)), *shown))
        print("\n".join(table(rows)), end="\n\n")


def pair(before: str, now: str, suite: str = "golden", other: str = "") -> None:
    """Print the second run's difference to the first, measure by measure."""
    rows: list[tuple[str, ...]] = [("measure", "before", "now", "difference", "95 % interval", "p", "n", "differ")]
    old, new = load_saved_run(Path(before)).suites[suite], load_saved_run(Path(now)).suites[other or suite]
    for measure in PAIRED:
        a, b = new.values(measure, {}), old.values(measure, {})
        if both := sorted(a.keys() & b.keys()):
            rows.append((measure, *_cells([a[each] for each in both], [b[each] for each in both])))
    print("\n".join(table(rows)))


def _cells(now: list[float], before: list[float]) -> tuple[str, ...]:
    interval, means = (
        difference_interval([a - b for a, b in zip(now, before, strict=True)], (-1, 1)),
        (np.mean(before), np.mean(now)),
    )
    differ = sum(abs(a - b) > 1e-12 for a, b in zip(now, before, strict=True))
    bounds = f"[{interval.low:+.4f}, {interval.high:+.4f}]"
    shown = f"{means[0]:.4f}", f"{means[1]:.4f}", f"{means[1] - means[0]:+.4f}", bounds
    return (*shown, f"{permutation_test(now, before):.4f}", str(len(now)), str(differ))


def bm25(path: str) -> None:
    """Print nDCG@10 of BM25 for each step between bm25s' own analysis and Anserini's."""
    data = read_beir(Path(path))
    for name, analysis, lengths in (
        ("bm25s: words of two characters up, Snowball", _bm25s, exact),
        ("rag_harness: Lucene's EnglishAnalyzer", bm25_words, exact),
        ("the same, lengths in one byte as Lucene keeps them", bm25_words, in_one_byte),
    ):
        print(f"{ndcg(data, analysis, lengths):.4f}  {name}", flush=True)


def _bm25s(text: str) -> list[str]:
    import bm25s
    import Stemmer

    stop = bm25s.stopwords.STOPWORDS_EN
    found = [word for word in re.findall(r"\b\w\w+\b", text.lower()) if word not in stop]
    stemmed: list[str] = Stemmer.Stemmer("english", 0).stemWords(found)
    return stemmed


def exact(length: int) -> int:
    """Return the length."""
    return length


def in_one_byte(length: int) -> int:
    """Return the length as Lucene's SmallFloat.intToByte4 keeps it: exact to 39, then four significant bits."""
    if length < 40:
        return length
    shift = (length - 24).bit_length() - 4
    return 24 + ((length - 24) >> shift << shift)


def ndcg(data: BeirDataset, analysis: Analysis, lengths: Callable[[int], int]) -> float:
    """Return nDCG@10 of the formula in numpy: no index library between the text and the figure."""
    counted = [Counter(analysis(each.text)) for each in data.documents]
    sizes = np.array([count.total() for count in counted])
    norms = K1 * (1 - B + B * np.array([lengths(int(size)) for size in sizes]) / sizes.mean())
    postings: dict[str, list[tuple[int, int]]] = {}
    for number, count in enumerate(counted):
        for word, times in count.items():
            postings.setdefault(word, []).append((number, times))
    run = {}
    for query in data.queries:
        scores = np.zeros(len(counted), np.float64)
        for word in analysis(query.text):
            if word in postings:
                found, tf = np.array(postings[word]).T
                idf = np.log(1 + (len(counted) - len(found) + 0.5) / (len(found) + 0.5))
                scores[found] += idf * tf / (tf + norms[found])
        best = [i for i in np.argsort(-scores.astype(np.float32), kind="stable")[:BEST] if scores[i] > 0]
        run[query.query_id] = [data.documents[i].doc_id for i in best]
    return float(np.mean(list(evaluate(run, data.qrels, ["ndcg@10"])["ndcg@10"].values())))


if __name__ == "__main__":
    commands: dict[str, Callable[..., None]] = {"slices": slices, "pair": pair, "bm25": bm25}
    commands[sys.argv[1]](*sys.argv[2:])
