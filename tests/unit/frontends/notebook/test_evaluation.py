"""An evaluation in a notebook: what a mean is of, which questions it takes, and hostile data."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rag_harness
from rag_harness import Answer, Chunk, Experiment, Hit, PipelineOutput, evaluate
from rag_harness import Query as RagHarnessQuery
from rag_harness.core.errors import DataError
from rag_harness.core.types import Case, Evidence, ExpectedTool, Query
from rag_harness.data.queries import read_queries
from rag_harness.frontends.notebook.evaluate import questions_file
from rag_harness.frontends.notebook.evaluation import Evaluation, GateCheck
from rag_harness.records.expectations import expectations_of
from tests.hostile import WHOLE
from tests.unit.core.escaping.active import in_markdown, on_terminal, read_html, unseen

# What a mean is of: the questions that allow a measure, whatever their answers and contexts are.

TRUTH = "Lamps can be returned within 45 days of delivery."
QUESTIONS = [
    {"query_id": f"q{n}", "query": f"How long can I return lamp {n}?", "ground_truth": TRUTH} for n in range(40)
]
JUDGED = ["faithfulness", "context_recall"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAG_PROFILE", "mock")
    return tmp_path


def out(text: str, *contexts: tuple[str, str], **stated: Any) -> PipelineOutput:
    hits = tuple(
        Hit(Chunk(f"{page}#{n}", page, said), score=1.0 / n, rank=n) for n, (page, said) in enumerate(contexts, 1)
    )
    return PipelineOutput(Answer(text, **stated), retrieved=hits, context=hits)


def finding(every: int, context: str = TRUTH) -> Callable[[str], PipelineOutput]:
    """Return a pipeline that finds something for each question whose number is a multiple of ``every``."""

    def rag(question: str) -> PipelineOutput:
        number = int(question.rsplit(maxsplit=1)[-1].rstrip("?"))
        found = [("returns.md", context)] if number % every == 0 else []
        return out(TRUTH if found else "Lamps can be returned within 90 days.", *found)

    return rag


def state(found: GateCheck) -> list[str]:
    return [verdict.state for verdict in found.verdicts]


def mean(found: Evaluation, measure: str) -> float | None:
    return found.figures[measure].mean


@pytest.mark.parametrize(("every", "share"), [(10, 0.1), (2, 0.5)])
def test_a_retrieval_that_finds_nothing_has_done_badly(every: int, share: float) -> None:
    found = evaluate(finding(every), QUESTIONS, measures=JUDGED)
    assert (mean(found, "faithfulness"), mean(found, "context_recall")) == (share, share)
    assert state(found.check("faithfulness >= 0.8", "context_recall >= 0.8", "faithfulness >= 0.7 @95%")) == [
        "failed", "failed", "failed"
    ]  # fmt: skip
    assert {found.figures[name].n for name in JUDGED} == {40}


def test_contexts_of_white_space_are_none() -> None:
    found = evaluate(finding(1, " \n"), QUESTIONS, measures=JUDGED)
    assert (mean(found, "faithfulness"), mean(found, "context_recall"), found.figures["faithfulness"].n) == (0, 0, 40)


def test_who_says_nothing_and_never_finds_anything_retrieves_nothing() -> None:
    """A gate on its contexts says that there should be some, and so does an earlier run that had one."""
    found = evaluate(finding(100), QUESTIONS[1:], measures=JUDGED)
    assert (mean(found, "faithfulness"), found.figures["faithfulness"].why_not) == (None, "no retrieval")
    assert state(found.check("faithfulness >= 0.1")) == ["failed"]
    assert "n=39" in str(found.check("faithfulness >= 0.1"))
    evaluate(finding(100), QUESTIONS[:1], measures=JUDGED)
    again = evaluate(finding(100), QUESTIONS[1:], measures=JUDGED)
    assert mean(again, "faithfulness") == 0.0


@pytest.mark.parametrize(("retrieves", "value"), [(True, 0.0), (False, None)])
def test_an_experiment_may_say_whether_it_retrieves(retrieves: bool, value: float | None) -> None:
    class Rag:
        def answer(self, query: object) -> PipelineOutput:
            return out("45 days")

    stated = Rag()
    stated.retrieves = retrieves  # type: ignore[attr-defined]
    by_attribute = evaluate(stated, QUESTIONS, measures=JUDGED)
    by_field = evaluate(Experiment("field", Rag(), retrieves=retrieves), QUESTIONS, measures=JUDGED)
    assert mean(by_attribute, "faithfulness") == mean(by_field, "faithfulness") == value


def test_half_of_the_answers_decline() -> None:
    """What claims nothing leaves faithfulness, and the line says so; it leaves no measure of what was found."""

    def rag(question: str) -> PipelineOutput:
        declines = int(question.rsplit(maxsplit=1)[-1].rstrip("?")) % 2
        return out("I don't know." if declines else TRUTH, ("returns.md", TRUTH))

    found = evaluate(rag, QUESTIONS, measures=[*JUDGED, "answer_relevancy", "answer_correctness"])
    assert "n=20 of 40, 20 declined" in str(found.check("faithfulness >= 0.8"))
    assert {found.figures[name].n for name in ("context_recall", "answer_relevancy", "answer_correctness")} == {40}
    assert mean(found, "answer_correctness") == 0.5 * (mean(found, "faithfulness") or 0)


@pytest.mark.parametrize(("stated", "declined"), [({}, 1.0), ({"abstained": False}, 0.0), ({"abstained": True}, 1.0)])
def test_words_decide_whether_an_answer_declines_where_its_pipeline_does_not(
    stated: dict[str, bool], declined: float
) -> None:
    found = evaluate(lambda _: PipelineOutput(Answer("I don't know.", **stated)), QUESTIONS)  # type: ignore[arg-type]
    assert mean(found, "abstention_rate") == declined
    assert state(found.check("false_abstention_rate <= 0.1")) == ["failed" if declined else "passed"]


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_answer_is_an_error_of_the_answer(text: str) -> None:
    for pipeline in (lambda _: text, lambda _: out(text, ("returns.md", TRUTH))):
        found = evaluate(pipeline, QUESTIONS[:2], measures=JUDGED)
        (row, _) = found.frame("records")
        assert (row["status"], row["error"][:8]) == ("error", "answer: ")
        assert (mean(found, "error_rate"), mean(found, "token_f1")) == (1.0, 0.0)


def test_what_only_retrieves_says_so_and_answers_nothing() -> None:
    hits = (Hit(Chunk("returns.md#1", "returns.md", TRUTH), 1.0, 1),)
    gold = [{**question, "context_reference": ["returns.md"]} for question in QUESTIONS]
    found = evaluate(lambda _: PipelineOutput(Answer(""), hits, hits, retrieval_only=True), gold)
    assert (mean(found, "error_rate"), mean(found, "recall@5")) == (0.0, 1.0)


def pages(folder: Path, number: int = 8) -> Path:
    kb = folder / "kb"
    kb.mkdir()
    for n in range(number):
        (kb / f"p{n}.md").write_text(
            f"# Page {n}\n\nThe lamp of series {n} comes back within {n + 10} days of its sale.\n"
        )
    return kb


def about(page: int, *, copies: int = 1, first: int = 0) -> list[dict[str, Any]]:
    return [
        {"query_id": f"p{page}-{first + n}", "query": f"lamp {page}?", "context_reference": [f"p{page}.md"]}
        for n in range(copies)
    ]


def of_page(question: str) -> int:
    return int(question.split()[1].rstrip("?"))


def test_questions_of_one_page_are_one_cluster_and_the_line_says_it() -> None:
    asked = [each for page in range(8) for each in about(page, copies=5)]
    rag = lambda question: out("x", (f"p{of_page(question) % 6}.md", "x"))  # noqa: E731 - right on 6 of 8 pages
    by_page, alone = (evaluate(rag, asked, cluster=cluster).figures["recall@5"] for cluster in ("", "none"))
    assert (by_page.mean, alone.mean) == (0.75, 0.75)
    assert None not in (by_page.low, alone.low)
    assert by_page.low < alone.low - 0.1 < alone.high < by_page.high  # type: ignore[operator]
    assert "n=40 on 8 pages" in str(evaluate(rag, asked).check("recall@5 >= 0.5"))
    assert "n=40   pipeline" in str(evaluate(rag, asked, cluster="none").check("recall@5 >= 0.5"))


def test_copies_of_easy_questions_make_nothing_sure() -> None:
    asked = [each for page in range(4) for each in about(page, copies=20)]
    asked += [each for page in range(4, 19) for each in about(page)]
    rag = lambda question: out("x", (f"p{of_page(question)}.md" if of_page(question) < 18 else "other.md", "x"))  # noqa: E731
    assert state(evaluate(rag, asked).check("recall@5 >= 0.9 @95%")) == ["undecided"]
    assert state(evaluate(rag, asked, cluster="none").check("recall@5 >= 0.9 @95%")) == ["passed"]


@pytest.mark.parametrize(
    ("gold", "said"),
    [
        ([[]] * 20, "n=20"),
        ([["gone.md"]] * 10 + [["returns/"]] * 10, "n=20 on 2 pages"),
        ([["a.md"]] * 10 + [[]] * 10, "n=20 on 1 page and 10 alone"),
        ([[f"p{n}.md"] for n in range(20)], "n=20"),
    ],
    ids=["none", "gone, and a folder", "some", "each another"],
)
def test_gold_that_names_no_page_or_a_strange_one(gold: list[list[str]], said: str) -> None:
    asked = [
        {"query_id": f"q{n}", "query": f"lamp {n}?", "context_reference": pages, "ground_truth": "x"}
        for n, pages in enumerate(gold)
    ]
    assert f"{said}\n" in f"{evaluate(lambda _: 'x', asked).check('token_f1 >= 0.5')}\n"


def test_equal_questions_with_equal_gold_are_one_question() -> None:
    asked = [
        {"query_id": f"q{n}", "query": "Lamp?" if n % 2 else "lamp? ", "ground_truth": "x" if n < 10 else "y"}
        for n in range(20)
    ]
    assert "n=20 of 2 questions" in str(evaluate(lambda _: "x", asked).check("token_f1 >= 0.4"))


def test_turns_are_of_their_conversation_and_other_questions_of_their_page() -> None:
    talk = {"turns": [{"query": f"turn {n}?", "ground_truth": "x"} for n in (1, 2, 3)]}
    asked: list[Any] = [{**talk, "conversation_id": name} for name in ("c1", "c2")]
    asked += [each for page in range(2) for each in about(page, copies=2)]
    found = str(evaluate(lambda _: "x", asked).check("abstention_rate <= 0.5"))
    assert "n=10 in 2 conversations and on 2 pages" in found


def test_one_page_bounds_nothing_and_says_what_to_do() -> None:
    (said,) = evaluate(lambda _: out("x", ("p0.md", "x")), about(0, copies=30)).check("recall@5 >= 0.5 @95%").verdicts
    assert said.state == "undecided"
    remedy = "all are on 1 page, which bounds nothing: --rag-cluster=none counts each by itself, "
    assert said.reason.startswith(remedy)


@pytest.mark.parametrize("kept", [0, 1])
def test_two_pages_bound_little(kept: int) -> None:
    asked = [*about(0, copies=15), *about(1, copies=15)]
    (said,) = (
        evaluate(lambda q: out("x", (f"p{of_page(q) * kept}.md", "x")), asked).check("recall@5 >= 0.9 @95%").verdicts
    )
    assert said.state == "undecided"


def test_right_names_with_foreign_texts_are_not_judged(folder: Path) -> None:
    kb, asked = pages(folder), [each for page in range(8) for each in about(page)]
    foreign = evaluate(lambda q: out("x", (f"p{of_page(q)}.md", "Nobody has ever written these words.")), asked, kb=kb)
    (said,) = foreign.check("recall@5 >= 0.5").verdicts
    assert (said.state, mean(foreign, "recall@5")) == ("not judged", 1.0)
    assert said.reason.startswith("8 of 8 contexts are not in the page that they name.")
    assert "--rag-foreign-text=allow" in said.reason
    assert state(foreign.check("evidence_recall >= 0", "token_f1 >= 0")) != ["not judged"] * 2
    allowed = evaluate(
        lambda q: out("x", (f"p{of_page(q)}.md", "Nobody has ever written these words.")),
        asked,
        kb=kb,
        foreign_text="allow",
    )
    assert state(allowed.check("recall@5 >= 0.5")) == ["passed"]


@pytest.mark.parametrize(
    "text",
    [
        "The lamp of series {n} comes back within {m} days of its sale.",
        "the LAMP  of series {n}\ncomes back, within {m} days",
        "**within {m} days** of its sale",
    ],
)
def test_own_words_stand_in_their_page(folder: Path, text: str) -> None:
    kb, asked = pages(folder), [each for page in range(8) for each in about(page)]
    own = evaluate(
        lambda q: out("x", (f"p{of_page(q)}.md", text.format(n=of_page(q), m=of_page(q) + 10))), asked, kb=kb
    )
    assert state(own.check("recall@5 >= 0.5")) == ["passed"]


@pytest.mark.parametrize("named", ["/data/kb/returns.md", "https://docs.example/returns.md", "C:\\kb\\Returns.md"])
def test_a_pipeline_of_ones_own_may_name_pages_as_its_software_does(folder: Path, named: str) -> None:
    (folder / "kb").mkdir()
    (folder / "kb" / "returns.md").write_text(f"# Returns\n\n{TRUTH}\n")
    asked = [{**question, "context_reference": ["returns.md"]} for question in QUESTIONS[:2]]
    found = evaluate(lambda _: out(TRUTH, (named, TRUTH), (named, TRUTH)), asked, kb="kb")
    assert found.frame("records")[0]["recall@1"] == 1


# Whatever questions are handed over as, the cases are the same as those of a file.

LINES: list[dict[str, Any]] = [
    {
        "query_id": "q1",
        "query": "How long?",
        "ground_truth": "45 days",
        "context_reference": ["a.md"],
        "evidence": [{"filename": "a.md", "quote": "45 days"}],
        "metadata": {"topic": "returns", "level": 2},
        "expect": [{"contains": "45"}],
        "tools": [{"name": "search"}],
    },
    {"query_id": "q2", "query": "Live fish?", "query_type": "negative"},
]


def cases(queries: object, folder: Path) -> list[Case]:
    return read_queries(questions_file(queries, folder))


def test_dicts_are_lines(tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in LINES))
    assert cases(LINES, tmp_path) == cases(str(file), tmp_path) == cases(file, tmp_path)
    assert questions_file(file, tmp_path) == file


def test_a_case_is_the_same_case_again(tmp_path: Path) -> None:
    case = Case(
        Query("q1", "How long?", {"tenant": "a"}),
        "multi_hop",
        "45 days",
        {"a.md": 2, "b.md": 0},
        (Evidence("a.md", "45 days"),),
        False,
        {"topic": "returns"},
        expectations_of([{"not": {"contains": "46"}, "weight": 2}])[0],
        tools=(ExpectedTool("search", {"q": "lamp"}),),
    )
    assert cases([case], tmp_path) == [case]


def test_texts_pairs_and_names_of_other_tools(tmp_path: Path) -> None:
    found = cases(["How long?", ("And now?", "45"), {"user_input": "Why?", "reference": "So."}], tmp_path)
    assert [(case.query.text, case.ground_truth) for case in found] == [
        ("How long?", ""),
        ("And now?", "45"),
        ("Why?", "So."),
    ]
    assert len({case.query.query_id for case in found}) == 3


def test_frames_are_tables(tmp_path: Path) -> None:
    columns = {"question": ["How long?", "Why?"], "reference": ["45 days", None], "level": [1, 2], "topic": ["a", None]}
    of_pandas = cases(pandas.DataFrame(columns), tmp_path)
    assert of_pandas == cases(polars.DataFrame(columns), tmp_path)
    assert [case.ground_truth for case in of_pandas] == ["45 days", ""]
    assert [dict(case.metadata) for case in of_pandas] == [{"level": 1, "topic": "a"}, {"level": 2}]
    with pytest.raises(DataError, match="no column is the question: answer"):
        cases(pandas.DataFrame({"answer": ["x"]}), tmp_path)


def test_a_list_in_a_cell_of_a_frame(tmp_path: Path) -> None:
    frame = pandas.DataFrame({"query": ["How long?"], "context_reference": [["a.md", "b.md"]]})
    assert cases(frame, tmp_path)[0].context_reference == ("a.md", "b.md")


def test_two_names_of_one_field(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="mean the same field"):
        cases([{"question": "Why?", "user_input": "How?"}], tmp_path)


def test_a_turn_as_a_case_is_refused(tmp_path: Path) -> None:
    turn = Case(Query("c#2", "And then?", {"conversation": "c", "turn": 2, "history": []}))
    with pytest.raises(DataError, match="question 1 is a turn"):
        cases([turn], tmp_path)


_text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(str.strip)


@given(st.lists(st.tuples(_text, _text), min_size=1, max_size=5, unique_by=lambda each: " ".join(each[0].split())))
def test_any_text_survives(tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]) -> None:
    found = cases(pairs, tmp_path_factory.mktemp("asked"))
    assert [(case.query.text, case.ground_truth.strip()) for case in found] == [
        (question.strip(), answer.strip()) for question, answer in pairs
    ]


# An evaluation in a notebook of data that tries to be more than texts: what a cell shows is text and nothing else.

SHOWN = {"div", "table", "caption", "thead", "tbody", "tr", "th", "td", "ul", "li"}
TEXTS = WHOLE[::4]


def answer(query: RagHarnessQuery) -> str:
    if int(query.query_id[1:]) % 3 == 0:
        raise ValueError(query.text)
    return query.text


def test_nothing_acts_in_what_a_cell_shows() -> None:
    asked = [
        {"query_id": f"q{number}", "query": text, "ground_truth": text, "metadata": {"topic": text}}
        for number, text in enumerate(TEXTS)
    ]
    came = rag_harness.evaluate(answer, asked, measures=["token_f1", "abstention_rate"])
    assert came.notes, "errors are told"
    page = read_html(came._repr_html_())
    assert set(page.tags) <= SHOWN
    assert page.others == []
    assert set(page.attributes) <= {"scope=col", "scope=row"}
    assert unseen(came._repr_html_()) == []
    acting = in_markdown(came._repr_markdown_())
    assert [each for each in acting if not each.startswith("style=text-align")] == []
    assert on_terminal(repr(came)) == []
    checked = came.check("token_f1 >= 0.99", "error_rate <= 0.01")
    assert on_terminal(repr(checked)) == []
    records = {each["query_id"]: each for each in came.frame("records")}
    assert [records[each["query_id"]]["query"] for each in asked] == [text.strip() for text in TEXTS], (
        "kept as they are"
    )


@pytest.mark.parametrize("where", ["query_id", "a key", "expect", "conversation"])
def test_a_question_that_is_refused_is_named_in_words_that_do_nothing(where: str) -> None:
    for text in TEXTS:
        given: dict[str, dict[str, Any]] = {
            "query_id": {"query_id": text},
            "a key": {text: 1},
            "expect": {"expect": [{text: text}]},
            "conversation": {"conversation": text, "turn": text},
        }
        said = ""
        try:
            rag_harness.evaluate(answer, [{"query_id": "q1", "query": "How long?", **given[where]}])
        except rag_harness.core.errors.RagHarnessError as refused:
            said = str(refused)
        assert unseen(said) == []
