"""MTRAG and MTRAG-UN are read from a clone as it is, and what is wrong with one is said with file and line."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from rag_harness.core.errors import DataError, SettingsError
from rag_harness.core.settings import Settings
from rag_harness.core.types import Case, Document, Query
from rag_harness.data.datasets import Data
from rag_harness.data.mtrag import MTRAG, MTRAG_UN, read_mtrag
from tests.mtrag_clone import ASKED, GENERATION, PASSAGES, QRELS, TASKS, clone_of, jsonl, passage, queries, said, task
from tests.mtrag_clone import zipped_corpus as zipped

MTRAGUN = Path(__file__).parents[3].parent / "shared/data/mtragun/reference.jsonl"
REFERENCE = "mtrag-human/generation_tasks/reference.jsonl"
UN_REFERENCE = "mtragun-human/generation_tasks/reference.jsonl"
CORPUS = "corpora/passage_level/clapnq.jsonl"
QRELS_READ = {"aa#1": {"11_0-40-0-40": 1}, "aa#2": {"11_40-80-0-40": 1}, "bb#1": {"12_0-30-0-30": 1}}
USER_BEFORE = {"history": [{"role": "user", "content": ASKED[0]}]}
BEFORE = {"history": [{"role": "user", "content": ASKED[0]}, {"role": "assistant", "content": "45 days."}]}
CLONE = "git clone https://github.com/IBM/mt-rag-benchmark"


def problem(path: Path, benchmark: str = MTRAG, clone: Path | None = None) -> str:
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
            "No CLONE/corpora/mtrag-human/retrieval_tasks with judgements: CLONE/corpora is no clone of "
            f"IBM/mt-rag-benchmark. To get one: {CLONE}",
        ),
        ("none.jsonl", MTRAG, f"No CLONE/none.jsonl. It is in the repository: {CLONE}"),
    ],
)  # fmt: skip
def test_refuses_another_folder(tmp_path: Path, path: str, benchmark: str, message: str) -> None:
    assert problem(clone_of(tmp_path) / path, benchmark, tmp_path) == message


def test_a_clone_without_a_domain_is_told_to_name_one(tmp_path: Path) -> None:
    assert problem(clone_of(tmp_path / "clone"), MTRAG, tmp_path) == (
        "No CLONE/mtrag-human/retrieval_tasks with judgements: CLONE is no clone of IBM/mt-rag-benchmark. "
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
            f"CLONE/{TASKS}/qrels/dev.tsv:6: relevance 'yes' is no whole number. Write 0 for not relevant, 1 or more "
            f"for relevant.\nCLONE/{TASKS}/qrels/dev.tsv: query-id 'author_17', expected CONVERSATION<::>TURN.",
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
def test_refuses(tmp_path: Path, file: str, content: str | None, message: str) -> None:
    assert problem(clone_of(tmp_path, {file: content}) / "clapnq") == message


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
    assert problem(file) == f"CLONE/reference.jsonl:{message}"


def test_two_passages_of_one_id_are_no_collection(tmp_path: Path) -> None:
    file = tmp_path / "reference.jsonl"
    other = {**passage(0), "text": "Another text."}
    file.write_text(jsonl(GENERATION[0], task("dd", 1, "ANSWERABLE", "a", contexts=[other])))
    assert problem(file) == "Task dd#1: passage '11_0-40-0-40' has another text in a task before."


def test_a_domain_without_tasks_has_no_cases(tmp_path: Path) -> None:
    found = read_mtrag(MTRAG, clone_of(tmp_path, {REFERENCE: jsonl(GENERATION[5])}) / "clapnq")
    with pytest.raises(DataError, match=r"reference\.jsonl holds no task of clapnq\."):
        found.cases()


def test_a_damaged_zip_is_named(tmp_path: Path) -> None:
    clone_of(tmp_path, {CORPUS: None, f"{CORPUS}.zip": "PK no zip"})
    assert (
        problem(tmp_path / "clapnq")
        == f"CLONE/{CORPUS}.zip cannot be read: File is not a zip file. Get it again: {CLONE}"
    )
    clone_of(tmp_path)
    zipped(tmp_path, "fiqa.jsonl")
    assert problem(tmp_path / "clapnq") == f"CLONE/{CORPUS}.zip holds no clapnq.jsonl. Get it again: {CLONE}"


@pytest.mark.skipif(not MTRAGUN.is_file(), reason=f"the tasks of MTRAG-UN are not at {MTRAGUN}")
def test_reads_all_tasks_of_mtrag_un() -> None:
    found = read_mtrag(MTRAG_UN, MTRAGUN)
    cases = found.cases()
    assert Counter(case.query_type for case in cases) == {
        "direct": 285, "negative": 97, "underspecified": 78, "partial": 47,
    }  # fmt: skip
    assert [len(found.documents), len(found.queries)] == [1152, 332]
    assert all(len(case.query.history) == 2 * int(case.query.place["turn"]) - 2 for case in cases)
