"""BEIR and MTRAG are read as they are published, and what is wrong is said with file and line."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from dataclasses import replace
from math import log2
from pathlib import Path

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import AP, P, R, Rprec, Success, nDCG

from rag_harness.core.errors import DataError, SettingsError
from rag_harness.core.settings import Settings
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.types import Case, Document, Query
from rag_harness.data.beir import BeirDataset, read_beir, write_qrels, write_run
from rag_harness.data.datasets import Data
from rag_harness.data.mtrag import MTRAG, MTRAG_UN, read_mtrag
from rag_harness.evaluation.measures.ranking import evaluate
from tests.mtrag_clone import ASKED, GENERATION, PASSAGES, QRELS, TASKS, clone_of, jsonl, passage, queries, said, task
from tests.mtrag_clone import zipped_corpus as zipped

# BEIR collections are read from folders and zips, with the counts that their authors publish.

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
            "PATH/qrels/test.tsv:2: relevance 'good' is not a whole number. "
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


# MTRAG and MTRAG-UN are read from a clone as it is, and what is wrong with one is said with file and line.

MTRAGUN = Path(__file__).parents[3].parent / "shared/data/mtragun/reference.jsonl"
REFERENCE = "mtrag-human/generation_tasks/reference.jsonl"
UN_REFERENCE = "mtragun-human/generation_tasks/reference.jsonl"
CORPUS = "corpora/passage_level/clapnq.jsonl"
QRELS_READ = {"aa#1": {"11_0-40-0-40": 1}, "aa#2": {"11_40-80-0-40": 1}, "bb#1": {"12_0-30-0-30": 1}}
USER_BEFORE = {"history": [{"role": "user", "content": ASKED[0]}]}
BEFORE = {"history": [{"role": "user", "content": ASKED[0]}, {"role": "assistant", "content": "45 days."}]}
CLONE = "git clone https://github.com/IBM/mt-rag-benchmark"


def problem_of_clone(path: Path, benchmark: str = MTRAG, clone: Path | None = None) -> str:
    with pytest.raises(DataError) as error:
        read_mtrag(benchmark, path)
    return str(error.value).replace(str(clone or path.parent), "CLONE")


def test_reads_passages_turns_and_judgements(tmp_path: Path) -> None:
    found = read_mtrag(MTRAG, clone_of(tmp_path) / "clapnq")
    url = {"url": "https://u.test"}
    assert found.documents == [
        Document("11_0-40-0-40", PASSAGES[0][2], "Lamps", url),
        Document("11_40-80-0-40", PASSAGES[1][2], "Lamps", url),
        Document("12_0-30-0-30", "Delivery to Norway costs 9 euros.", "12_0-30-0-30", url),
    ]
    assert found.queries == [
        Query("aa#1", ASKED[0], {"conversation": "aa", "turn": 1}),
        Query("aa#2", ASKED[1], {"conversation": "aa", "turn": 2, **USER_BEFORE}),
        Query("bb#1", ASKED[2], {"conversation": "bb", "turn": 1}),
    ]
    assert found.qrels == QRELS_READ
    assert [query.place for query in found.queries][1] == {"conversation": "aa", "turn": "2"}


@pytest.mark.parametrize(
    ("variant", "text"),
    [("lastturn", ASKED[1]), ("rewrite", "Can an opened lamp be returned?"), ("questions", f"{ASKED[0]}\n{ASKED[1]}")],
)
def test_the_text_of_a_query_is_chosen_and_its_history_is_not(tmp_path: Path, variant: str, text: str) -> None:
    found = read_mtrag(MTRAG, clone_of(tmp_path) / "clapnq" / variant).queries[1]
    assert found.text == text
    assert found.inputs == {"conversation": "aa", "turn": 2, **USER_BEFORE}


@pytest.mark.parametrize("member", ["clapnq.jsonl", "passage_level/clapnq.jsonl"])
def test_a_corpus_is_read_out_of_its_zip(tmp_path: Path, member: str) -> None:
    plain = read_mtrag(MTRAG, clone_of(tmp_path) / "clapnq")
    zipped(tmp_path, member)
    assert read_mtrag(MTRAG, tmp_path / "clapnq") == plain


def test_either_separator_names_a_turn(tmp_path: Path) -> None:
    plain = read_mtrag(MTRAG, clone_of(tmp_path / "one") / "clapnq")
    other = {
        name: (tmp_path / "one" / name).read_text().replace("<::>", "::")
        for name in (f"{TASKS}/qrels/dev.tsv", f"{TASKS}/clapnq_questions.jsonl")
    }
    found = read_mtrag(MTRAG, clone_of(tmp_path / "two", other) / "clapnq")
    assert (found.queries, found.qrels) == (plain.queries, plain.qrels)


def test_the_queries_of_mtrag_un_are_those_of_its_tasks(tmp_path: Path) -> None:
    found = read_mtrag(MTRAG_UN, clone_of(tmp_path) / "clapnq")
    assert [query.text for query in found.queries] == list(ASKED)
    assert found.queries[1].inputs == {"conversation": "aa", "turn": 2, **BEFORE}
    assert found.qrels == QRELS_READ
    asked = read_mtrag(MTRAG_UN, tmp_path / "clapnq/questions").queries[1]
    assert asked.text == f"{ASKED[0]}\n{ASKED[1]}"


def test_generation_tasks_become_cases_of_their_domain(tmp_path: Path) -> None:
    cases = read_mtrag(MTRAG, clone_of(tmp_path) / "clapnq").cases()
    assert [(case.query.query_id, case.query_type, case.answerable) for case in cases] == [
        ("aa#1", "direct", True), ("aa#2", "partial", True), ("aa#3", "negative", False),
        ("bb#1", "direct", True), ("bb#2", "underspecified", True),
    ]  # fmt: skip
    labels = {"answerability": "partial", "question_kind": "Factoid, Explanation"}
    collection = {"collection": "mt-rag-clapnq-elser-512-100-20240503"}
    query = Query("aa#2", ASKED[1], {"conversation": "aa", "turn": 2, **BEFORE})
    assert cases[1] == Case(query, "partial", "Reply 2.", QRELS_READ["aa#2"], metadata=labels | collection)
    assert cases[1].query.history[1].content == "45 days."
    assert [case.context_reference for case in cases[2:]] == [(), ("12_0-30-0-30",), ()]
    assert cases[4].labels["answerability"] == "underspecified"


def test_the_benchmark_judges_what_is_relevant_and_not_what_a_task_was_given(tmp_path: Path) -> None:
    given = task("aa", 1, "ANSWERABLE", ASKED[0], contexts=[passage(2), passage(0)])
    (case,) = read_mtrag(MTRAG, clone_of(tmp_path, {REFERENCE: jsonl(given)}) / "clapnq").cases()
    assert case.qrels == QRELS_READ["aa#1"]


def test_the_passages_of_a_file_of_tasks_are_a_collection_of_its_own(tmp_path: Path) -> None:
    found = read_mtrag(MTRAG_UN, clone_of(tmp_path) / UN_REFERENCE)
    assert [each.doc_id for each in found.documents] == [name for name, _, _ in PASSAGES]
    assert [query.query_id for query in found.queries] == ["aa#1", "aa#2", "bb#1"]
    assert (found.qrels, found.excerpt) == (QRELS_READ, True)
    assert [case.query.query_id for case in found.cases()] == ["aa#1", "aa#2", "aa#3", "bb#1", "bb#2", "cc#1"]
    assert found.cases()[5].query_type == "conversational"
    assert found.cases()[4].qrels == {}


def test_turns_of_a_conversation_come_together_and_in_order(tmp_path: Path) -> None:
    mixed = jsonl(*(GENERATION[place] for place in (1, 3, 0, 2)))
    cases = read_mtrag(MTRAG, clone_of(tmp_path, {REFERENCE: mixed}) / "clapnq").cases()
    assert [case.query.query_id for case in cases] == ["aa#1", "aa#2", "aa#3", "bb#1"]


def test_data_has_cases_documents_and_a_digest_of_the_collection(tmp_path: Path) -> None:
    settings = replace(Settings(), rootdir=str(clone_of(tmp_path)), dataset="mtrag:clapnq")
    data = Data(settings)
    assert [len(data.documents), len(data.cases)] == [3, 5]
    assert data.queries_file == tmp_path / REFERENCE
    others = [Data(replace(settings, dataset=name)) for name in ("mtrag:clapnq/rewrite", f"mtrag:{REFERENCE}")]
    assert len({each.queries_digest for each in (data, *others)}) == 3


@pytest.mark.parametrize("named", ["mtrag:", "mtrag", "trec:x"])
def test_refuses_another_kind(tmp_path: Path, named: str) -> None:
    with pytest.raises(SettingsError, match=r"Name a collection: beir:DIR or beir:FILE\.zip; mtrag:CLONE/DOMAIN"):
        _ = Data(replace(Settings(), rootdir=str(tmp_path), dataset=named)).collection


@pytest.mark.parametrize(
    ("path", "benchmark", "message"),
    [
        (
            "cloud", MTRAG,
            f"No CLONE/{TASKS[:-6]}cloud/qrels/dev.tsv. Domains there: clapnq. Name mtrag:CLONE/DOMAIN, and behind it "
            "/lastturn, /rewrite, /questions if not the last turn is the query.",
        ),
        ("clapnq/rewrite", MTRAG_UN, "MTRAG-UN has no rewrites of its questions. Name lastturn or questions."),
        (
            "corpora/clapnq", MTRAG,
            "No CLONE/corpora/mtrag-human/retrieval_tasks with judgements: CLONE/corpora is not a clone of "
            f"IBM/mt-rag-benchmark. To get one: {CLONE}",
        ),
        ("none.jsonl", MTRAG, f"No CLONE/none.jsonl. It is in the repository: {CLONE}"),
    ],
)  # fmt: skip
def test_refuses_another_folder(tmp_path: Path, path: str, benchmark: str, message: str) -> None:
    assert problem_of_clone(clone_of(tmp_path) / path, benchmark, tmp_path) == message


def test_a_clone_without_a_domain_is_told_to_name_one(tmp_path: Path) -> None:
    assert problem_of_clone(clone_of(tmp_path / "clone"), MTRAG, tmp_path) == (
        "No CLONE/mtrag-human/retrieval_tasks with judgements: CLONE is not a clone of IBM/mt-rag-benchmark. "
        "Name one of its domains, too: mtrag:CLONE/clone/clapnq"
    )


ORDER = queries(("aa<::>2", "|user|: a\n|user|: b"), ("aa<::>1", "|user|: a"), ("bb<::>1", "|user|: c"))


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (
            CORPUS,
            None,
            f"No CLONE/{CORPUS} and no clapnq.jsonl.zip: without its passages nothing can be retrieved. They are in "
            f"the repository as zips: {CLONE}. The passages of the tasks alone are a collection, too, though not one "
            f"to compare with published figures: mtrag:CLONE/{REFERENCE}",
        ),
        (
            CORPUS,
            "version https://git-lfs.github.com/spec/v1\noid sha256:6cf\nsize 50851372\n",
            f"CLONE/{CORPUS} is a pointer of Git LFS. Get the file itself: git lfs pull",
        ),
        (
            CORPUS,
            '{"_id": "a", "text": "x"}\n{"_id": "a", "text": "y"}\n{"_id": "b", "text": NaN}\n'
            '{"text": "z"}\n[1]\n{"_id',
            f"CLONE/{CORPUS}:2: _id 'a' stands already on a line above. Ids name one passage each.\n"
            f"CLONE/{CORPUS}:3: passage 'b' needs a string text; its title is a string.\n"
            f"CLONE/{CORPUS}:4: a passage without an id. Judgements name passages by it.\n"
            f"CLONE/{CORPUS}:5: expected an object.\n"
            f"CLONE/{CORPUS}:6: no JSON: Unterminated string starting at: line 1 column 2 (char 1). Each line is one "
            "object.",
        ),
        (
            CORPUS,
            '{"_id": "11_0-40", "text": "the level of documents"}\n',
            f"CLONE: the corpus holds none of the passages that CLONE/{TASKS}/qrels/dev.tsv judges.",
        ),
        (
            f"{TASKS}/qrels/dev.tsv",
            f"{QRELS}author_17\t12_0-30-0-30\t1\nbb<::>1\t11_0-40-0-40\tyes\n",
            f"CLONE/{TASKS}/qrels/dev.tsv:6: relevance 'yes' is not a whole number. Write 0 for not relevant, 1 or "
            f"more for relevant.\nCLONE/{TASKS}/qrels/dev.tsv: query-id 'author_17', expected CONVERSATION<::>TURN.",
        ),
        (
            f"{TASKS}/qrels/dev.tsv",
            f"{QRELS}bb<::>4\t12_0-30-0-30\t1\n",
            f"CLONE/{TASKS}/qrels/dev.tsv: bb#4 is judged and clapnq_lastturn.jsonl lacks it.",
        ),
        (
            f"{TASKS}/clapnq_questions.jsonl",
            ORDER,
            f"CLONE/{TASKS}/clapnq_questions.jsonl:2: turn 1 of aa comes after turn 2.",
        ),
        (
            f"{TASKS}/clapnq_questions.jsonl",
            queries(("aa<::>1", "|user|: a"), ("bb<::>1", "|user|: c")),
            f"CLONE/{TASKS}/clapnq_lastturn.jsonl:2: aa#2 is not in clapnq_questions.jsonl, which has its history.",
        ),
        (
            f"{TASKS}/clapnq_questions.jsonl",
            queries(("aa<::>1", "|user|: a"), ("aa<::>2", "|user|: b"), ("bb<::>1", "c")),
            f"CLONE/{TASKS}/clapnq_questions.jsonl:2: turn 2 of aa has 1 questions.",
        ),
        (
            f"{TASKS}/clapnq_lastturn.jsonl",
            queries(("aa<::>1", "|user|: "), ("aa<::>2", "b"), ("aa::2", "c"), ("bb", "d"), ("bb<::>0", "d"))
            + '{"_id": "bb<::>1", "text": NaN}\n',
            f"CLONE/{TASKS}/clapnq_lastturn.jsonl:1: aa#1 has no text, but '|user|: '.\n"
            f"CLONE/{TASKS}/clapnq_lastturn.jsonl:3: aa#2 stands already at CLONE/{TASKS}/clapnq_lastturn.jsonl:2.\n"
            f"CLONE/{TASKS}/clapnq_lastturn.jsonl:4: _id is 'bb', expected CONVERSATION<::>TURN.\n"
            f"CLONE/{TASKS}/clapnq_lastturn.jsonl:5: _id is 'bb<::>0', expected CONVERSATION<::>TURN.\n"
            f"CLONE/{TASKS}/clapnq_lastturn.jsonl:6: bb#1 has no text, but nan.",
        ),
        (
            f"{TASKS}/clapnq_lastturn.jsonl",
            None,
            f"No CLONE/{TASKS}/clapnq_lastturn.jsonl. It is in the repository: {CLONE}",
        ),
    ],
)
def test_refuses_a_clone(tmp_path: Path, file: str, content: str | None, message: str) -> None:
    assert problem_of_clone(clone_of(tmp_path, {file: content}) / "clapnq") == message


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([task("aa", 1, "ANSWERABLE", "a", task_id="aa")], "1: task_id is 'aa', expected CONVERSATION<::>TURN."),
        (
            [GENERATION[0], GENERATION[0]],
            "2: task 'aa<::>1' stands already on a line above.",
        ),
        (
            [task("aa", 1, "MAYBE", "a")],
            "1: answerability is ['MAYBE'], expected one of ANSWERABLE, PARTIAL, UNANSWERABLE, CONVERSATIONAL, "
            "UNDERSPECIFIED.",
        ),
        ([task("aa", 2, "PARTIAL", "a")], "1: turn 2 by its task_id, '2' by its turn, 1 by its input."),
        ([{**task("aa", 1, "PARTIAL", "a"), "turn": 3}], "1: turn 1 by its task_id, 3 by its turn, 1 by its input."),
        (
            [task("aa", 1, "PARTIAL", "a", "b")],
            "1: input: a list of messages that ends with the user's question was expected.",
        ),
        ([task("aa", 1, "PARTIAL")], "1: input: a list of messages that ends with the user's question was expected."),
        (
            [task("aa", 2, "PARTIAL", input=[*said("a", "b"), {"speaker": "agent", "text": "c"}])],
            "1: input: message 3 is not the user's: turns alternate.",
        ),
        (
            [task("aa", 1, "PARTIAL", input=[{"speaker": "user", "text": float("nan")}])],
            "1: input: message 1 has no text.",
        ),
        (
            [task("aa", 1, "PARTIAL", "a", contexts=[{"document_id": "p", "text": None}])],
            "1: contexts: passage 'p' needs a string text; its title is a string.",
        ),
    ],
)
def test_refuses_a_task(tmp_path: Path, lines: list[dict[str, object]], message: str) -> None:
    file = tmp_path / "reference.jsonl"
    file.write_text(jsonl(*lines))
    assert problem_of_clone(file) == f"CLONE/reference.jsonl:{message}"


def test_two_passages_of_one_id_are_no_collection(tmp_path: Path) -> None:
    file = tmp_path / "reference.jsonl"
    other = {**passage(0), "text": "Another text."}
    file.write_text(jsonl(GENERATION[0], task("dd", 1, "ANSWERABLE", "a", contexts=[other])))
    assert problem_of_clone(file) == "Task dd#1: passage '11_0-40-0-40' has another text in a task before."


def test_a_domain_without_tasks_has_no_cases(tmp_path: Path) -> None:
    found = read_mtrag(MTRAG, clone_of(tmp_path, {REFERENCE: jsonl(GENERATION[5])}) / "clapnq")
    with pytest.raises(DataError, match=r"reference\.jsonl holds no task of clapnq\."):
        found.cases()


def test_a_damaged_zip_is_named(tmp_path: Path) -> None:
    clone_of(tmp_path, {CORPUS: None, f"{CORPUS}.zip": "PK no zip"})
    assert (
        problem_of_clone(tmp_path / "clapnq")
        == f"CLONE/{CORPUS}.zip cannot be read: File is not a zip file. Get it again: {CLONE}"
    )
    clone_of(tmp_path)
    zipped(tmp_path, "fiqa.jsonl")
    assert problem_of_clone(tmp_path / "clapnq") == f"CLONE/{CORPUS}.zip holds no clapnq.jsonl. Get it again: {CLONE}"


@pytest.mark.skipif(not MTRAGUN.is_file(), reason=f"the tasks of MTRAG-UN are not at {MTRAGUN}")
def test_reads_all_tasks_of_mtrag_un() -> None:
    found = read_mtrag(MTRAG_UN, MTRAGUN)
    cases = found.cases()
    assert Counter(case.query_type for case in cases) == {
        "direct": 285, "negative": 97, "underspecified": 78, "partial": 47,
    }  # fmt: skip
    assert [len(found.documents), len(found.queries)] == [1152, 332]
    assert all(len(case.query.history) == 2 * int(case.query.place["turn"]) - 2 for case in cases)
