"""Record and replay, as a user sees them: the embedded reader behind the openai SDK, mock vectors."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.plugin.conftest import Suite, copy_data
from tests.plugin.study import WORKERS

TEST = """
import pytest

@pytest.mark.e1
@pytest.mark.e3
def test_answers(rag_result):
    assert rag_result.ok, rag_result.why
"""
# What differs between two replays, and must: who ran when, and the stages that ran here.
VOLATILE = {"finished_at", "retrieval_time_ms", "rerank_time_ms", "total_time_ms"}


def write_test(suite: Suite) -> None:
    let_read(suite)
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.pytester.makepyfile(test_both=TEST)


def let_read(suite: Suite, **more: object) -> None:
    """Have the reader in this process answer."""
    suite.set_table("profiles.mock.answer", model="embedded/extractive", **more)


@pytest.fixture(scope="module")
def recording(shared_suite: Suite) -> Path:
    """The folder of a suite that has recorded all its answers."""
    write_test(shared_suite)
    shared_suite.run("--rag-mode=record").assert_outcomes(passed=8)
    return shared_suite.path


@pytest.fixture
def recorded(suite: Suite, recording: Path) -> Suite:
    """The suite with what that run has left."""
    write_test(suite)
    for name in ("cassettes", "output", ".rag_cache"):
        copy_data(recording / name, suite.path / name)
    return suite


def replay(suite: Suite, *args: str) -> pytest.RunResult:
    return suite.run("--rag-mode=replay", "--rag-cache-dir=elsewhere", *args)


def cassettes(suite: Suite) -> list[Path]:
    return sorted((suite.path / "cassettes").rglob("*.yaml"))


def test_replay_gives_the_recorded_answers_and_times(recorded: Suite) -> None:
    before = {str(row["query_id"]): row for row in recorded.rows()}
    replay(recorded, "--rag-output=replayed").assert_outcomes(passed=8)
    lines = (recorded.path / "replayed" / "e3_filtered_rag.jsonl").read_text().splitlines()
    after = {row["query_id"]: row for row in map(json.loads, lines)}
    for query_id, row in before.items():
        assert after[query_id]["llm_answer"] == row["llm_answer"]
        assert after[query_id]["dry_run"] is True
        assert after[query_id]["timings_recorded"] is True
    replay(recorded, "--rag-output=again", "-n2").assert_outcomes(passed=8)
    again = [json.loads(line) for line in (recorded.path / "again" / "e3_filtered_rag.jsonl").read_text().splitlines()]
    assert _steady(again) == _steady(list(after.values()))


def _steady(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    kept = [{key: _untimed(value) for key, value in row.items() if key not in VOLATILE} for row in rows]
    return sorted(kept, key=lambda row: str(row["query_id"]))


def _untimed(value: object) -> object:
    """Leave out the times of stages."""
    if isinstance(value, list):
        return [_untimed(item) for item in value]
    return {key: _untimed(item) for key, item in value.items() if key != "ms"} if isinstance(value, dict) else value


def test_four_workers_recording_at_once_lose_nothing(suite: Suite) -> None:
    suite.write_queries([{"query_id": f"q_{n:02}", "query": f"question {n} about a lamp"} for n in range(24)])
    let_read(suite)
    suite.run("--rag-mode=record", "-n4", "--rag-concurrency=8").assert_outcomes(passed=24)
    assert len(cassettes(suite)) == 24
    replay(suite, "--rag-output=replayed").assert_outcomes(passed=24)


@pytest.mark.parametrize("workers", ["-n0", pytest.param("-n2", marks=pytest.mark.long)])
def test_a_recording_run_says_what_it_will_ask_for_and_what_nobody_asked_for(suite: Suite, workers: str) -> None:
    write_test(suite)
    record = ("--rag-mode=record", workers)
    said = suite.run(*record, "--rag-limit=3").stdout.str()
    assert "rag: recording: 6 answers to ask for, 0 are recorded; at most " in said
    assert "not of this run" not in said
    # Resumed trials ask for nothing, so nobody knows what else is unused.
    said = suite.run(*record).stdout.str()
    assert "rag: recording: 2 answers to ask for, 0 are recorded; at most " in said
    assert "a run with --rag-overwrite can tell which recordings are unused" in said
    said = suite.run(*record, "--rag-overwrite").stdout.str()
    assert "rag: recording: 0 answers to ask for, 8 are recorded" in said
    assert "not of this run" not in said
    let_read(suite, seed=8)
    said = suite.run(*record, "--rag-overwrite").stdout.str()
    assert "rag: recording: 8 answers to ask for, 0 are recorded" in said
    assert "8 recordings in cassettes/mock/ are not of this run, e.g. embedded--extractive/" in said


def test_a_recording_run_with_a_pipeline_of_ones_own_still_runs(suite: Suite) -> None:
    suite.pytester.makeconftest(
        """
        import pytest

        class Mine:
            async def answer(self, query):
                return "45 days"

        @pytest.fixture(scope="session")
        def rag_pipeline():
            return Mine()
        """
    )
    suite.run("--rag-mode=record").assert_outcomes(passed=4)


def test_what_cannot_be_foretold_is_no_internal_error(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for workers in (("-n0",), WORKERS):
        result = suite.run("--rag-mode=record", "--rag-profile=openrouter", *workers)
        assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()
        assert "OPENROUTER_API_KEY is not set" in result.stdout.str() + result.stderr.str()
    (suite.path / "kb" / "queries.jsonl").unlink()
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.pytester.makepyfile(test_own="def test_own(rag_recording):\n    assert rag_recording.used == []\n")
    suite.run("--rag-mode=record").assert_outcomes(passed=1)


def test_record_calls_only_what_is_missing(recorded: Suite) -> None:
    stamps = {file: file.stat().st_mtime_ns for file in cassettes(recorded)}
    recorded.run("--rag-mode=record", "--rag-overwrite").assert_outcomes(passed=8)
    assert {file: file.stat().st_mtime_ns for file in cassettes(recorded)} == stamps
    recorded.run("--rag-mode=record", "--rag-overwrite", "--rag-rerecord").assert_outcomes(passed=8)
    assert all(file.stat().st_mtime_ns > stamp for file, stamp in stamps.items())


def test_a_miss_says_what_was_asked_what_is_nearest_and_what_to_do(recorded: Suite) -> None:
    # At another address, for the reader in the process would answer.
    let_read(recorded, base_url="http://127.0.0.1:9/v1", seed=8)
    result = replay(recorded, "--rag-output=replayed", "-m", "e1", "-k", "e1-q_direct_001")
    result.assert_outcomes(failed=1, deselected=7)
    said = " ".join(result.stdout.str().split())
    assert (
        "RecordingMissError: No recording of embedded/extractive for 'return a lamp'. The nearest recording, " in said
    )
    assert ".yaml, differs in seed (7 recorded). Record it: --rag-profile=mock --rag-mode=record command " in said


def test_an_edited_page_is_named_and_only_trials_that_retrieve_fail(recorded: Suite) -> None:
    page = recorded.path / "kb" / "returns.md"
    page.write_text(page.read_text().replace("45 days", "46 days"))
    # As if the mock asked a model, so that a vector has to be recorded.
    asks = "from rag_harness.models.dry_run import MockEmbedder\n\nMockEmbedder.needs_no_model = False\n"
    recorded.pytester.makeconftest(asks)
    result = replay(recorded, "--rag-output=replayed")
    result.assert_outcomes(passed=4, failed=4)
    result.stdout.fnmatch_lines(["*RecordingMissError: returns.md#chunk_0: No vector of mock/hashed-words*"])
    recorded.run("--rag-mode=record", "--rag-output=again").assert_outcomes(passed=8)
    replay(recorded, "--rag-output=third").assert_outcomes(passed=8)


def test_plain_vcrpy_reads_a_recording(recorded: Suite) -> None:
    vcr = pytest.importorskip("vcr")
    from openai import AsyncOpenAI

    file = cassettes(recorded)[0]
    asked = json.loads(vcr.serialize.deserialize(file.read_text(), vcr.serializers.yamlserializer)[0][0].body)

    async def ask() -> str:
        async with AsyncOpenAI(api_key="x", base_url="http://embedded/v1") as client:
            stream = await client.chat.completions.create(**asked)
            return "".join([c.choices[0].delta.content or "" async for c in stream if c.choices])

    with vcr.use_cassette(str(file), record_mode="none"):
        assert "answer" in json.loads(asyncio.run(ask()))


def test_replay_opens_no_connection(recorded: Suite) -> None:
    recorded.pytester.makeconftest(
        """
        import socket
        import pytest
        class Mine:
            async def answer(self, query):
                socket.create_connection(("127.0.0.1", 9), timeout=1)
        @pytest.fixture
        def rag_pipeline(): return Mine()
        """
    )
    result = replay(recorded, "-k", "e1-q_direct_001", "--rag-output=replayed")
    result.stdout.fnmatch_lines(["*Replay opens no connection, but *conftest.py:* (answer) asked for 127.0.0.1.*"])


def test_keys_reach_no_file(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-planted-0123456789"
    for name in ("OPENAI_API_KEY", "OPENROUTER_API_KEY", "RAG_CHAT_API_KEY"):
        monkeypatch.setenv(name, key)
    suite.write_queries([{"query_id": "q1", "query": "lamp"}])
    let_read(suite)
    suite.run("--rag-mode=record", "--junitxml=junit.xml").assert_outcomes(passed=1)
    written = [file for file in suite.path.rglob("*") if file.is_file()]
    assert any(file.suffix == ".yaml" for file in written)
    assert [file for file in written if key.encode() in file.read_bytes()] == []


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda text: text[: len(text) // 2], "*The recording *.yaml cannot be read: *Delete it and record it again.*"),
        (lambda text: text.replace("rag_harness: 1", "rag_harness: 99"), "*made by a newer release (schema 99)*"),
    ],
)
def test_a_damaged_recording_is_named(recorded: Suite, damage: object, says: str) -> None:
    for file in cassettes(recorded):
        file.write_text(damage(file.read_text()))  # type: ignore[operator]
    result = replay(recorded, "-k", "e1-q_direct_001", "--rag-output=replayed")
    result.stdout.fnmatch_lines([says])
    assert "Traceback" not in result.stdout.str()


def test_auto_replays_and_says_nothing_else(recorded: Suite) -> None:
    recorded.run("--rag-output=auto").assert_outcomes(passed=8)
    rows = [json.loads(line) for line in (recorded.path / "auto" / "e1_baseline.jsonl").read_text().splitlines()]
    assert {row["timings_recorded"] for row in rows} == {True}
    assert {row["dry_run"] for row in rows} == {False}


def test_auto_never_calls_a_network_model(suite: Suite) -> None:
    suite.set_table("profiles.mock.answer", model="some/model", base_url="http://127.0.0.1:9/v1")
    result = suite.run("-k", "q_direct_001")
    result.stdout.fnmatch_lines(["*RecordingMissError: No recording of some/model for 'return a lamp'. Nothing of *"])
