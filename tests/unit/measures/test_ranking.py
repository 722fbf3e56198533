"""The ranking measures agree with trec_eval, by way of ir-measures, on whatever hypothesis thinks of."""

from __future__ import annotations

import csv
import io
import random
import zipfile
from pathlib import Path

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import AP, RR, P, R, Rprec, Success, nDCG

from rag_harness.errors import SettingsError
from rag_harness.measures import ranking

Run = dict[str, list[str]]
Qrels = dict[str, dict[str, int]]
Scores = dict[str, dict[str, float]]

NFCORPUS = Path(__file__).parents[3].parent / "shared/data/nfcorpus/nfcorpus.zip"
SINGLE = {
    "recall": ranking.recall,
    "precision": ranking.precision,
    "hit": ranking.hit,
    "all": ranking.all_found,
    "mrr": ranking.mrr,
    "map": ranking.average_precision,
    "ndcg": ranking.ndcg,
}
TREC = {"recall": R, "precision": P, "hit": Success, "map": AP, "ndcg": nDCG}

doc_ids = st.integers(0, 14).map("d{}".format)
query_ids = st.sampled_from(["q1", "q2", "q3"])
runs = st.dictionaries(query_ids, st.lists(doc_ids, max_size=12))
qrels_of = st.dictionaries(query_ids, st.dictionaries(doc_ids, st.integers(-2, 4), max_size=9))


def trec_eval(run: Run, qrels: Qrels, k: int) -> Scores:
    """Score with pytrec_eval; its RR has no cutoff, so that one is asked about the top k alone."""
    measures = {f"{name}@{k}": measure @ k for name, measure in TREC.items()} | {"r_precision": Rprec}
    unique = {q: ranking.first_hits(ranked) for q, ranked in run.items()}
    top = {q: ranked[:k] for q, ranked in unique.items()}
    found = oracle(unique, qrels, list(measures.values())) | oracle(top, qrels, [RR])
    return {text: found[str(measure)] for text, measure in (measures | {f"mrr@{k}": RR}).items()}


def oracle(run: Run, qrels: Qrels, measures: list[object]) -> Scores:
    scored = {q: dict(zip(ids, ranking.trec_scores(len(ids)), strict=True)) for q, ids in run.items()}
    # pytrec_eval writes outside its arrays on a relevance below 0 (seen as a segmentation fault); 0 means the same.
    judged = {q: {d: max(gain, 0) for d, gain in docs.items()} for q, docs in qrels.items()}
    found: Scores = {str(measure): {} for measure in measures}
    for metric in ir_measures.pytrec_eval.iter_calc(measures, judged, scored):
        found[str(metric.measure)][metric.query_id] = metric.value
    return found


def assert_same(ours: Scores, theirs: Scores) -> None:
    assert ours.keys() == theirs.keys()
    for measure, values in theirs.items():
        assert ours[measure] == pytest.approx(values, abs=1e-9), measure


@settings(max_examples=300, deadline=None)
@given(run=runs, qrels=qrels_of.filter(bool), k=st.integers(1, 15))
def test_evaluate_equals_trec_eval(run: Run, qrels: Qrels, k: int) -> None:
    theirs = trec_eval(run, qrels, k)
    assert_same(ranking.evaluate(run, qrels, list(theirs)), theirs)


@settings(max_examples=300, deadline=None)
@given(run=runs, qrels=qrels_of, ks=st.lists(st.integers(1, 15), min_size=1, max_size=3, unique=True))
def test_one_query_equals_many(run: Run, qrels: Qrels, ks: list[int]) -> None:
    texts = [f"{name}@{k}" for name in SINGLE for k in ks]
    batch = ranking.evaluate(run, qrels, texts)
    for q, relevant in qrels.items():
        for text in texts:
            name, k = ranking.parse_measure(text)
            assert k is not None
            assert batch[text][q] == pytest.approx(SINGLE[name](run.get(q, []), relevant, k), abs=1e-12), text


@given(ranked=st.lists(doc_ids), relevant=st.dictionaries(doc_ids, st.integers(-2, 4)))
def test_r_precision_of_one_query_equals_many(ranked: list[str], relevant: dict[str, int]) -> None:
    batch = ranking.evaluate({"q": ranked}, {"q": relevant}, ["r_precision"])
    assert ranking.r_precision(ranked, relevant) == batch["r_precision"]["q"]


@given(ranked=st.lists(doc_ids), relevant=st.dictionaries(doc_ids, st.integers(-2, 4)), k=st.integers(1, 15))
def test_all_is_recall_of_one(ranked: list[str], relevant: dict[str, int], k: int) -> None:
    wanted = {d for d, gain in relevant.items() if gain > 0}
    expected = bool(wanted) and wanted <= set(ranking.first_hits(ranked)[:k])
    assert ranking.all_found(ranked, relevant, k) == float(expected)


@given(run=runs, qrels=qrels_of)
def test_histogram_adds_up_to_the_queries_and_to_mrr(run: Run, qrels: Qrels) -> None:
    counts = ranking.first_relevant_ranks(run, qrels)
    assert sum(counts.values()) == len(qrels)
    reciprocal = ranking.evaluate(run, qrels, ["mrr@100"])["mrr@100"]
    assert sum(n / rank for rank, n in counts.items() if rank) == pytest.approx(sum(reciprocal.values()))


def test_histogram_is_in_order_with_the_misses_last() -> None:
    qrels = {q: {"a": 1} for q in ("q1", "q2", "q3", "q4")}
    run = {"q1": ["x"], "q2": ["x", "x", "a"], "q3": ["a"]}
    assert list(ranking.first_relevant_ranks(run, qrels).items()) == [(1, 1), (2, 1), (None, 2)]


def test_worked_example() -> None:
    ranked, relevant = ["x", "a", "a", "y", "b"], {"a": 2, "b": 1, "c": 1, "y": 0, "z": -1}
    values = {name: measure(ranked, relevant, 4) for name, measure in SINGLE.items()}
    ideal = 2 + 1 / np.log2(3) + 1 / 2
    expected = {"recall": 2 / 3, "precision": 2 / 4, "hit": 1, "all": 0, "mrr": 1 / 2, "map": (1 / 2 + 2 / 4) / 3}
    expected["ndcg"] = (2 / np.log2(3) + 1 / np.log2(5)) / ideal
    assert values == pytest.approx(expected)
    assert ranking.r_precision(ranked, relevant) == pytest.approx(1 / 3)


def test_a_duplicate_in_the_top_lets_the_next_document_in() -> None:
    assert ranking.evaluate({"q": ["x", "x", "a"]}, {"q": {"a": 1}}, ["mrr@2"]) == {"mrr@2": {"q": 0.5}}


def test_a_query_without_an_answer_scores_0_and_an_unknown_query_is_left_out() -> None:
    found = ranking.evaluate({"other": ["a"]}, {"q": {"a": 1}}, ["recall@5", "r_precision"])
    assert found == {"recall@5": {"q": 0.0}, "r_precision": {"q": 0.0}}


def test_nothing_to_evaluate() -> None:
    assert ranking.evaluate({}, {}, ["ndcg@10"]) == {"ndcg@10": {}}
    assert ranking.evaluate({}, {"q": {"a": 1}}, []) == {}


def test_evaluate_reads_its_inputs_only() -> None:
    run, qrels = {"q": ["a", "a"]}, {"q": {"b": 1, "a": 0}}
    ranking.evaluate(run, qrels, ["ndcg@10", "r_precision"])
    assert (run, qrels) == ({"q": ["a", "a"]}, {"q": {"b": 1, "a": 0}})


@pytest.mark.parametrize("text", ["recall@5", "mrr@10", "ndcg@10", "all@3", "r_precision"])
def test_parse_measure_round_trips(text: str) -> None:
    assert str(ranking.parse_measure(text)) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ndgc@10", "Did you mean 'ndcg'"),
        ("", "Unknown measure"),
        ("recall", "needs a cutoff"),
        ("recall@", "needs a cutoff"),
        ("recall@0", "1 or more"),
        ("recall@-1", "1 or more"),
        ("recall@1.5", "1 or more"),
        ("recall@²", "1 or more"),
        ("r_precision@5", "takes none"),
    ],
)
def test_parse_measure_says_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        ranking.parse_measure(text)


def test_every_known_measure_is_computed() -> None:
    texts = [name if name in ranking.NO_CUTOFF else f"{name}@3" for name in ranking.KNOWN_MEASURES]
    assert list(ranking.evaluate({"q": ["a"]}, {"q": {"a": 1}}, texts)) == texts


@pytest.mark.parametrize("n", [0, 1, 100_000])
def test_trec_scores_are_distinct_in_float32(n: int) -> None:
    assert (np.diff(np.array(ranking.trec_scores(n), dtype=np.float32)) < 0).all()


@pytest.mark.parametrize("n", [-1, 2**24 + 1])
def test_trec_scores_refuses_what_float32_cannot_hold(n: int) -> None:
    with pytest.raises(ValueError, match="float32"):
        ranking.trec_scores(n)


def test_trec_eval_keeps_the_order_of_a_long_list() -> None:
    ids = [f"d{number}" for number in range(5000)]
    random.Random(0).shuffle(ids)
    qrels = {"q": {ids[place]: 1 for place in (17, 2500, 4998)}}
    theirs = trec_eval({"q": ids}, qrels, 4999)
    assert theirs["recall@4999"] == {"q": 1.0}
    assert_same(ranking.evaluate({"q": ids}, qrels, list(theirs)), theirs)


@pytest.mark.skipif(not NFCORPUS.exists(), reason=f"needs {NFCORPUS}")
@pytest.mark.parametrize("k", [1, 10, 100, 1000])
def test_nfcorpus_equals_trec_eval(k: int) -> None:
    qrels = nfcorpus_qrels()
    rng = random.Random(0)
    docs = sorted({doc for judged in qrels.values() for doc in judged})
    # Half of what is relevant and as much that is not, as a middling retriever would return it.
    run = {
        q: rng.sample([*list(judged)[::2], *rng.sample(docs, 100)], k=min(100, len(judged)))
        for q, judged in qrels.items()
    }
    theirs = trec_eval(run, qrels, k)
    assert sum(theirs[f"ndcg@{k}"].values()) > 0
    assert_same(ranking.evaluate(run, qrels, list(theirs)), theirs)


def nfcorpus_qrels() -> Qrels:
    with zipfile.ZipFile(NFCORPUS) as archive:
        text = archive.read("nfcorpus/qrels/test.tsv").decode()
    qrels: Qrels = {}
    for row in csv.DictReader(io.StringIO(text), delimiter="\t"):
        qrels.setdefault(row["query-id"], {})[row["corpus-id"]] = int(row["score"])
    return qrels
