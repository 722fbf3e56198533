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

from rag_harness.core.errors import SettingsError
from rag_harness.core.types import Case, Query
from rag_harness.evaluation.measures import RankingMeasure, measure_named, ranking
from rag_harness.evaluation.measures.ranking import evaluate
from rag_harness.evaluation.measures.ranking_arrays import first_hits
from rag_harness.records.document_ranking import document_of, place_documents, ranking_of
from tests.unit.rows import make_chunk, make_row

Run = dict[str, list[str]]
Qrels = dict[str, dict[str, int]]
Scores = dict[str, dict[str, float]]

NFCORPUS = Path(__file__).parents[4].parent / "shared/data/nfcorpus/nfcorpus.zip"
AT_K = ("recall", "precision", "hit", "all", "mrr", "map", "ndcg")
TREC = {"recall": R, "precision": P, "hit": Success, "map": AP, "ndcg": nDCG}

doc_ids = st.integers(0, 14).map("d{}".format)
query_ids = st.sampled_from(["q1", "q2", "q3"])
runs = st.dictionaries(query_ids, st.lists(doc_ids, max_size=12))
qrels_of = st.dictionaries(query_ids, st.dictionaries(doc_ids, st.integers(-2, 4), max_size=9))


def trec_eval(run: Run, qrels: Qrels, k: int) -> Scores:
    """Score with pytrec_eval; its RR has no cutoff, so that one is asked about the top k alone."""
    measures = {f"{name}@{k}": measure @ k for name, measure in TREC.items()} | {"r_precision": Rprec}
    unique = {q: first_hits(ranked) for q, ranked in run.items()}
    top = {q: ranked[:k] for q, ranked in unique.items()}
    found = oracle(unique, qrels, list(measures.values())) | oracle(top, qrels, [RR])
    return {text: found[str(measure)] for text, measure in (measures | {f"mrr@{k}": RR}).items()}


def oracle(run: Run, qrels: Qrels, measures: list[object]) -> Scores:
    scored = {q: dict(zip(ids, range(len(ids), 0, -1), strict=True)) for q, ids in run.items()}
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


@settings(max_examples=150)
@given(run=runs, qrels=qrels_of.filter(bool), k=st.integers(1, 15))
def test_evaluate_equals_trec_eval(run: Run, qrels: Qrels, k: int) -> None:
    theirs = trec_eval(run, qrels, k)
    assert_same(ranking.evaluate(run, qrels, list(theirs)), theirs)


@settings(max_examples=100)
@given(run=runs, qrels=qrels_of, k=st.integers(1, 15))
def test_one_row_equals_many(run: Run, qrels: Qrels, k: int) -> None:
    texts = [*(f"{name}@{k}" for name in AT_K), "r_precision"]
    batch = ranking.evaluate(run, qrels, texts)
    for q, relevant in qrels.items():
        case = Case(Query(q, "?"), qrels=relevant)
        row = make_row(query_id=q, ranking=run.get(q, []))
        for text in texts:
            measure = measure_named(text)
            assert isinstance(measure, RankingMeasure)
            assert measure.score(case, row).value == pytest.approx(batch[text][q], abs=1e-12), text


@given(ranked=st.lists(doc_ids), relevant=st.dictionaries(doc_ids, st.integers(-2, 4)), k=st.integers(1, 15))
def test_all_is_recall_of_one(ranked: list[str], relevant: dict[str, int], k: int) -> None:
    wanted = {d for d, gain in relevant.items() if gain > 0}
    expected = bool(wanted) and wanted <= set(first_hits(ranked)[:k])
    assert ranking.evaluate({"q": ranked}, {"q": relevant}, [f"all@{k}"])[f"all@{k}"]["q"] == float(expected)


def test_worked_example() -> None:
    ranked, relevant = ["x", "a", "a", "y", "b"], {"a": 2, "b": 1, "c": 1, "y": 0, "z": -1}
    ideal = 2 + 1 / np.log2(3) + 1 / 2
    expected = {"recall": 2 / 3, "precision": 2 / 4, "hit": 1, "all": 0, "mrr": 1 / 2, "map": (1 / 2 + 2 / 4) / 3}
    expected["ndcg"] = (2 / np.log2(3) + 1 / np.log2(5)) / ideal
    texts = {name: f"{name}@4" for name in expected} | {"r_precision": "r_precision"}
    found = ranking.evaluate({"q": ranked}, {"q": relevant}, list(texts.values()))
    values = {name: found[text]["q"] for name, text in texts.items()}
    assert values == pytest.approx(expected | {"r_precision": 1 / 3})


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


def test_what_is_no_measure_of_a_ranking_is_refused() -> None:
    with pytest.raises(SettingsError, match="'token_f1' is not of a ranking"):
        ranking.evaluate({}, {}, ["token_f1"])


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


# Hits keep their places when chunks are read as documents.

chunk_ids = st.lists(st.builds("{}#{}".format, st.sampled_from(["a", "a#1", "b", "c/d"]), st.integers(0, 3)))


def test_the_document_is_what_stands_before_the_last_hash() -> None:
    assert document_of("returns.md#chunk_3") == "returns.md"
    assert document_of("c#sharp.md#chunk_0") == "c#sharp.md"
    assert document_of("d7") == "d7"


def test_later_hits_of_a_document_hold_their_place() -> None:
    placed = place_documents(["a#0", "a#1", "a#2", "b#0"])
    assert (placed[0], placed[3]) == ("a", "b")
    closed = first_hits(["a", "a", "a", "b"])
    found = evaluate(
        {"kept": placed, "closed": closed}, {"kept": {"b": 1}, "closed": {"b": 1}}, ["recall@3", "recall@4"]
    )
    # What closing the gaps would have said.
    assert found["recall@3"] == {"kept": 0.0, "closed": 1.0}
    assert found["recall@4"] == {"kept": 1.0, "closed": 1.0}


@given(chunk_ids)
def test_each_document_has_the_rank_of_its_first_hit_and_nothing_else_matches(ids: list[str]) -> None:
    placed, documents = place_documents(ids), [document_of(each) for each in ids]
    assert len(placed) == len(set(placed)) == len(ids)
    for document in ("a", "a#1", "b", "c/d", "a#2"):
        assert (document in placed) == (document in documents)
        assert document not in placed or placed.index(document) == documents.index(document)


def test_the_ranking_is_the_prompts_order_then_the_rest_by_rerank_score() -> None:
    scores = {"p.md#chunk_0": 0.1, "low.md#chunk_0": 0.2, "none.md#chunk_0": None, "high.md#chunk_0": 0.9}
    candidates = [{"chunk_id": chunk, "score": 0.5, "rerank_score": score} for chunk, score in scores.items()]
    row = make_row(retrieved_chunks=[make_chunk("p.md#chunk_0")], candidates=candidates)
    assert ranking_of(row) == ["p.md", "high.md", "low.md", "none.md"]


def test_the_ranking_without_a_reranker_keeps_the_first_stages_order() -> None:
    candidates = [{"chunk_id": f"{page}.md#chunk_3", "score": 0.1} for page in "bac"]
    assert ranking_of(make_row(retrieved_chunks=[], candidates=candidates)) == ["b.md", "a.md", "c.md"]


def test_what_a_case_leaves_out_is_no_hit_and_what_is_below_moves_up() -> None:
    row = make_row(retrieved_chunks=[make_chunk(f"{page}#chunk_0") for page in ("a", "b")], candidates=[])
    assert ranking_of(row, Case(Query("a", "?"), left_out=frozenset({"a"}))) == ["b"]
    assert ranking_of(row, Case(Query("a", "?"))) == ["a", "b"]


def test_names_that_the_row_gives_are_the_ranking() -> None:
    assert ranking_of(make_row(ranking=["returns.md#refunds", "c.md"])) == ("returns.md#refunds", "c.md")
