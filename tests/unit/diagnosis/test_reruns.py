"""Derived trials: faults that nobody knows of are found by asking again, also at another workplace."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest

from rag_harness.__main__ import main
from rag_harness.core.concurrency import Lazy
from rag_harness.core.protocols import Experiment
from rag_harness.core.settings import Settings, masked
from rag_harness.core.types import Case, Expectation, PipelineOutput, Query
from rag_harness.diagnosis.explainer import Explainer
from rag_harness.diagnosis.reruns import DerivedRuns, DerivedTrial, RerunSupport, running, settings_of
from rag_harness.diagnosis.symptoms import reranks
from rag_harness.frontends.cli.runs import explain_arguments
from rag_harness.pipelines.experiments import result_path
from rag_harness.pipelines.trace import GivenSearches
from rag_harness.pipelines.user_pipelines import declared, output_of
from rag_harness.records.cases import StoredCase
from rag_harness.records.expectations import expectations_of
from rag_harness.records.row import RowError
from rag_harness.records.scores import CauseLine, read_causes
from rag_harness.runs.engine import Engine, InlineLoop
from rag_harness.runs.trial import FIRST, Trial, TrialOutcome, TrialRequest
from tests.unit.diagnosis.made_up import CASES, OLD, PAGES, THINGS, Pages, Pipeline, chunks_of, experiment, hits, parts
from tests.unit.diagnosis.test_causes import row
from tests.unit.diagnosis.test_planted_faults import rows_of
from tests.unit.evaluation.measures.agents.trials import search
from tests.unit.page.runs import amend
from tests.unit.rows import failed_row, make_chunk, make_row
from tests.unit.suite_tables import golden_row, write_run

# Faults planted in answers and contexts alone: nobody knows an index, and no model judges.

# Faults planted in answers and contexts alone: nobody knows an index, and no model judges.

CHUNKS = [chunk for chunk in chunks_of(PAGES) if chunk.doc_id != OLD]
Said = tuple[str, list[tuple[str, str]]]
"""An answer, and the text and source of each context."""


@dataclass
class Alone:
    """Returns an answer and contexts, as ``fault`` makes them of the number of a question."""

    fault: Callable[[int], Said]

    async def answer(self, query: Query) -> PipelineOutput:
        answer, contexts = self.fault(int(query.query_id[1:]))
        said = [{"text": text, "source": source} for text, source in contexts]
        return output_of({"answer": answer, "contexts": said}, "the pipeline")


def page(n: int) -> list[tuple[str, str]]:
    """Return the chunks of the page that answers question ``n``."""
    return [(chunk.text, chunk.doc_id) for chunk in CHUNKS if chunk.doc_id == f"{THINGS[n]}.md"]


def found(output: Path, fault: Callable[[int], Said], cases: Sequence[Case] = CASES) -> list[CauseLine]:
    made = declared("x1", Alone(fault), "")
    rows = rows_of(made)
    assert not any(map(reranks, rows))
    write_run(output, rows, cases)
    with running(output, parts(output)) as runs:
        return Explainer(output, RerunSupport(lambda _: made, lambda _: "aaaa", lambda _: Pages()), runs).every()


def right(n: int) -> str:
    return CASES[n].ground_truth


def stale(n: int) -> Said:
    old = str(31 + n), str(11 + n)
    return right(n).replace(*old), [(text.replace(*old), source) for text, source in page(n)]


def of_another(n: int) -> Said:
    return right((n + 1) % 6), page((n + 1) % 6)


def one_wrong_chunk(n: int) -> Said:
    return f"A {THINGS[n]} leaves at noon.", [(f"Parcels of week {n} leave at noon.", "noon.md")]


def split(n: int) -> Said:
    title, made, allowed = page(n)
    return "I don't know.", [title, made, (allowed[0][:32], allowed[1])]


def cut_where_it_happens(n: int) -> Said:
    """The one chunk of the right page ends inside a sentence, each at another place."""
    begun, _, allowed = PAGES[n].text.strip().rpartition("\n\n")
    sent = " ".join(allowed.split()[: 6 - n])
    return "I don't know.", [(sent if n % 2 else f"{begun}\n\n{sent}", page(n)[0][1])]


def another_page_above(n: int) -> Said:
    other = (n + 1) % 6
    return f"It is {31 + other} days.", [page(other)[2], page(n)[2]]


def drops(n: int) -> Said:
    other = f"A {THINGS[n]} of ash and linen comes with thick woollen covers."
    return f"The {THINGS[n]} comes with thick woollen covers.", [(other, "other.md"), *page(n)]


FAULTS: list[tuple[Callable[[int], Said], str, str]] = [
    (stale, "the index has another version of the page", "index the documents again"),
    (of_another, "the context of another question", "mixed up"),
    (one_wrong_chunk, "ranked too low", "orders"),
    (lambda n: ("Please ask our friendly team.", page(n)), "the same answer to every question", "cache"),
    (
        lambda n: ("Sie dürfen es innerhalb der Frist zurückgeben, die in den Unterlagen steht.", page(n)),
        "the same answer to every question, in another language",
        "question",
    ),
    (
        lambda n: (f"Sie dürfen es bis zu {31 + n} Tage nach der Lieferung wieder zurückgeben.", page(n)),
        "answers in another language",
        "language",
    ),
    (lambda n: ("I don't know.", page(n)[1:2] * 4), "the same chunk several times", "drop chunks"),
    (lambda n: ("I don't know.", page(n)[:2]), "ranked too low", "orders"),
    (lambda n: (right((n + 1) % 6), page(n)), "the answer to another question", "mixed up"),
    (cut_where_it_happens, "cut by a chunk border", "overlap"),
    (another_page_above, "a wrong page ranked above", "rank the right page first"),
    (split, "cut by a chunk border", "overlap"),
    (drops, "not read where it stood", "prompt as sent"),
    (lambda n: (f"Most shops grant {90 + n} working weeks.", page(n)), "not from its context", "alone"),
    (lambda n: ("I don't know.", page(n)), "wrong refusal", "soften"),
    (lambda n: (CASES[n].query.text, page(n)), "repeats the question", "question"),
    (lambda n: (f"Error 503: upstream {n} failed", page(n)), "an error message", "log"),
]


@pytest.mark.parametrize(("fault", "detail", "remedy"), FAULTS)
def test_a_fault_is_named_without_index_and_judge(
    tmp_path: Path, fault: Callable[[int], Said], detail: str, remedy: str
) -> None:
    lines = found(tmp_path, fault)
    assert [line.detail for line in lines] == [detail] * len(CASES)
    assert all(remedy in line.remedy for line in lines)
    assert not any("rerank" in line.remedy or "--rag-" in line.remedy for line in lines)


def test_an_answer_in_another_language_is_no_noise_where_the_rerun_is_in_it_too(tmp_path: Path) -> None:
    """Expectations that fail too have an answer with the right figures run again."""
    cases = [replace(case, expect=(Expectation("contains", "within"),)) for case in CASES]
    said = (
        "Sie dürfen es wieder zurückgeben (return), und zwar bis zu {} Tage (days) nach der Lieferung (delivery): {}."
    )
    lines = found(tmp_path, lambda n: (said.format(31 + n, THINGS[n]), page(n)), cases)
    assert [line.detail for line in lines] == ["answers in another language"] * len(CASES)


def test_healthy_answers_have_no_cause(tmp_path: Path) -> None:
    assert found(tmp_path, lambda n: (right(n), page(n))) == []


def test_a_context_that_is_there_for_all_is_no_fault_where_it_has_the_evidence(tmp_path: Path) -> None:
    every = [(chunk.text, chunk.doc_id) for chunk in CHUNKS]
    lines = found(tmp_path, lambda n: (f"Most shops grant {90 + n} working weeks.", every))
    assert {line.detail for line in lines} == {"not from its context"}


def test_one_context_for_all_is_named_where_it_lacks_the_evidence(tmp_path: Path) -> None:
    lines = found(tmp_path, lambda n: (f"It is {90 + n} weeks.", page(0)))
    assert {line.detail for line in lines if line.query_id != "q0"} == {"the same context for every question"}


# ``rag-harness explain`` on the command line.


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write_run(tmp_path, [row(0, "No idea."), row(1)], CASES[:2])
    return tmp_path


def test_causes_are_printed_and_kept(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(run)]) == 0
    said = capsys.readouterr().out
    assert "x1: 1 of 1 causes are from rows and gold alone (observational)" in said
    assert "x1 is not a registered experiment" in said
    assert "    Logic Failure: wrong refusal" in said
    assert [line.query_id for line in read_causes(run)] == ["q0"]


def test_one_trial_and_one_that_did_not_fail(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(run), "x1-q0", "--rows-only"]) == 0
    assert "cause        Logic Failure: wrong refusal (observational)" in capsys.readouterr().out
    assert main(["explain", str(run), "x1-q1", "--rows-only"]) == 0
    first, *whole = capsys.readouterr().out.splitlines()
    assert first == "x1-q1 did not fail: its answer carries the gold."
    assert [line.split()[0] for line in whole] == ["trial", "query", "gold", "gold", "found", "answer", "measures"]
    assert whole[-1].endswith("token_f1 1.000")


def test_a_trial_without_an_answer_is_shown_with_its_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    error = RowError(stage="pipeline", type="ValueError", message="the lamp broke")
    failed = row(0, "").model_copy(update={"status": "error", "error": error})
    write_run(tmp_path, [row(0), failed, row(1)], CASES[:2])
    assert main(["explain", str(tmp_path), "x1-q0"]) == 0
    said = capsys.readouterr().out
    assert "error        pipeline: ValueError: the lamp broke" in said
    assert "do           read the log of the run: it has the traceback" in said


def test_what_cannot_be_explained_ends_with_2(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(run), "x1-q9"]) == 2
    assert "has no trial 'x1-q9' with an answer" in capsys.readouterr().err
    assert main(["explain", str(run / "nowhere")]) == 2
    assert "nowhere. No folder here holds a run" in capsys.readouterr().err
    assert main(["explain", str(run), "--review"]) == 2
    assert "Find them first" in capsys.readouterr().err


def test_what_is_asked_for_without_saying_so() -> None:
    parser = argparse.ArgumentParser()
    explain_arguments(parser)
    usual = {"output": Path("output"), "trial": "", "rows_only": False, "mode": "auto", "budget": 0.0}
    assert vars(parser.parse_args([])) == {**usual, "worst": None, "review": False, "by": ""}


def test_the_worst_that_are_asked_for(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(run), "--rows-only", "--worst", "0"]) == 0
    assert "no failed trial" in capsys.readouterr().out


def test_a_run_that_ended_in_errors_names_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [failed_row(query_id=f"q{n}") for n in range(3)]
    write_run(tmp_path, rows)
    assert main(["explain", str(tmp_path), "--rows-only"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("3 × the same error, first e3-q0: generate: ModelCallError: 503")
    assert "nothing to explain" not in said


def test_settings_come_back_from_the_run_without_keys_and_gates() -> None:
    run = Settings(profile="mock", mode="live", top_k=3, measures=("hri",), gate=("e3: hri <= 1",), chat_api_key="k")
    back = settings_of(masked(run), {"mode": "auto"})
    assert (back.profile, back.mode, back.top_k, back.measures) == ("mock", "auto", 3, ("hri",))
    assert (back.gate, back.chat_api_key) == ((), "")


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    ranked = {"hit": ["a.md"], "low": ["x.md"] * 3 + ["a.md"], "none": []}
    cases = [StoredCase(Case(Query(each, f"{each}?"), qrels={"a.md": 1}), {}, expected=("a.md",)) for each in ranked]
    write_run(tmp_path, [golden_row(name, found, query=f"{name}?") for name, found in ranked.items()], cases)
    amend(tmp_path, settings={"k": 3})
    return tmp_path


def test_misses_of_the_golden_suite_are_listed_with_their_ranks(
    golden: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", str(golden)]) == 0
    said = capsys.readouterr().out
    assert "golden: 2 of 3 questions missed: no expected document among the first 3 hits" in said
    assert "miss       low: expected a.md, rank 4, not in the top 3\n  asked    low?" in said
    assert "miss       none: expected a.md, nothing was returned" in said
    assert "hit?" not in said
    assert "--rag-misses=misses.jsonl" in said
    assert "nothing to explain" not in said
    assert f"one whole: rag-harness explain {golden} golden-low" in said


def test_one_question_of_the_golden_suite_is_shown_whole(golden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(golden), "golden-low"]) == 0
    low = capsys.readouterr().out.splitlines()
    assert low[:2] == ["query      low?", "expected   a.md: rank 4, not in the top 3"]
    assert low[-2].startswith("next       it is found, but too low")
    assert main(["explain", str(golden), "golden-hit"]) == 0
    hit = capsys.readouterr().out.splitlines()
    assert hit[:3] == ["golden-hit is not a miss: rank 1", "query      hit?", "expected   a.md: rank 1"]
    assert main(["explain", str(golden), "golden-other"]) == 2


def test_a_run_with_experiments_lists_the_misses_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path, [row(0, "No idea."), row(1), golden_row("q0", ["x.md"])], CASES[:2])
    assert main(["explain", str(tmp_path), "--rows-only"]) == 0
    said = capsys.readouterr().out
    assert said.index("    Logic Failure: wrong refusal") < said.index("golden: 1 of 1 question missed")


def test_gold_that_contradicts_itself_is_named_in_the_lines_of_its_trial(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected, _ = expectations_of([{"contains": "9 days"}])
    case = replace(CASES[0], expect=expected)
    write_run(tmp_path, [row(0, "You may return it within 9 days.")], [case])
    assert main(["explain", str(tmp_path), "x1-q0", "--rows-only"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("note ")
    assert last.endswith("its expectations pass and its ground truth is not in the answer")


# Derived trials at a workplace that is not this process: what it is asked, and what is kept of what it answers.

HITS = tuple(hits(chunks_of(PAGES[:1])))
ROW = make_row(experiment="x1", query_id="q0", fingerprint="aaaa")


class Elsewhere:
    """A workplace that notes what it is asked, and fails where hits are given."""

    is_here, ask = False, None

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, TrialRequest]] = []

    async def answer(
        self, trial: Trial, of: Experiment, fingerprint: str, asking: TrialRequest = FIRST
    ) -> TrialOutcome:
        self.asked.append((trial.experiment, of.id, asking))
        failed: dict[str, Any] = {"status": "error", "error": {"stage": "generate", "type": "E", "message": "why"}}
        said = {"query": trial.case.query.text, **(failed if asking.hits else {})}
        return TrialOutcome(make_row(experiment=trial.experiment, query_id="q0", fingerprint=fingerprint, **said))

    async def aclose(self) -> None: ...


def _asks() -> list[DerivedTrial]:
    made = experiment(Pipeline(chunks_of(PAGES)))
    return [DerivedTrial(made, "+twice", CASES[0], ROW), DerivedTrial(made, "+gold_context", CASES[0], ROW, HITS)]


def test_a_workplace_is_asked_with_the_hits_and_the_name_of_the_experiment(tmp_path: Path) -> None:
    there, kept, asks = Elsewhere(), list[bytes](), _asks()

    async def keep(came: Any) -> None:
        kept.extend(came.new)

    loop: Any = InlineLoop(keep)
    runs = DerivedRuns(tmp_path, Settings(), Lazy(lambda: loop), Lazy(lambda: there))
    found = runs.run(asks)
    runs.close()
    loop.close()
    names = [(derived, of, asking.hits) for derived, of, asking in there.asked]
    assert names == [("x1+twice", "x1", None), ("x1+gold_context", "x1", HITS)]
    answered = found[asks[0]]
    assert not isinstance(answered, str)
    assert kept == [answered.line().encode()]
    assert found[asks[1]] == "generate: E: why"
    assert not any(asking.keeps_failures for _, _, asking in there.asked)


def test_what_is_there_needs_no_workplace(tmp_path: Path) -> None:
    there, loop = Elsewhere(), InlineLoop[Any]()
    first = DerivedRuns(tmp_path, Settings(), Lazy(lambda: loop), Lazy(lambda: there))
    first.run(_asks()[:1])
    first.close()

    def nobody() -> Any:
        raise AssertionError("a cluster would be opened for what is there")

    again = DerivedRuns(tmp_path, Settings(), Lazy(nobody), Lazy(nobody))
    [found] = again.run(_asks()[:1]).values()
    again.close()
    loop.close()
    assert not isinstance(found, str)


def test_what_a_cluster_hands_over_when_it_is_opened_is_not_run_again(tmp_path: Path) -> None:
    loop, ask, there = InlineLoop[Any](), _asks()[0], Elsewhere()
    handed = make_row(experiment="x1+twice", query_id="q0", fingerprint=ask.fingerprint, query=CASES[0].query.text)

    def opened() -> Any:
        file = result_path(tmp_path, "x1+twice")
        file.parent.mkdir()
        file.write_text(handed.line())
        return there

    runs = DerivedRuns(tmp_path, Settings(), Lazy(lambda: loop), Lazy(opened))
    assert runs.run([ask]) == {ask: handed}
    runs.close()
    loop.close()
    assert not there.asked


def test_a_stored_row_that_was_given_something_else_is_no_answer() -> None:
    same, given = _asks()
    assert (same.derived, given.derived) == ("x1+twice", "x1+gold_context")
    assert same.fingerprint != given.fingerprint
    assert same.is_answered_by(make_row(query=CASES[0].query.text))
    assert not same.is_answered_by(make_row(query="Another?"))
    chunks = [make_chunk(hit.chunk.chunk_id, text=hit.chunk.text) for hit in HITS]
    assert given.is_answered_by(make_row(retrieved_chunks=chunks))
    assert not given.is_answered_by(make_row(retrieved_chunks=chunks[:-1]))
    assert not given.is_answered_by(make_row(retrieved_chunks=[*chunks[:-1], chunks[-1] | {"text": "Other."}]))


def test_a_stored_row_with_other_searches_given_is_no_answer() -> None:
    made = experiment(Pipeline(chunks_of(PAGES)))
    asked = {"query": CASES[0].query.text}

    def searched(number: int, *ids: str, given: bool) -> dict[str, Any]:
        step = search("a", *ids)
        return {**step, "detail": {"search": number, **({"given": True} if given else {})}}

    def fits(searches: GivenSearches, *steps: dict[str, Any]) -> bool:
        ask = DerivedTrial(made, "+gold_search_1", CASES[0], ROW, searches=searches)
        return ask.is_answered_by(make_row(stages=list(steps), **asked))

    gold, stopped = GivenSearches({2: HITS}), GivenSearches(last=1)
    ids = [hit.chunk.chunk_id for hit in HITS]
    first = searched(1, "x#0", given=False)
    assert fits(gold, first, searched(2, *ids, given=True))
    assert not fits(gold, first, searched(2, *ids, given=False))
    assert not fits(gold, first, searched(2, "y#0", given=True))
    assert not fits(gold, searched(1, *ids, given=True), searched(2, *ids, given=True))
    assert fits(stopped, first, searched(2, given=True))
    assert not fits(stopped, first, searched(2, "y#0", given=False))


def test_what_is_there_is_run_again_where_it_is_to_be_overwritten(tmp_path: Path) -> None:
    there, loop = Elsewhere(), InlineLoop[Any]()
    for overwrite, asked in ((False, 1), (False, 1), (True, 2)):
        runs = DerivedRuns(tmp_path, Settings(overwrite=overwrite), Lazy(lambda: loop), Lazy(lambda: there))
        runs.run(_asks()[:1])
        runs.close()
        assert len(there.asked) == asked
    loop.close()


def test_an_engine_that_was_stopped_has_no_answer(tmp_path: Path) -> None:
    class Stopped:
        def submit(self, key: Any, job: Any) -> None: ...

        def result(self, key: Any) -> Any:
            raise CancelledError

        def forget(self, key: Any) -> None: ...

    runs = DerivedRuns(tmp_path, Settings(), Lazy(lambda: cast("Engine", Stopped())), Lazy(Elsewhere))
    assert set(runs.run(_asks()).values()) == {"the run was stopped"}
