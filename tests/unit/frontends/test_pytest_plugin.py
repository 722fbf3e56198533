"""Parts of the plugin by themselves: its work with xdist, ids of tests, and what workers are handed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from xdist.scheduler.loadscope import LoadScopeScheduling

from rag_harness.core.concurrency import Lazy
from rag_harness.core.protocols import Experiment
from rag_harness.core.settings import Settings
from rag_harness.core.settings.loading import ini_values, load_settings
from rag_harness.core.settings.profiles import EMBEDDED_URL
from rag_harness.core.types import Case, Query, TrialId
from rag_harness.frontends.pytest_plugin.items import KnownTrials, param_id, trial_ids
from rag_harness.frontends.pytest_plugin.progress import WorkerCost, lost
from rag_harness.frontends.pytest_plugin.session import RunCases
from rag_harness.frontends.pytest_plugin.trials import TrialRunner
from rag_harness.frontends.pytest_plugin.workers import limit_waiting, limit_workers
from rag_harness.frontends.pytest_plugin.xdist_scheduler import BY_SCOPE, BatchScheduling
from rag_harness.pipelines.experiments import built_in, data_of
from rag_harness.records.manifest import repeat_fingerprint
from rag_harness.runs import distributed
from rag_harness.runs.journal import JOURNALS
from rag_harness.runs.trial import Trial
from tests.by_file import OF_THE_STUDY, scope
from tests.unit.rows import make_row

# Tests of a worker that has died are handed out again, but for those whose reports are there.


class Node:
    """A worker that knows of a test that is run alone."""

    shutting_down = False
    workerinput: Mapping[str, Any] = {"rag_alone": ["a"]}


def test_a_test_that_was_reported_before_its_worker_died_is_not_run_again() -> None:
    scheduling: Any = object.__new__(BatchScheduling)
    scheduling.workqueue, scheduling.assigned_work = (
        OrderedDict(),
        {"gw0": {"batch": {"a": True, "b": False, "c": False}}},
    )
    scheduling._alone, scheduling._reported = set[str](), set[str]()
    for when in ("setup", "call", "teardown"):
        scheduling.pytest_runtest_logreport(cast("Any", SimpleNamespace(nodeid="b", when=when)))
    scheduling.pytest_runtest_logreport(cast("Any", SimpleNamespace(nodeid="c", when="call")))
    passed = [SimpleNamespace(nodeid=nodeid) for nodeid in "abc"]
    terminal = SimpleNamespace(stats={"passed": passed})
    scheduling.config = SimpleNamespace(pluginmanager=SimpleNamespace(get_plugin=lambda _: terminal))
    assert scheduling.remove_node("gw0") is None
    assert [*scheduling.workqueue] == ["c"]
    assert [each.nodeid for each in passed] == ["a", "b"], "c passed, its row is lost, and it runs again"


@pytest.mark.parametrize("kind", [BatchScheduling, *BY_SCOPE.values()])
def test_a_worker_that_has_not_collected_yet_is_handed_nothing(kind: type[LoadScopeScheduling]) -> None:
    scheduling: Any = object.__new__(kind)
    new, dead = Node(), Node()
    scheduling.workqueue, scheduling.registered_collections = OrderedDict(), {dead: ["a", "b"]}
    scheduling.assigned_work = {dead: {"batch": {"a": False, "b": False}}, new: {}}
    scheduling._alone, scheduling._reported, scheduling._positions = set[str](), set[str](), {}
    scheduling.config, scheduling.log = SimpleNamespace(pluginmanager=SimpleNamespace(get_plugin=lambda _: None)), print
    scheduling.workqueue["waits"] = {"a": False}
    scheduling.remove_node(dead)
    assert "waits" in scheduling.workqueue, "until somebody can run it"


def test_tests_of_a_file_stay_together_whatever_their_parameters() -> None:
    ids = (
        "tests/unit/core/work/test_processes.py::test_one",
        "tests/unit/core/work/test_processes.py::TestAll::test_two[a::b-tests/x.py]",
    )
    assert {scope(nodeid) for nodeid in ids} == {"tests/unit/core/work/test_processes.py"}


@pytest.mark.parametrize(
    "file", ["models/embedders/test_embedders.py", "evaluation/judges/encoder/test_encoder_judge.py"]
)
def test_files_that_load_torch_stay_together(file: str) -> None:
    assert scope(f"tests/unit/{file}::test_one") == scope("tests/unit/models/embedders/test_embedders.py::test_two")


def test_files_that_look_at_the_replayed_study_stay_together() -> None:
    folder = Path(__file__).parents[2] / "plugin"
    files = {
        f"tests/plugin/{each.name}" for each in folder.glob("test_*.py") if "study: Path" in each.read_text("utf-8")
    }
    assert files == OF_THE_STUDY


# Workers that take longer to begin than they save are named, and no others.


@pytest.mark.parametrize(
    ("began", "tests", "processors", "costs"),
    [
        ([1.5, 1.5, 1.5, 1.5], 1.0, 2, True),  # 3 s to begin in place of 1.5, to save half a second
        ([1.5, 1.5, 1.5, 1.5], 30.0, 2, False),
        ([1.5, 1.5], 0.1, 2, False),  # side by side, on a processor each
        ([1.0, 1.0], 5.0, 1, True),  # one processor saves nothing
    ],
)
def test_what_workers_cost(began: list[float], tests: float, processors: int, costs: bool) -> None:
    assert (lost(began, tests, processors) > 0) is costs


def test_it_is_said_of_the_workers_that_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_harness.frontends.pytest_plugin.progress.usable_processors", lambda: 2)
    cost = WorkerCost()
    for told in [(1.5, 1.8), (1.5, 1.7), (1.4, 1.7), (1.6, 1.8)]:
        cost.pytest_testnodedown(SimpleNamespace(workeroutput={"rag_cpu_seconds": told}))
    cost.pytest_testnodedown(SimpleNamespace())  # it crashed
    assert [*cost.lines()] == [
        "-n 4 costs time here: to begin took 6.0 s of 2 processors, all tests 1.0 s. Leave -n out: one process has as "
        "many calls in flight."
    ]
    monkeypatch.setattr("rag_harness.frontends.pytest_plugin.progress.usable_processors", lambda: 8)
    assert [*cost.lines()] == []


@pytest.mark.parametrize(
    ("specs", "dist", "trials", "processors", "left"),
    [
        (["popen"] * 4, "load", 0, 2, ["popen"] * 2),
        (["popen"] * 4, "load", 800, 2, ["popen"] * 2),
        (["popen"] * 4, "load", 200, 2, []),
        (["popen"] * 2, "worksteal", 200, 16, []),
        (["popen"] * 2, "load", 800, 2, ["popen"] * 2),
        (["popen"] * 4, "load", 800, 16, ["popen"] * 4),
        (["popen"] * 4, "each", 200, 2, ["popen"] * 4),
        (
            ["popen", "popen//python=python3.10", "ssh=far"],
            "load",
            200,
            1,
            ["popen", "popen//python=python3.10", "ssh=far"],
        ),
        (["4*popen"], "load", 200, 1, ["4*popen"]),
        (None, "no", 200, 2, None),
    ],
)
def test_workers_that_cost_more_than_they_save_are_left_out(
    specs: list[str] | None,
    dist: str,
    trials: int,
    processors: int,
    left: list[str] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rag_harness.frontends.pytest_plugin.workers.usable_processors", lambda: processors)
    option = SimpleNamespace(tx=specs, dist=dist, numprocesses=4)
    config = SimpleNamespace(option=option, getoption=lambda name, _=None: getattr(option, name))
    said = limit_workers(cast("pytest.Config", config), trials)
    assert option.tx == left
    assert option.dist == ("no" if left == [] else dist)
    assert bool(said) is (specs != left)
    assert not said or said.startswith(f"rag: -n {len(specs or [])} starts {len(left or []) or 'no worker'} here")


LIVE = replace(
    Settings(mode="live", chat_base_url="http://models.test/v1", concurrency=16), rerank_model="mock/word-overlap"
)


def waiting(specs: list[str], dist: str = "load") -> pytest.Config:
    option = SimpleNamespace(tx=specs, dist=dist, numprocesses=4)
    config = SimpleNamespace(option=option, getoption=lambda name, _=None: getattr(option, name))
    return cast("pytest.Config", config)


@pytest.mark.parametrize(
    ("specs", "concurrency", "left"),
    [
        (["popen"] * 4, 16, []),
        (["popen"] * 4, 64, []),
        (["popen"] * 4, 65, ["popen"] * 2),
        (["popen"] * 2, 200, ["popen"] * 2),
        (["popen"], 16, ["popen"]),  # one worker is asked for because it may die
        (["popen", "ssh=far"], 16, ["popen", "ssh=far"]),
        (["4*popen"], 16, ["4*popen"]),
        ([], 16, []),
    ],
)
def test_no_more_workers_than_have_all_calls_in_flight(specs: list[str], concurrency: int, left: list[str]) -> None:
    config = waiting(specs)
    said = limit_waiting(config, replace(LIVE, concurrency=concurrency))
    assert config.option.tx == left
    assert config.option.dist == ("no" if specs and not left else "load")
    assert bool(said) is (specs != left)
    assert not said or said.startswith(f"rag: -n {len(specs)} starts {len(left) or 'no worker'} here: ")


@pytest.mark.parametrize(
    ("settings", "dist"),
    [
        (replace(LIVE, engine="ray"), "load"),  # which says itself that it has workers of its own
        (replace(LIVE, chat_base_url=EMBEDDED_URL), "load"),
        (replace(LIVE, rerank_model="cross-encoder/ms-marco-MiniLM-L-6-v2"), "load"),
        (LIVE, "each"),
    ],
)
def test_where_this_machine_computes_the_workers_start_that_were_asked_for(settings: Settings, dist: str) -> None:
    config = waiting(["popen"] * 4, dist)
    assert limit_waiting(config, settings) == ""
    assert config.option.tx == ["popen"] * 4


# An id of a test is cut where an experiment ends and a query begins, though both may have hyphens.

QUERIES = {"q1", "own-q1", "q_direct_001"}
KNOWN = KnownTrials(["e3", "e3-plain"], lambda: QUERIES, lambda: ["g1", "a-b.c"])


def read(*ids: str, function: str = "t.py::test_a") -> list[TrialId | None]:
    nodes = [f"{function}[{text}]" for text in ids]
    found = trial_ids(nodes, KNOWN)
    return [found.get(node) for node in nodes]


@pytest.mark.parametrize(
    ("text", "trial"),
    [
        ("e3-q_direct_001", TrialId("e3", "q_direct_001")),
        ("e3-plain-q1", TrialId("e3-plain", "q1")),
        ("a-name-of-my-own-q_direct_001", TrialId("a-name-of-my-own", "q_direct_001")),
        ("golden-a-b.c", TrialId("golden", "a-b.c")),
        ("slow-e3-q1", TrialId("slow-e3", "q1")),
        ("e3-q1-fast", TrialId("e3", "q1")),
        ("e3-nothing", None),
        ("golden-nothing", None),
        ("q1", None),
        ("-q1", None),
        ("2", None),
    ],
)
def test_ids_of_one_meaning(text: str, trial: TrialId | None) -> None:
    assert read(text) == [trial]


def test_a_test_without_parameters_is_no_trial() -> None:
    assert param_id("t.py::test_a") == ""
    assert trial_ids(["t.py::test_a"], KNOWN) == {}


def test_where_two_cuts_are_possible_the_other_tests_of_the_function_decide() -> None:
    mine = read("mine-q1", "mine-own-q1", "mine-q_direct_001")
    assert mine == [TrialId("mine", "q1"), TrialId("mine", "own-q1"), TrialId("mine", "q_direct_001")]
    own = read("mine-own-own-q1", "mine-own-q1", "mine-own-q_direct_001")
    assert own == [TrialId("mine-own", "own-q1"), TrialId("mine-own", "q1"), TrialId("mine-own", "q_direct_001")]


def test_each_function_has_its_own_experiments() -> None:
    nodes = ["t.py::test_a[mine-q_direct_001]", "t.py::test_a[mine-own-q1]", "t.py::test_b[mine-own-q_direct_001]"]
    nodes.append("t.py::test_b[mine-own-q1]")
    found = trial_ids(nodes, KNOWN)
    assert found[nodes[1]] == TrialId("mine", "own-q1")
    assert found[nodes[3]] == TrialId("mine-own", "q1")


def test_files_are_read_where_an_id_has_a_hyphen_and_not_before() -> None:
    def never() -> list[str]:
        raise AssertionError("nobody needs to know")

    assert trial_ids(["t.py::test_a[2]", "t.py::test_b"], KnownTrials(["e3"], never, never)) == {}


# What workers of a cluster hand over when they start: rows of an earlier run, which are then not paid for again.

ROW = make_row(experiment="mine", query_id="q1", query="?", fingerprint="print")
AGAIN = make_row(experiment="mine+repeat2", query_id="q1", query="?", fingerprint=repeat_fingerprint("print", 2))
MINE = Experiment("mine", SimpleNamespace(answer=str))


class Cluster:
    """Has kept rows, on the disk of a node."""

    is_here, ask = False, None

    def __init__(self, settings: Settings, *_: object) -> None:
        self._journals = Path(settings.output) / JOURNALS

    async def open(self) -> None:
        (self._journals / "earlier-run-ray1.jsonl").write_text(ROW.line() + AGAIN.line())

    async def answer(self, *_: object) -> Any:
        raise AssertionError("it was paid for already")

    async def aclose(self) -> None: ...


def _session(settings: Settings) -> Any:
    async def close_models() -> None: ...

    return SimpleNamespace(
        config=SimpleNamespace(getoption=lambda *_: False),
        settings=settings,
        share=settings,
        output=Path(settings.output),
        cases=SimpleNamespace(renewed=lambda trial, _: trial),
        identities=SimpleNamespace(fingerprint=lambda _: "print", is_renewed=lambda _: False),
        wanted=SimpleNamespace(judged_measures=lambda *_: []),
        close_models=close_models,
    )


@pytest.mark.parametrize("has_looked_before", [True, False])
def test_a_row_that_was_on_a_node_is_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_looked_before: bool
) -> None:
    monkeypatch.setattr(distributed, "RayWorkplace", Cluster)
    trials = TrialRunner(_session(Settings(engine="ray", output=str(tmp_path))))
    if has_looked_before:
        assert trials.stored(Trial("mine", Case(Query("q0", "?"))), MINE) is None
    assert not trials._submit_if_new(Trial("mine", Case(Query("q1", "?"))), MINE, MINE)
    assert trials.stored(Trial("mine", Case(Query("q1", "?"))), MINE) == (ROW, True)
    trials.equipment.close()
    assert (tmp_path / "mine.jsonl").read_text() == ROW.line()


def test_a_repeat_that_was_on_a_node_is_not_made_again_where_the_first_answer_was_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distributed, "RayWorkplace", Cluster)
    (tmp_path / "mine.jsonl").write_text(ROW.line())
    trials = TrialRunner(_session(Settings(engine="ray", output=str(tmp_path), repeats=2)))
    trial = Trial("mine", Case(Query("q1", "?")))
    assert trials._submit_if_new(trial, MINE, MINE)
    assert trials.answered_again(trial.id) == ((), ())
    trials.equipment.close()
    assert (tmp_path / "derived" / "mine+repeat2.jsonl").read_text() == AGAIN.line()


# The data of shipped experiments, as collection learns them without importing each.

ROOT = Path(__file__).parents[3]
SETTINGS = load_settings({}, ini_values(ROOT), ROOT)


def test_no_import_is_no_other_answer() -> None:
    cases = RunCases(Lazy(lambda: SETTINGS), cast("Any", None))
    experiments = [*built_in(), "c1-own", "e3-own", "nobody"]
    assert {name: cases.data_of(name) for name in experiments} == {
        name: data_of(name, SETTINGS) for name in experiments
    }


def test_what_the_settings_give_an_experiment_counts() -> None:
    specs = tuple(replace(spec, experiments=("e3",)) for spec in SETTINGS.data[:1])
    given = replace(SETTINGS, data=specs)
    assert RunCases(Lazy(lambda: given), cast("Any", None)).data_of("e3") == specs[0].name
