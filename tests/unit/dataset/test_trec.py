"""What is exported is what trec_eval reads: the same values as our own measures."""

from __future__ import annotations

from math import log2
from pathlib import Path

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import AP, P, R, Rprec, Success, nDCG

from rag_harness.core.errors import DataError
from rag_harness.data.beir import write_qrels, write_run
from rag_harness.evaluation.measures.ranking import evaluate

MEASURES = {
    "recall@5": R @ 5,
    "precision@5": P @ 5,
    "hit@5": Success @ 5,
    "map@5": AP @ 5,
    "ndcg@5": nDCG @ 5,
    "r_precision": Rprec,
}
doc_ids = st.sampled_from([f"docs/page-{number}.md#chunk_{number % 3}" for number in range(12)])
query_ids = st.sampled_from(["q1", "q#2", "ä"])


def trec_eval(run: Path, qrels: Path) -> dict[str, dict[str, float]]:
    judged, ranked = list(ir_measures.read_trec_qrels(str(qrels))), list(ir_measures.read_trec_run(str(run)))
    found: dict[str, dict[str, float]] = {name: {} for name in MEASURES}
    for metric in ir_measures.pytrec_eval.iter_calc(list(MEASURES.values()), judged, ranked):
        name = next(name for name, measure in MEASURES.items() if measure == metric.measure)
        found[name][metric.query_id] = metric.value
    return found


@given(
    run=st.dictionaries(query_ids, st.lists(doc_ids, min_size=1, max_size=15), min_size=1),
    qrels=st.dictionaries(query_ids, st.dictionaries(doc_ids, st.integers(0, 3), min_size=1), min_size=1),
)
def test_trec_eval_agrees(
    tmp_path_factory: pytest.TempPathFactory, run: dict[str, list[str]], qrels: dict[str, dict[str, int]]
) -> None:
    folder = tmp_path_factory.mktemp("trec")
    write_run(folder / "run.trec", run)
    write_qrels(folder / "qrels.trec", qrels)
    found = trec_eval(folder / "run.trec", folder / "qrels.trec")
    for name, values in evaluate(run, qrels, list(MEASURES)).items():
        assert found[name] == pytest.approx(values, abs=1e-9)


def test_the_order_survives_float32(tmp_path: Path) -> None:
    # trec_eval breaks ties by id, the largest first: the reverse of this order.
    ranked = [f"d{number:06}" for number in range(100_000)]
    judged = {ranked[0]: 3, ranked[3]: 1, ranked[-1]: 2}
    write_run(tmp_path / "run", {"q": ranked})
    write_qrels(tmp_path / "qrels", {"q": judged})
    by_hand = (3 + 1 / log2(5)) / (3 + 2 / log2(3) + 1 / 2)
    assert trec_eval(tmp_path / "run", tmp_path / "qrels")["ndcg@5"]["q"] == pytest.approx(by_hand, abs=1e-9)
    assert evaluate({"q": ranked}, {"q": judged}, ["ndcg@5"])["ndcg@5"]["q"] == pytest.approx(by_hand, abs=1e-9)


def test_writes_lines_that_people_can_read(tmp_path: Path) -> None:
    write_run(tmp_path / "new" / "run", {"q1": ["b", "a", "b"], "q2": []}, tag="e2")
    assert (tmp_path / "new" / "run").read_text() == "q1 Q0 b 1 2 e2\nq1 Q0 a 2 1 e2\n"
    write_qrels(tmp_path / "qrels", {"q1": {"a": 2, "b": 0}})
    assert (tmp_path / "qrels").read_text() == "q1 0 a 2\nq1 0 b 0\n"


def test_refuses_white_space(tmp_path: Path) -> None:
    file = tmp_path / "out"
    why = "is empty or has white space, which separates the columns of a TREC file. Rename it."
    with pytest.raises(DataError) as error:
        write_run(file, {"q 1": ["a\u00a0b", "c"], "q2": ["a\u00a0b"]}, tag="")
    assert str(error.value).splitlines() == [
        f"{file}: tag '' {why}",
        f"{file}: query 'q 1' {why}",
        f"{file}: document 'a\\xa0b' {why}",
    ]
    with pytest.raises(DataError) as error:
        write_qrels(file, {"q": {"my page.md": 1}})
    assert str(error.value) == f"{file}: document 'my page.md' {why}"
    assert not list(tmp_path.iterdir())


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "run"
    write_run(file, {"q": ["a"]})
    before = file.read_bytes()
    with pytest.raises(UnicodeEncodeError):
        write_run(file, {"q": ["b", "\ud800"]})
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]
