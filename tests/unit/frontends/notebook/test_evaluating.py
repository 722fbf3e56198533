"""``evaluate`` and ``aevaluate``: what is asked, kept, taken over, and refused before anything is asked."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

import rag_harness
from rag_harness import Answer, Chunk, Hit, PipelineOutput, Query
from rag_harness.core.errors import CriticalError, DataError, PrerequisiteError, RegistryError, SettingsError
from rag_harness.core.process_lock import RUN_LOCK, process_lock
from rag_harness.records.manifest import read_manifest
from rag_harness.runs import engine
from tests.unit.models.recording.answering import answering
from tests.unit.server import as_json, serving

QUESTIONS = [("return a lamp?", "45 days"), ("what does express cost?", "9.90"), ("live fish?", "")]
SAID = "You can return a lamp within 45 days."


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAG_PROFILE", "mock")
    return tmp_path


class Asked:
    """A pipeline that notes its questions."""

    def __init__(self) -> None:
        self.questions: list[str] = []

    def answer(self, query: Query) -> str:
        self.questions.append(query.text)
        return SAID


def rows_of(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path("output", f"{name}.jsonl").read_text().splitlines()]


def typed(source: str) -> dict[str, Any]:
    """Return what code defines that was typed into a notebook: no file has it."""
    found: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(source, "<ipython-input-1>", "exec"), found)
    return found


def test_a_function_gets_the_text_and_its_answers_are_measured() -> None:
    asked: list[object] = []

    def rag(question: str) -> str:
        asked.append(question)
        return SAID

    result = rag_harness.evaluate(rag, QUESTIONS)
    assert sorted(map(str, asked)) == sorted(question for question, _ in QUESTIONS)
    assert result.experiment == "rag"
    assert [row["llm_answer"] for row in rows_of("rag")] == [SAID] * 3
    assert [row["ground_truth"] for row in rows_of("rag")] == ["45 days", "9.90", ""]
    figure = result.figures["token_f1"]
    # "45 days" is 2 of 9 words, articles left out by nobody here: f1 = 2 * (2/7) * 1 / (2/7 + 1), and 0 for 9.90.
    assert figure.n == 2
    assert figure.mean is not None
    assert 0 < figure.mean < 0.5
    assert figure.low is not None
    assert figure.low <= figure.mean


@pytest.mark.parametrize("annotation", [Query, "Query", "rag_harness.Query"])
def test_a_function_whose_parameter_is_a_query_gets_the_query(annotation: object) -> None:
    def rag(query: Any) -> str:
        return f"{query.query_id} {query.text}"

    rag.__annotations__["query"] = annotation
    rag_harness.evaluate(rag, [{"query_id": "q1", "query": "Why?"}])
    assert rows_of("rag")[0]["llm_answer"] == "q1 Why?"


def test_an_async_function_and_an_object_and_an_experiment_are_asked() -> None:
    async def rag(question: str) -> str:
        await asyncio.sleep(0)
        return SAID

    assert rag_harness.evaluate(rag, QUESTIONS).figures["error_rate"].mean == 0
    assert rag_harness.evaluate(Asked(), QUESTIONS, name="object").figures["error_rate"].n == 3
    experiment = rag_harness.Experiment("declared", Asked())
    assert rag_harness.evaluate(experiment, QUESTIONS).experiment == "declared"


def test_what_is_retrieved_is_measured(folder: Path) -> None:
    (folder / "kb").mkdir()
    (folder / "kb" / "returns.md").write_text("# Returns\n\nWithin 45 days.\n")

    def rag(question: str) -> PipelineOutput:
        hit = Hit(Chunk("returns.md#1", "returns.md", SAID), 1.0, 1)
        return PipelineOutput(Answer(SAID), retrieved=(hit,), context=(hit,))

    questions = [{"query": "return a lamp?", "context_reference": "returns.md"}]
    result = rag_harness.evaluate(rag, questions, kb="kb", measures="recall@3")
    assert next(iter(result.figures)) == "recall@3"
    assert result.figures["recall@3"].mean == 1.0
    assert result.frame("records")[0]["recall@3"] == 1.0


def test_a_question_that_fails_is_a_failed_trial_and_the_others_go_on() -> None:
    def rag(question: str) -> str:
        if "fish" in question:
            raise ValueError("no <b>fish</b>\x1b[31m")
        return SAID

    result = rag_harness.evaluate(rag, QUESTIONS)
    assert [row["status"] for row in rows_of("rag")] == ["ok", "ok", "error"]
    assert result.figures["error_rate"].mean == pytest.approx(1 / 3)
    shown = {"plain": repr(result), "html": result._repr_html_(), "markdown": result._repr_markdown_()}
    assert all("fish" in text and "\x1b" not in text for text in shown.values())
    assert "<b>" not in shown["html"]
    assert "<b>" not in shown["markdown"]


def test_what_is_no_answer_is_a_failed_trial_that_names_the_function() -> None:
    def rag(question: str) -> Any:
        return {"reply": SAID}

    rag_harness.evaluate(rag, QUESTIONS[:1])
    assert "rag() returned dict with reply; it must return" in rows_of("rag")[0]["error"]["message"]


def test_finished_rows_of_a_version_are_reused() -> None:
    asked, mine = Asked(), {"name": "mine", "version": "1"}
    rag_harness.evaluate(asked, QUESTIONS, **mine)
    assert len(asked.questions) == 3
    result = rag_harness.evaluate(asked, QUESTIONS, measures="recall@3", **mine)
    assert len(asked.questions) == 3
    assert "3 answers of an earlier run reused." in result.notes
    rag_harness.evaluate(asked, QUESTIONS, overwrite=True, **mine)
    assert len(asked.questions) == 6
    other = rag_harness.evaluate(asked, [*QUESTIONS, "One more?"], **mine)
    assert len(asked.questions) == 10, "another file of questions is another fingerprint, as in a run of pytest"
    assert any("moved to output/previous/" in note for note in other.notes)


def test_rows_of_what_was_typed_into_a_notebook_are_taken_over_by_their_version_alone() -> None:
    found = typed("asked = []\ndef rag(question):\n    asked.append(question)\n    return 'Within 45 days.'\n")
    first = rag_harness.evaluate(found["rag"], QUESTIONS)
    rag_harness.evaluate(found["rag"], QUESTIONS)
    assert len(found["asked"]) == 6
    assert any("version=" in note for note in first.notes)
    rag_harness.evaluate(found["rag"], QUESTIONS, version="k=5")
    result = rag_harness.evaluate(found["rag"], QUESTIONS, version="k=5")
    assert len(found["asked"]) == 9
    assert not any("version=" in note for note in result.notes)
    rag_harness.evaluate(found["rag"], QUESTIONS, version="k=6")
    assert len(found["asked"]) == 12


def test_an_interrupted_evaluation_goes_on() -> None:
    asked: list[str] = []

    class Rag:
        def answer(self, query: Query) -> str:
            asked.append(query.text)
            if len(asked) == 2:
                raise CriticalError("the key is rejected")
            return SAID

    with pytest.raises(CriticalError, match="the key is rejected"):
        rag_harness.evaluate(Rag(), QUESTIONS, name="mine", concurrency=1)
    assert len(asked) == 2, "no question is asked after one that no later one can get past"
    record = read_manifest(Path("output")).suites["mine"]
    assert len(record.not_run) == 1
    result = rag_harness.evaluate(Rag(), QUESTIONS, name="mine", concurrency=1, resume=True)
    assert len(asked) == 4
    assert [row["status"] for row in rows_of("mine")] == ["ok"] * 3
    assert result.figures["error_rate"].mean == 0


def test_a_kernel_that_is_interrupted_keeps_what_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "STOP_WAIT", 0.3)
    asked: list[str] = []

    async def rag(question: str) -> str:
        asked.append(question)
        if len(asked) == 2:
            while not (Path("output/rag.jsonl").is_file() and rows_of("rag")):
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.3)  # What counts the row comes after it, in the thread that is interrupted.
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            await asyncio.sleep(20)
        return SAID

    with pytest.raises(KeyboardInterrupt):
        rag_harness.evaluate(rag, QUESTIONS, concurrency=1)
    assert [row["query"] for row in rows_of("rag")] == asked[:1]
    assert len(read_manifest(Path("output")).suites["rag"].not_run) == 2
    result = rag_harness.evaluate(rag, QUESTIONS, concurrency=1, resume=True)
    assert len(asked) == 4
    assert result.figures["error_rate"].mean == 0


def test_evaluate_may_be_called_where_a_loop_runs() -> None:
    async def rag(question: str) -> str:
        await asyncio.sleep(0)
        return SAID

    async def cell() -> rag_harness.Evaluation:
        return rag_harness.evaluate(rag, QUESTIONS)

    assert asyncio.run(cell()).figures["error_rate"].mean == 0


def test_aevaluate_asks_on_the_loop_of_the_notebook_which_goes_on() -> None:
    loops: list[object] = []

    class Rag:
        async def answer(self, query: Query) -> str:
            loops.append(asyncio.get_running_loop())
            await asyncio.sleep(0.01)
            return SAID

    async def cell() -> tuple[rag_harness.Evaluation, list[object], int]:
        async def rag(question: str) -> str:
            return await Rag().answer(Query("", question))

        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.001)

        ticking = asyncio.create_task(tick())
        result = await rag_harness.aevaluate(rag, QUESTIONS)
        await rag_harness.aevaluate(Rag(), QUESTIONS, name="object")
        ticking.cancel()
        return result, [asyncio.get_running_loop()], ticks

    result, own, ticks = asyncio.run(cell())
    assert result.figures["error_rate"].mean == 0
    assert set(loops) == set(own)
    assert len(loops) == 6
    assert ticks > 5


def test_aevaluate_that_is_cancelled_keeps_what_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "STOP_WAIT", 0.3)
    asked: list[str] = []

    async def rag(question: str) -> str:
        asked.append(question)
        if len(asked) > 1:
            await asyncio.sleep(60)
        return SAID

    async def cell() -> None:
        work = asyncio.create_task(rag_harness.aevaluate(rag, QUESTIONS, concurrency=1))
        while len(asked) < 2 and not work.done():
            await asyncio.sleep(0.01)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(cell())
    assert len(asked) == 2
    assert [row["status"] for row in rows_of("rag")] == ["ok"]
    assert len(read_manifest(Path("output")).suites["rag"].not_run) == 2


def test_judged_measures_are_judged_once() -> None:
    def rag(question: str) -> PipelineOutput:
        hit = Hit(Chunk("returns.md#1", "returns.md", SAID), 1.0, 1)
        return PipelineOutput(Answer(SAID), context=(hit,))

    result = rag_harness.evaluate(rag, QUESTIONS, measures=["context_recall"], judge="mock")
    assert result.figures["context_recall"].n == 2
    scores = Path("output/scores/rag.jsonl").read_bytes()
    assert scores.count(b"\n") == 2
    again = rag_harness.evaluate(rag, QUESTIONS, measures=["context_recall"], judge="mock")
    assert Path("output/scores/rag.jsonl").read_bytes() == scores
    assert again.figures == result.figures


def test_two_pipelines_on_the_same_questions_stand_beside_each_other() -> None:
    rag_harness.evaluate(Asked(), QUESTIONS, name="one")
    rag_harness.evaluate(Asked(), QUESTIONS, name="two")
    assert set(rag_harness.load_results("output")["experiment"]) == {"one", "two"}
    rag_harness.evaluate(Asked(), QUESTIONS[:2], name="three")
    assert set(rag_harness.load_results("output")["experiment"]) == {"three"}, "they were asked something else"


def test_a_result_stays_as_it_is() -> None:
    result = rag_harness.evaluate(Asked(), QUESTIONS, name="mine")
    rag_harness.evaluate(Asked(), QUESTIONS[:1], name="mine")
    assert len(result.frame("records")) == len(result.frame()) == result.frame("polars").height == 3
    assert result.figures["error_rate"].n == 3


def test_gates_are_judged_as_text() -> None:
    result = rag_harness.evaluate(Asked(), QUESTIONS, name="mine")
    checked = result.check("token_f1 >= 0.1", "mine[query_type=direct]: error_rate <= 0.05", "token_f1 >= 0.9")
    assert [each.state for each in checked.verdicts] == ["passed", "passed", "failed"]
    assert not checked.passed
    assert "mine: token_f1 >= 0.1" in repr(checked)
    assert result.check("error_rate <= 0.1").passed
    assert not result.check("error_rate <= 0.1 @95%").passed, "three questions show nothing"
    part = rag_harness.evaluate(Asked(), QUESTIONS, name="mine", limit=2)
    assert not part.check("error_rate <= 0.1").passed, "a gate never passes on part of the data"


def test_an_argument_that_was_renamed_is_told_with_its_name() -> None:
    with pytest.raises(SettingsError, match=r"^evaluate: inconclusive is not an option .*: it is called undecided"):
        rag_harness.evaluate(Asked(), QUESTIONS, inconclusive="fail")


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        ("faithfulness >= 0.5", "Evaluate with measures"),
        ("token_f2 >= 0.5", "Did you mean 'token_f1'"),
        ("other: token_f1 >= 0.5", "Known: mine"),
        ("mine: token_f1 >= baseline", "baseline"),
        ("pass^3(token_f1>=0.5) >= 0.5", "rag-repeats"),
    ],
)
def test_a_gate_that_cannot_be_judged_is_an_error(gate: str, said: str) -> None:
    result = rag_harness.evaluate(Asked(), QUESTIONS, name="mine")
    with pytest.raises(SettingsError, match=said):
        result.check(gate)


def test_another_run_in_the_folder_is_an_error(folder: Path) -> None:
    (folder / "output").mkdir()
    with process_lock(folder / "output" / RUN_LOCK), pytest.raises(CriticalError, match="Another run is writing"):
        rag_harness.evaluate(Asked(), QUESTIONS)


def test_a_service_is_asked_by_its_name(folder: Path) -> None:
    with serving(as_json({"answer": SAID})) as server:
        (folder / "shop.toml").write_text(f'url = "{server.url}/ask"\n')
        result = rag_harness.evaluate("shop", QUESTIONS, endpoint="shop.toml", mode="live")
    assert result.figures["error_rate"].mean == 0
    assert [row["llm_answer"] for row in rows_of("shop")] == [SAID] * 3


def _rag(question: str) -> str:
    raise AssertionError(f"{question} was asked")


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: rag_harness.evaluate(lambda: "", QUESTIONS), SettingsError, "cannot be called with one question"),
        (lambda: rag_harness.evaluate(lambda a, b: "", QUESTIONS), SettingsError, "missing a required argument: 'b'"),
        (lambda: rag_harness.evaluate(3, QUESTIONS), SettingsError, "expected a function of a question"),
        (lambda: rag_harness.evaluate(Asked, QUESTIONS), SettingsError, "expected a function of a question"),
        (lambda: rag_harness.evaluate("e33", QUESTIONS), RegistryError, "Did you mean 'e3'"),
        (lambda: rag_harness.evaluate("e3-sim", QUESTIONS), SettingsError, "pytest --rag-run=e3-sim"),
        (
            lambda: rag_harness.evaluate(_rag, QUESTIONS, name="e3"),
            SettingsError,
            "there is an experiment|that there is",
        ),
        (lambda: rag_harness.evaluate(_rag, QUESTIONS, name="golden"), SettingsError, "not a name for an experiment"),
        (lambda: rag_harness.evaluate(_rag, [], name="a"), DataError, "no question"),
        (lambda: rag_harness.evaluate(_rag, 5, name="a"), DataError, "queries is int"),
        (lambda: rag_harness.evaluate(_rag, {"query": "Why?"}, name="a"), DataError, "queries is dict"),
        (lambda: rag_harness.evaluate(_rag, [("a", "b", "c")], name="a"), DataError, "question 1 is"),
        (
            lambda: rag_harness.evaluate(_rag, [{"query": "Why?", "expct": []}], name="a"),
            DataError,
            "Did you mean 'expe",
        ),
        (lambda: rag_harness.evaluate(_rag, ["Why?", "Why?"], name="a"), DataError, "queries.jsonl:2"),
        (lambda: rag_harness.evaluate(_rag, "none.jsonl", name="a"), DataError, "No file"),
        (lambda: rag_harness.evaluate(_rag, QUESTIONS, name="a", measures="tokn_f1"), SettingsError, "'token_f1'"),
        (
            lambda: rag_harness.evaluate(_rag, QUESTIONS, name="a", measures="metamorphic_typos"),
            SettingsError,
            "last test",
        ),
        (lambda: rag_harness.evaluate(_rag, QUESTIONS, name="a", limt=3), SettingsError, "Did you mean 'limit'"),
        (lambda: rag_harness.evaluate(_rag, QUESTIONS, name="a", limit="x"), SettingsError, "limit is 'x'"),
        (lambda: rag_harness.evaluate(_rag, QUESTIONS, name="a", repeats=3), SettingsError, "pytest --rag-repeats"),
        (lambda: rag_harness.evaluate(_rag, QUESTIONS, name="a", queries_=""), SettingsError, "Unknown option"),
        (
            lambda: rag_harness.evaluate(_rag, QUESTIONS, name="a", measures="faithfulness", judge="nobody"),
            RegistryError,
            "Unknown judge",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_before_anything_is_asked(
    call: Callable[[], object], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        call()
    assert not list(Path("output").glob("*.jsonl"))


def test_every_option_is_usable_here_or_named_as_one_of_pytest() -> None:
    """An option that is neither would be taken and looked at by nobody."""
    for option in ("strict", "slices", "save", "tune"):
        with pytest.raises(PrerequisiteError, match=f"--rag-{option}"):
            rag_harness.evaluate(_rag, QUESTIONS, **{option: "x"})


def test_calls_of_a_pipeline_are_recorded_and_replayed_with_the_server_gone() -> None:
    with answering("Within 45 days.") as server:

        def rag(question: str) -> str:
            body = {"model": "m", "messages": [{"role": "user", "content": question}]}
            said = httpx.post(f"{server.url}/chat", json=body).json()
            return str(said["choices"][0]["message"]["content"])

        rag_harness.evaluate(rag, QUESTIONS, mode="record")
        assert len(server.calls) == len(QUESTIONS)
        rag_harness.evaluate(rag, QUESTIONS, mode="record")
        assert len(server.calls) == len(QUESTIONS)
    rag_harness.evaluate(rag, QUESTIONS, mode="replay")
    assert [row["llm_answer"] for row in rows_of("rag")] == ["Within 45 days."] * len(QUESTIONS)
    assert all(row["recorded_at"] for row in rows_of("rag"))


def test_a_log_is_written_where_one_is_asked_for(folder: Path) -> None:
    rag_harness.evaluate(lambda question: SAID, QUESTIONS, name="quiet")
    assert not (folder / "logs").exists()
    rag_harness.evaluate(lambda question: SAID, QUESTIONS, name="told", logs="logs")
    assert [log.name for log in (folder / "logs").iterdir()] == ["told.log"]


def test_a_client_that_was_made_once_lives_through_all_evaluations() -> None:
    homes = set()

    class Client:
        """As httpx: its connections belong to the loop that it was first used on."""

        home: asyncio.AbstractEventLoop | None = None

        async def ask(self) -> str:
            self.home = self.home or asyncio.get_running_loop()
            homes.add(asyncio.get_running_loop())
            if self.home.is_closed() or self.home is not asyncio.get_running_loop():
                raise RuntimeError("Event loop is closed")
            return SAID

    client = Client()

    async def rag(question: str) -> str:
        return await client.ask()

    for number in range(3):
        found = rag_harness.evaluate(rag, QUESTIONS, name=f"run{number}")
        assert found.figures["error_rate"].mean == 0
    # A plain function that returns what is to be awaited, and an object.
    assert rag_harness.evaluate(lambda question: client.ask(), QUESTIONS, name="plain").figures["error_rate"].mean == 0

    class Pipeline:
        async def answer(self, query: Query) -> str:
            return await client.ask()

    assert rag_harness.evaluate(Pipeline(), QUESTIONS, name="held").figures["error_rate"].mean == 0
    assert len(homes) == 1


def test_a_sync_pipeline_may_run_a_loop_of_its_own() -> None:
    async def said() -> str:
        await asyncio.sleep(0)
        return SAID

    ways: list[Callable[[str], str]] = [
        lambda question: asyncio.get_event_loop().run_until_complete(said()),
        lambda question: asyncio.run(said()),
        lambda question: anyio.run(said),
    ]
    for number, way in enumerate(ways):
        for again in range(2):
            found = rag_harness.evaluate(way, QUESTIONS, name=f"way{number}{again}")
            assert found.figures["error_rate"].mean == 0, found.frame("records")[0]["error"]


def test_a_pipeline_that_exits_ends_its_trial_and_not_the_loop() -> None:
    async def leaves(question: str) -> str:
        raise SystemExit(3)

    async def stays(question: str) -> str:
        return SAID

    assert rag_harness.evaluate(leaves, QUESTIONS, name="leaves").figures["error_rate"].mean == 1
    assert rag_harness.evaluate(stays, QUESTIONS, name="stays").figures["error_rate"].mean == 0


def test_an_answer_may_come_in_pieces() -> None:
    def pieces(question: str) -> Any:
        yield from ("You can return ", "a lamp within 45 days.")

    async def later(question: str) -> Any:
        for piece in pieces(question):
            yield piece

    for name, way in {"pieces": pieces, "later": later}.items():
        rag_harness.evaluate(way, QUESTIONS[:1], name=name)
        assert rows_of(name)[0]["llm_answer"] == SAID


def test_a_context_that_names_no_page_is_of_the_one_page_that_has_its_words(folder: Path) -> None:
    (folder / "kb").mkdir()
    (folder / "kb" / "context.md").write_text("# Context\n\nA page of this very name. It is about nothing at all.\n")
    (folder / "kb" / "returns.md").write_text(f"# Returns\n\n**{SAID}** It must be clean.\n")
    found = [f"{SAID} It must be clean.", "Words that stand in no page of the shop.", {"text": SAID, "source": "x.md"}]
    question = {"query": "return a lamp?", "context_reference": ["returns.md"]}
    result = rag_harness.evaluate(lambda _: ("45 days", found), [question], kb_dir="kb")
    assert result.figures["recall@5"].mean == 1
    (row,) = rows_of(result.experiment)
    assert [chunk["chunk_id"] for chunk in row["retrieved_chunks"]] == ["returns.md#1", "context#2", "x.md#3"]


def test_pages_that_cannot_be_read_here_place_no_context_and_stop_nothing(folder: Path) -> None:
    (folder / "kb").mkdir()
    (folder / "kb" / "broken.pdf").write_bytes(b"%PDF-1.4 of no use")
    result = rag_harness.evaluate(lambda _: ("45 days", [SAID]), QUESTIONS, kb_dir="kb")
    assert [row["llm_answer"] for row in rows_of(result.experiment)] == ["45 days"] * 3
