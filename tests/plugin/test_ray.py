"""A run on a Ray cluster of two nodes, as a user has it. `pytest tests -m ray`; what takes minutes is `long` too."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.plugin.conftest import QUERIES, Suite
from tests.plugin.counting_server import CountingServer, counting_server, let_ask
from tests.unit.retrieval.indexes.server.stub import cluster_stub

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("cold_python")]
TIMES = ("ms", "waited_ms", "ttft_ms", "finished_at", "timings_recorded")


class _Process(NamedTuple):
    pid: int
    name: str


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    """A cluster of two nodes on this machine, and what can add and remove others."""
    utils = pytest.importorskip("ray.cluster_utils", reason="ray is not installed: pip install '.[ray]'")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    cluster = utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    cluster.add_node(num_cpus=2)
    yield cluster
    cluster.shutdown()


@pytest.fixture
def server() -> Iterator[CountingServer]:
    with counting_server(delay=0.2) as running:
        yield running


@pytest.fixture
def counted(suite: Suite, server: CountingServer) -> Suite:
    return let_ask(suite, server, 40)


def _args(nodes: Any, *more: str) -> list[str]:
    on_ray = ("--rag-engine=ray", f"--rag-ray-address={nodes.address}")
    return ["--rag-profile=counting", "--rag-mode=live", "--rag-concurrency=8", *on_ray, *more]


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _timeless(each) for name, each in value.items() if not name.endswith(TIMES)}
    return [_timeless(each) for each in value] if isinstance(value, list) else value


def test_rows_and_calls_are_those_of_the_local_engine(counted: Suite, server: CountingServer, nodes: Any) -> None:
    result = counted.run(*_args(nodes))
    result.assert_outcomes(passed=40)
    assert server.calls.total() == 40
    assert 4 < server.most <= 8
    rows = counted.rows("e1_baseline")
    assert not list((counted.path / "output" / "journal").glob("*"))
    counted.run(*_args(nodes)[:3], "--rag-overwrite").assert_outcomes(passed=40)
    assert _timeless(rows) == _timeless(counted.rows("e1_baseline"))
    for row in rows:
        [prompt] = [call["prompt"] for stage in row["stages"] for call in stage["calls"]]  # type: ignore[attr-defined]
        assert (counted.path / "output" / "prompts" / f"{prompt}.json").is_file()


EVERYTHING = """
import pytest

@pytest.mark.e3
def test_answers(rag_result):
    assert rag_result.ok, rag_result.why

def test_finds(rag_retrieval):
    assert rag_retrieval.found
"""
NOBODY_HERE = """
from rag_harness.runs import engine, judging

async def here(*_):
    raise RuntimeError("the process of the tests answered, or judged")

engine.answer_trial = judging.judged = here
"""


@pytest.fixture
def telling() -> Iterator[CountingServer]:
    """A server whose answers tell which turn asked, and how many sources were given."""
    with counting_server(delay=0.0, reply=_of_its_seed) as running:
        yield running


@pytest.fixture
def asking_everything(suite: Suite, telling: CountingServer) -> Suite:
    """A suite that asks for all that is a trial: repeats with their judging, causes, checks, a golden suite."""
    let_ask(suite, telling, 1)
    suite.write_queries([{**query, "ground_truth": "45 days"} for query in QUERIES])
    entry = {"query": "return a lamp", "expected_document_id": "returns.md", "justification": "j"}
    (suite.path / "golden.json").write_text(json.dumps([entry]))
    (suite.path / "test_e1.py").unlink()
    suite.pytester.makepyfile(test_everything=EVERYTHING)
    return suite


def _of_its_seed(body: Any) -> str:
    sources = str(body["messages"]).count("[Source ")
    return json.dumps({"answer": f"{body['seed']} of {sources} sources [Source 1]"})


def _every_row(suite: Suite) -> dict[str, Any]:
    """Return the lines of all files of results but the journal, without times."""
    output = suite.path / "output"
    files = [file for file in sorted(output.rglob("*.jsonl")) if "journal" not in file.parts]
    return {
        file.relative_to(output).as_posix(): [_timeless(json.loads(line)) for line in file.read_text().splitlines()]
        for file in files
    }


def test_repeats_causes_checks_and_golden_suite_are_answered_by_nodes(
    asking_everything: Suite, telling: CountingServer, nodes: Any
) -> None:
    suite, golden = asking_everything, ("--rag-golden=golden.json", "--rag-k=1", "--rag-judge=mock", "--rag-attribute")
    gates = ("--rag-gate=e3: metamorphic_order >= 0", "--rag-gate=e3: faithfulness >= 0", "--rag-repeats=2")
    (suite.path / "conftest.py").write_text(NOBODY_HERE)
    suite.run(*_args(nodes, *golden, *gates)).assert_outcomes(passed=5)
    assert not list((suite.path / "output" / "journal").glob("*"))
    there, calls = _every_row(suite), telling.calls.copy()
    (suite.path / "conftest.py").unlink()
    (suite.path / "output").rename(suite.path / "there")
    suite.run(*_args(nodes)[:3], *golden, *gates).assert_outcomes(passed=5)
    assert there == _every_row(suite)
    assert telling.calls - calls == calls
    assert {"golden.jsonl", "derived/e3+repeat2.jsonl", "derived/scores/e3+repeat2.jsonl"} <= there.keys()
    assert {"derived/e3+twice.jsonl", "derived/e3+no_context.jsonl", "derived/e3+reversed.jsonl"} <= there.keys()


def test_a_budget_is_that_of_the_whole_run(counted: Suite, server: CountingServer, nodes: Any) -> None:
    (counted.path / "prices.toml").write_text('[models]\n"counting" = { input = 0.0, output = 1.0 }\n')
    counted.run(*_args(nodes, "--rag-budget=0.0042", "--rag-prices=prices.toml")).assert_outcomes(passed=40)
    assert server.calls.total() == 40
    # A call puts 1,024 tokens aside and uses 5: the budget has room for four at once, whichever worker makes them.
    assert 2 <= server.most <= 4


def test_a_pipeline_that_cannot_travel_names_what_holds_it(suite: Suite, nodes: Any) -> None:
    suite.pytester.makepyfile(
        """
        import threading
        import pytest

        class Mine:
            def __init__(self):
                self.gate = threading.Lock()

            def answer(self, query):
                return query.text

        @pytest.fixture(scope="session")
        def rag_pipeline():
            return Mine()

        @pytest.mark.rag_experiment("mine")
        def test_answers(rag_result):
            assert rag_result.ok, rag_result.why
        """
    )
    on_ray = ("--rag-engine=ray", f"--rag-ray-address={nodes.address}")
    result = suite.run(*on_ray)
    result.stdout.fnmatch_lines(["*experiment 'mine' cannot be sent to a Ray worker: Mine.gate, a lock,*"])


def test_without_a_cluster_there_the_run_says_what_to_do(suite: Suite) -> None:
    pytest.importorskip("ray")
    result = suite.run("--rag-engine=ray", "--rag-ray-address=127.0.0.1:1")
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*no Ray cluster at 127.0.0.1:1*"])


def test_what_an_experiment_has_embedded_is_spread_over_the_nodes(tmp_path: Path, nodes: Any) -> None:
    from tests.plugin.ray_prepared import one_of_two_prepares, vectors_in

    asyncio.run(one_of_two_prepares(tmp_path, nodes.address))
    all_of_it = vectors_in(tmp_path / "alone")
    assert vectors_in(tmp_path / "cache0") == all_of_it
    assert 256 <= len(vectors_in(tmp_path / "cache1")) < len(all_of_it)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_a_node_that_dies_loses_no_query(counted: Suite, server: CountingServer, nodes: Any, seed: int) -> None:
    node = nodes.add_node(num_cpus=2)
    counted.set_table("settings", ray_workers=3)
    with _started(counted, _args(nodes)) as run:
        _wait_for_calls(server, 1)
        time.sleep(random.Random(seed).uniform(0, 1.2))  # 40 trials of 0.2 s, 8 at once, take 1 s
        nodes.remove_node(node, allow_graceful=False)
        said, _ = run.communicate(timeout=240)
    assert run.returncode == 0, said
    queries = [row["query_id"] for row in counted.rows("e1_baseline")]
    assert Counter(queries) == Counter(f"q{number}" for number in range(40))
    assert server.calls.total() <= 40 + 8


@pytest.mark.long
def test_a_run_that_is_killed_goes_on_where_it_was(counted: Suite, server: CountingServer, nodes: Any) -> None:
    with _started(counted, _args(nodes)) as run:
        _wait_for_calls(server, 20)
        run.send_signal(signal.SIGKILL)
        run.wait(30)
    time.sleep(3)  # its workers end when Ray notices
    before = server.calls.total()
    counted.run(*_args(nodes)).assert_outcomes(passed=40)
    assert server.calls.total() <= 40 + 8
    assert server.calls.total() - before < 40 - 8
    assert Counter(row["query_id"] for row in counted.rows("e1_baseline")).most_common(1)[0][1] == 1


@pytest.mark.long
def test_a_run_that_is_killed_among_its_repeats_pays_for_none_twice(
    counted: Suite, server: CountingServer, nodes: Any
) -> None:
    with _started(counted, _args(nodes, "--rag-repeats=2")) as run:
        _wait_for_calls(server, 40)
        run.send_signal(signal.SIGKILL)
        run.wait(30)
    time.sleep(3)  # its workers end when Ray notices
    counted.run(*_args(nodes, "--rag-repeats=2")).assert_outcomes(passed=40)
    assert server.calls.total() <= 80 + 8
    assert Counter(row["query_id"] for row in counted.rows("derived/e1+repeat2")) == Counter(
        f"q{number}" for number in range(40)
    )


@pytest.mark.long
def test_a_ledger_that_is_killed_is_started_again(counted: Suite, server: CountingServer, nodes: Any) -> None:
    (counted.path / "prices.toml").write_text('[models]\n"counting" = { input = 0.0, output = 1.0 }\n')
    with _started(counted, _args(nodes, "--rag-budget=0.1", "--rag-prices=prices.toml", "--rag-rpm=6000")) as run:
        _wait_for_calls(server, 8)
        killed = [each.pid for each in _processes() if each.name == "ray::Ledger"]
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        said, _ = run.communicate(timeout=240)
    assert len(killed) == 1
    assert run.returncode == 0, said
    assert server.calls.total() == 40


def _processes() -> Iterator[_Process]:
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            name = (folder / "cmdline").read_bytes().decode(errors="replace").partition("\0")[0]
            yield _Process(int(folder.name), name.partition(".")[0].split()[0] if name else "")


def _started(suite: Suite, args: list[str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pytest", *args]
    return subprocess.Popen(
        command, cwd=suite.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=dict(os.environ)
    )


def _wait_for_calls(server: CountingServer, count: int) -> None:
    end = time.monotonic() + 60
    while server.calls.total() < count and time.monotonic() < end:
        time.sleep(0.05)
    assert server.calls.total() >= count, f"{server.calls.total()} of {count} calls came within a minute"


def _documents(folder: Path, count: int, repeated: int = 20) -> None:
    import pyarrow
    import pyarrow.parquet

    texts = [f"# Lamp {number}\n\nIt costs {number} euros.\n" * repeated for number in range(count)]
    table = pyarrow.table({"id": [f"d{number:05}" for number in range(count)], "text": texts})
    pyarrow.parquet.write_table(table, folder / "docs.parquet")


def _ingest(folder: Path, *given: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "rag_harness", "ingest", *given]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def _said(run: subprocess.Popen[str]) -> str:
    said, _ = run.communicate(timeout=240)
    assert run.returncode == 0, said
    return said


@pytest.mark.long
def test_what_two_nodes_send_is_what_one_process_searches(tmp_path: Path, nodes: Any) -> None:
    (tmp_path / "kb").mkdir()
    for number in range(150):
        (tmp_path / "kb" / f"d{number:03}.md").write_text(f"# Lamp {number}\n\nIt costs {number} euros.\n")
    with cluster_stub() as stub:
        to_server = ("--profile=mock", f"--qdrant-url={stub.url}")
        said = _said(_ingest(tmp_path, "kb", *to_server, "--engine=ray", f"--ray-address={nodes.address}"))
        assert "sent      150 to rag_harness_" in said
        [(alias, points)] = stub.engine.aliases.items()
        assert f" to {alias}\n" in said
        stub.calls.clear()
        assert "chunks    150 (0 embedded now)" in _said(_ingest(tmp_path, "kb", *to_server))
        assert not stub.batches(points)


@pytest.mark.long
def test_points_of_a_node_that_dies_are_there_once(tmp_path: Path, nodes: Any) -> None:
    _documents(tmp_path, 6000, repeated=1)
    node = nodes.add_node(num_cpus=2)
    on_ray = ("--engine=ray", f"--ray-address={nodes.address}", "--ray-workers=3")
    given = ("docs.parquet", "--profile=mock", *on_ray)
    with cluster_stub() as stub, _ingest(tmp_path, *given, f"--qdrant-url={stub.url}") as run:
        end = time.monotonic() + 120
        while not stub.whats().count("PUT /points") and time.monotonic() < end:
            time.sleep(0.02)
        nodes.remove_node(node, allow_graceful=False)
        said = _said(run)
        assert "chunks    6,000" in said
        [(alias, points)] = stub.engine.aliases.items()
        assert f" to {alias}\n" in said
        found, _ = stub.engine.scroll(points, limit=10_000, with_payload=["doc_id"])
        assert sorted(point.payload["doc_id"] for point in found) == [f"d{number:05}" for number in range(6000)]


@pytest.mark.long
def test_what_stops_a_worker_is_said_as_it_was(tmp_path: Path, nodes: Any) -> None:
    _documents(tmp_path, 20, repeated=1)
    given = ("docs.parquet", "--profile=mock", "--engine=ray", f"--ray-address={nodes.address}")
    with cluster_stub() as stub:
        stub.fault = lambda call: (507, "Out of disk") if call.what == "PUT /points" else None
        run = _ingest(tmp_path, *given, f"--qdrant-url={stub.url}")
        assert "The Qdrant index cannot be filled from node " in (said := run.communicate(timeout=240)[0])
        assert "has no room left (507)" in said
        assert not stub.engine.aliases
    assert run.returncode == 2


@pytest.mark.long
def test_an_ingest_to_parquet_has_a_row_for_each_chunk(tmp_path: Path, nodes: Any) -> None:
    import pyarrow.parquet

    _documents(tmp_path, 1500, repeated=1)
    given = ("docs.parquet", "--profile=mock", "--to=there", "--engine=ray", f"--ray-address={nodes.address}")
    assert "sent      1,500 to there" in _said(_ingest(tmp_path, *given))
    table = pyarrow.parquet.read_table(tmp_path / "there")
    assert sorted(table["doc_id"].to_pylist()) == [f"d{number:05}" for number in range(1500)]
    assert {len(vector) for vector in table["vector"].to_pylist()} == {table["vector"].type.list_size}
