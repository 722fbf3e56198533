"""BEIR collections are read from folders and zips, with the counts that their authors publish."""

from __future__ import annotations

import json
import zipfile
from math import log2
from pathlib import Path

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import AP, P, R, Rprec, Success, nDCG

from rag_harness.core.errors import DataError
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.types import Case, Document, Query
from rag_harness.data.beir import BeirDataset, read_beir, write_qrels, write_run
from rag_harness.data.datasets import Data
from rag_harness.evaluation.measures.ranking import evaluate

# BEIR collections are read from folders and zips, with the counts that their authors publish.

NFCORPUS = Path(__file__).parents[3].parent / "shared/data/nfcorpus/nfcorpus.zip"

HEADER = "query-id\tcorpus-id\tscore\n"
SHAPE = "A BEIR collection is corpus.jsonl, queries.jsonl and qrels/test.tsv"
FILES = {
    "corpus.jsonl": '{"_id": "a#1 b", "title": "Tea", "text": "Hot.", "metadata": {"url": "x"}}\n\n'
    '{"_id": "c", "title": "", "text": " Cold.\u2028Cool. "}\r\n{"_id": 7, "text": "Plain."}\n',
    "queries.jsonl": '{"_id": "q 1", "text": "tea?"}\n{"_id": "train#2", "text": ""}\n{"_id": "q2", "text": "cold?"}',
    "qrels/test.tsv": f"{HEADER}q 1\ta#1 b\t2\r\nq 1\tc\t0\nq2\tgone\t1",
}
READ = BeirDataset(
    [
        Document("a#1 b", "Tea Hot.", "Tea", {"url": "x"}),
        Document("c", "Cold.\u2028Cool.", "c"),
        Document("7", "Plain.", "7"),
    ],
    [Query("q 1", "tea?"), Query("q2", "cold?")],
    {"q 1": {"a#1 b": 2, "c": 0}, "q2": {"gone": 1}},
)


def folder_of(folder: Path, changed: dict[str, str | bytes | None] | None = None) -> Path:
    for name, content in (FILES | (changed or {})).items():
        if content is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def zip_of(file: Path, top: str) -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("__MACOSX/corpus.jsonl", "no data")
        for name, content in FILES.items():
            archive.writestr(top + name, content)
    return file


def problem(path: Path, split: str = "test") -> str:
    with pytest.raises(DataError) as error:
        read_beir(path, split)
    return str(error.value).replace(str(path), "PATH")


def test_reads_a_folder_and_a_zip_alike(tmp_path: Path) -> None:
    assert read_beir(folder_of(tmp_path / "outer" / "inner")) == READ
    assert read_beir(tmp_path / "outer") == READ
    assert read_beir(zip_of(tmp_path / "flat.zip", "")) == READ
    assert read_beir(zip_of(tmp_path / "top.zip", "nested/")) == READ
    marked = {name: b"\xef\xbb\xbf" + text.encode() for name, text in FILES.items()}
    assert read_beir(folder_of(tmp_path / "marked", {**marked})) == READ


def test_a_header_is_not_needed(tmp_path: Path) -> None:
    assert read_beir(folder_of(tmp_path, {"qrels/test.tsv": "q 1\tc\t1\n"})).qrels == {"q 1": {"c": 1}}


def test_reads_the_split_that_is_named(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, {"qrels/dev.tsv": f"{HEADER}q2\tc\t1\n"})
    assert read_beir(folder, "dev").queries == [Query("q2", "cold?")]


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (
            "qrels/test.tsv",
            f"{HEADER}q 1\tc\tgood\n",
            "PATH/qrels/test.tsv:2: relevance 'good' is no whole number. "
            "Write 0 for not relevant, 1 or more for relevant.",
        ),
        (
            "qrels/test.tsv",
            f"{HEADER}\nq2 0 c 1\n",
            "PATH/qrels/test.tsv:3: expected query-id, corpus-id and score, separated by tabs; "
            "found 1 cells in ['q2 0 c 1'].",
        ),
        (
            "qrels/test.tsv",
            f"{HEADER}q2\tc\t1\nq2\tc\t1\nq2\tc\t2\n",
            "PATH/qrels/test.tsv:4: 'c' is judged twice for query 'q2'. Remove one line.",
        ),
        (
            "qrels/test.tsv",
            HEADER,
            "PATH/qrels/test.tsv holds no judgement: each line is query-id, corpus-id and score, separated by tabs.",
        ),
        ("qrels/test.tsv", b"q2\t\xff\t1", "PATH/qrels/test.tsv:1: not UTF-8. Save the file as UTF-8."),
        (
            "qrels/test.tsv",
            "q9\tc\t1\n",
            "PATH: qrels judge query 'q9', which queries.jsonl lacks. Add it there.",
        ),
        (
            "qrels/test.tsv",
            "q2\tgone\t1\n",
            "PATH: corpus.jsonl holds none of the documents that qrels judge. Are they of one collection?",
        ),
        (
            "corpus.jsonl",
            '{"_id": "c", "text": "x"}\n{"_id": "d"\n["c"]\n{"text": "x"}\n{"_id": "e"}\n{"_id": "c", "text": "y"}\n',
            "PATH/corpus.jsonl:2: no JSON: Expecting ',' delimiter: line 1 column 12 (char 11). "
            "Each line is one object.\n"
            "PATH/corpus.jsonl:3: expected an object.\n"
            "PATH/corpus.jsonl:4: _id is missing or no string. Qrels name documents and queries by _id.\n"
            "PATH/corpus.jsonl:5: document 'e' needs a string text; title is a string, metadata an object.\n"
            "PATH/corpus.jsonl:6: _id 'c' stands already on a line above. Ids name one document each.",
        ),
        ("corpus.jsonl", b'{"_id": "\xff"}', "PATH/corpus.jsonl:1: not UTF-8. Save the file as UTF-8."),
        ("corpus.jsonl", None, f"No corpus.jsonl in PATH, nor in a folder inside. {SHAPE}."),
        (
            "queries.jsonl",
            '{"_id": "q 1", "text": " "}\n{"_id": "q2", "text": "a"}\n{"_id": "q2", "text": "b"}',
            "PATH/queries.jsonl:1: query 'q 1' has no text. Write it, or remove its judgements.\n"
            "PATH/queries.jsonl:3: _id 'q2' stands already on a line above. Ids name one query each.",
        ),
        ("queries.jsonl", None, f"No PATH/queries.jsonl. {SHAPE}."),
    ],
)
def test_refuses(tmp_path: Path, file: str, content: str | bytes | None, message: str) -> None:
    assert problem(folder_of(tmp_path, {file: content})) == message


def test_names_the_splits_that_are_there(tmp_path: Path) -> None:
    folder_of(tmp_path, {"qrels/dev.tsv": HEADER})
    assert problem(tmp_path, "train") == f"No PATH/qrels/train.tsv. {SHAPE}. Splits there: dev, test."


def test_refuses_a_collection_without_qrels(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, {"qrels/test.tsv": None})
    assert problem(folder) == f"No PATH/qrels/test.tsv. {SHAPE}. Without judgements nothing can be scored."


def test_refuses_what_is_no_collection(tmp_path: Path) -> None:
    assert problem(tmp_path / "none") == f"No folder or zip PATH. {SHAPE}, in a folder or a zip."
    (tmp_path / "text.zip").write_text("text")
    advice = "Name a BEIR folder, or a zip that is whole."
    assert problem(tmp_path / "text.zip") == f"PATH cannot be read: File is not a zip file. {advice}"


def test_refuses_a_damaged_zip(tmp_path: Path) -> None:
    file = zip_of(tmp_path / "damaged.zip", "")
    with zipfile.ZipFile(file) as archive:
        start = archive.getinfo("corpus.jsonl").header_offset + 30 + len("corpus.jsonl")
    content = bytearray(file.read_bytes())
    content[start : start + 20] = b"\xff" * 20
    file.write_bytes(content)
    assert problem(file).startswith("PATH cannot be read: ")


def test_shows_the_first_20_of_many_problems(tmp_path: Path) -> None:
    found = problem(folder_of(tmp_path, {"corpus.jsonl": "{\n" * 1000})).splitlines()
    assert len(found) == 21
    assert found[-1] == "… and 980 more."


@pytest.mark.skipif(not NFCORPUS.is_file(), reason=f"the public collection NFCorpus is not at {NFCORPUS}")
def test_reads_nfcorpus() -> None:
    collection = read_beir(NFCORPUS)
    assert (len(collection.documents), len(collection.queries)) == (3633, 323)
    assert sum(map(len, collection.qrels.values())) == 12334
    assert {gain for judged in collection.qrels.values() for gain in judged.values()} == {1, 2}
    with zipfile.ZipFile(NFCORPUS) as archive:
        first = json.loads(archive.read("nfcorpus/corpus.jsonl").split(b"\n")[0])
    assert collection.documents[0].text == f"{first['title']} {first['text']}"


def test_a_collection_brings_its_own_questions(tmp_path: Path) -> None:
    """There is no file of questions here, and none is looked for."""

    def data() -> Data:
        return Data(load_settings({"dataset": f"beir:{folder_of(tmp_path)}"}, rootdir=tmp_path))

    assert data().cases == [Case(each, qrels=READ.qrels[each.query_id]) for each in READ.queries]
    assert data().scenarios == []


@pytest.mark.parametrize(
    "changed",
    [
        {"qrels/test.tsv": FILES["qrels/test.tsv"].replace("\t2", "\t1")},
        {"queries.jsonl": FILES["queries.jsonl"].replace("tea?", "tea")},
    ],
)
def test_the_digest_of_questions_is_of_texts_and_judgements(
    tmp_path: Path, changed: dict[str, str | bytes | None]
) -> None:
    settings = load_settings({"dataset": f"beir:{folder_of(tmp_path)}"}, rootdir=tmp_path)
    before = Data(settings).queries_digest
    assert Data(settings).queries_digest == before
    folder_of(tmp_path, changed)
    assert Data(settings).queries_digest != before


# What is exported is what trec_eval reads: the same values as our own measures.

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
