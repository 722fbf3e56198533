"""The fixture rag_recording, as a user's suite sees it: own calls to a server, which is gone when they are replayed."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.plugin.conftest import Suite
from tests.unit.models.recording.answering import Answering, answering

KEYS = {
    "OPENAI_API_KEY": "sk-planted-openai-0123456789",
    "OPENROUTER_API_KEY": "sk-planted-router-0123456789",
    "RAG_CHAT_API_KEY": "sk-planted-chat-0123456789",
}
PLANTED = """
NAME = "John Smith"
HEADERS = {"authorization": "Bearer planted-header-1", "api-key": "planted-header-1", "cookie": "a=planted-cookie-2",
           "openai-organization": "planted-org-33", "openai-project": "planted-project-4"}
QUERY = {"api_key": "planted-query-55"}
BODY = {"api_key": "planted-body-666", "user": "planted-org-33 planted-project-4 planted-cookie-2"}
"""
SDK = """
from openai import OpenAI

def ask(question, **options):
    with OpenAI(api_key="dummy", base_url="{url}/v1", max_retries=0) as client:
        said = client.chat.completions.create(
            model="some/model", messages=[{{"role": "user", "content": question}}], stream=True, **options
        )
        return "".join(each.choices[0].delta.content for each in said)
"""
ASKS = """
from pipeline import ask

def test_answer(rag_recording):
    assert ask("Where is my lamp?") == "In Zone 1."
    (file,) = rag_recording.used
    assert file.parent.name == "some--model"
    print("made", len(rag_recording.made))
"""


@pytest.fixture
def own(suite: Suite) -> Suite:
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    return suite


def pipeline(suite: Suite, server: Answering, test: str = ASKS) -> None:
    suite.pytester.makepyfile(pipeline=SDK.format(url=server.url), test_own=test)


def recordings(suite: Suite) -> list[Path]:
    return sorted((suite.path / "cassettes").rglob("*.yaml"))


def test_record_then_replay_with_the_server_gone(own: Suite) -> None:
    with answering("In Zone", " 1.") as server:
        pipeline(own, server)
        own.run("--rag-mode=record", "-s").stdout.fnmatch_lines(["*made 1*", "*1 passed*"])
        own.run("--rag-mode=record", "-s").stdout.fnmatch_lines(["*made 0*", "*1 passed*"])
        assert len(server.calls) == 1
        own.run("--rag-mode=record", "--rag-rerecord", "-s").stdout.fnmatch_lines(["*made 1*", "*1 passed*"])
        own.run("--rag-mode=live").assert_outcomes(failed=1)  # nothing used
        assert len(server.calls) == 3
    (file,) = recordings(own)
    assert file.parent == own.path / "cassettes" / "own" / "some--model"
    for args in (["--rag-mode=replay"], []):
        own.run(*args, "-s").stdout.fnmatch_lines(["*made 0*", "*1 passed*"])


def test_a_miss_names_the_nearest_and_the_command(own: Suite) -> None:
    with answering("In Zone", " 1.") as server:
        pipeline(own, server)
        own.run("--rag-mode=record").assert_outcomes(passed=1)
        pipeline(own, server, ASKS.replace('lamp?"', 'lamp?", seed=3'))
        result = own.run()
        assert len(server.calls) == 1
    result.assert_outcomes(failed=1)
    said = (
        "No recording of some/model for 'Where is my lamp?[']. The nearest recording, *.yaml, differs in seed (None "
        "recorded). Record it: pytest test_own.py::test_answer --rag-mode=record"
    )
    result.stdout.fnmatch_lines([f"*RecordingMissError: {said}", "*- Captured rag_recording call -*", said])


def test_a_folder_that_cannot_be_written_stops_the_run_before_a_call(own: Suite) -> None:
    (own.path / "cassettes").write_text("a file")
    with answering("In Zone", " 1.") as server:
        pipeline(own, server, ASKS + ASKS.replace("test_answer", "test_second"))
        result = own.run("--rag-mode=record")
        assert server.calls == []
    result.stdout.fnmatch_lines(["*Mode record keeps answers in *own, which cannot be written: *", "*1 error*"])
    assert "Traceback" not in result.stdout.str()


def test_disk_full_stops_the_run(own: Suite) -> None:
    own.pytester.makeconftest(
        """
        import errno, os
        import pytest

        @pytest.fixture(autouse=True)
        def full(monkeypatch, rag_recording):
            def fsync(descriptor):
                raise OSError(errno.ENOSPC, "No space left on device")
            monkeypatch.setattr(os, "fsync", fsync)
        """
    )
    with answering("In Zone", " 1.") as server:
        pipeline(own, server, ASKS + ASKS.replace("test_answer", "test_second"))
        result = own.run("--rag-mode=record")
        assert len(server.calls) == 1
    result.stdout.fnmatch_lines(
        ["*An answer cannot be kept: *No space left on device. What was recorded before is whole.*"]
    )
    result.assert_outcomes(failed=1, errors=1)  # the second test was not run
    assert [file for file in (own.path / "cassettes").rglob("*") if file.is_file()] == []


def test_private_text_and_keys_reach_no_file(own: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)
    own.pytester.makeconftest(
        """
        import pytest

        @pytest.fixture(scope="session")
        def rag_scrub():
            return lambda text: text.replace("John Smith", "<NAME>")
        """
    )
    planted = [*KEYS.values(), "planted-header-1", "planted-cookie-2", "planted-org-33", "planted-project-4",
               "planted-query-55", "planted-body-666", "planted-cookie-77", "John Smith"]  # fmt: skip
    text = f'Dear John Smith, {" ".join([*KEYS.values(), "planted-header-1"])} is "secret".'
    own.pytester.makepyfile(planted=PLANTED)
    test = """
import httpx2, os
from pipeline import ask
from planted import BODY, HEADERS, NAME, QUERY

def test_answer(rag_recording):
    said = ask(f"{NAME} asks with {os.environ['OPENAI_API_KEY']}", extra_headers=HEADERS, extra_query=QUERY,
               extra_body=BODY)
    assert "Smith" in said or "<NAME>" in said
    httpx2.get(URL + "/page", params={"q": NAME, **QUERY}, headers=HEADERS)
    assert len(rag_recording.used) == 2

def test_fails(rag_recording):
    ask(f"{NAME} asks", seed=3, extra_headers=HEADERS)
    httpx2.get(URL + "/broken", params={"q": NAME, **QUERY}, headers=HEADERS)
    raise AssertionError("a failure for the reports to show")
"""
    reports = ["--junitxml=junit.xml"]
    if importlib.util.find_spec("pytest_jsonreport"):
        reports += ["--json-report", "--json-report-file=report.json"]
    with answering(*(text[n : n + 3] for n in range(0, len(text), 3))) as server:
        pipeline(own, server, test.replace("URL", repr(server.url)))
        sources = set(own.path.rglob("*.py"))
        own.run("--rag-mode=record", *reports).assert_outcomes(passed=1, failed=1)
    # /broken was no success, so it was not kept, and the second test fails on a miss.
    own.run("--rag-mode=replay", "--rag-logs=replayed", "--junitxml=r.xml").assert_outcomes(passed=1, failed=1)
    written = [file for file in own.path.rglob("*") if file.is_file() and file not in sources]
    written = [file for file in written if "__pycache__" not in file.parts and not file.name.startswith(("std", "."))]
    assert {file.suffix for file in written} >= {".yaml", ".xml"}
    assert len(recordings(own)) == 3
    found = [(file.name, each) for file in written for each in planted if each.encode() in file.read_bytes()]
    assert found == []
    kept = "".join(file.read_text() for file in recordings(own))
    assert kept.count("<NAME>") >= 4
    assert "REDACTED asks" not in kept
    assert "asks with REDACTED" in kept


def test_the_harness_scrubs_its_own_recordings(suite: Suite) -> None:
    suite.pytester.makeconftest(
        """
        import pytest

        @pytest.fixture(scope="session")
        def rag_scrub():
            return lambda text: text.replace("45 days", "<DAYS>").replace("live fish", "<FISH>")
        """
    )
    suite.set_table("profiles.mock.answer", model="embedded/extractive")
    suite.run("--rag-mode=record").assert_outcomes(passed=4)
    kept = [file.read_text() for file in recordings(suite)]
    assert len(kept) == 4
    assert not [text for text in kept if "45 days" in text or "live fish" in text]
    assert sum("<FISH>" in text for text in kept) == 1
    suite.run("--rag-mode=replay", "--rag-output=again").assert_outcomes(passed=4)


def test_a_local_qdrant_and_the_harness_itself_are_let_through(own: Suite) -> None:
    with answering("x") as server:
        own.pytester.makepyfile(
            f"""
            from concurrent.futures import ThreadPoolExecutor
            import httpx2

            def test_search(rag_recording):
                assert httpx2.get("{server.url}/collections").json()["n"] == 1
                assert rag_recording.used == []

            def test_trial(rag_recording):
                with ThreadPoolExecutor(1, "rag-trials") as threads:
                    assert threads.submit(httpx2.get, "{server.url}/trial").result().json()["n"] == 2
                assert rag_recording.used == []
            """
        )
        own.run("--rag-mode=replay", f"--rag-qdrant-url={server.url}").assert_outcomes(passed=2)
        own.run("--rag-mode=replay").assert_outcomes(failed=2)
    assert recordings(own) == []


def test_beside_pytest_recording(own: Suite, beside: str) -> None:
    assert (Path(beside) / "pytest_recording").is_dir()
    with answering("In Zone", " 1.") as server:
        more = f"""
import httpx2, pytest

@pytest.mark.vcr
def test_theirs():
    assert httpx2.get("{server.url}/theirs").json()["n"]

@pytest.mark.vcr
def test_both(rag_recording):
    assert httpx2.get("{server.url}/both").json()["n"]
    assert ask("Both?") == "In Zone 1."
    assert len(rag_recording.used) == 2

def test_ours_again(rag_recording):
    assert ask("Both?") == "In Zone 1."
"""
        pipeline(own, server, ASKS + more)
        own.run("--rag-mode=record", "--record-mode=once").assert_outcomes(passed=4)
        calls = len(server.calls)
        assert calls == 4
    replayed = own.run("--rag-mode=replay", "--block-network", "--record-mode=none")
    replayed.assert_outcomes(passed=4)
    own.run("--block-network").assert_outcomes(passed=4)
    theirs = [file for file in own.path.rglob("*.yaml") if "own" not in file.parts]
    assert [file.name for file in theirs] == ["test_theirs.yaml"]
    assert len([file for file in recordings(own) if "own" in file.parts]) == 3


def test_calls_by_requests_and_aiohttp_are_recorded_and_replayed_too(own: Suite) -> None:
    for library in ("requests", "aiohttp"):
        pytest.importorskip(library)
    with answering("Zone 1.") as server:
        own.pytester.makepyfile(
            test_own=f"""
import asyncio
import aiohttp, requests

async def by_aiohttp():
    async with aiohttp.ClientSession() as session, session.get("{server.url}/plain?by=aiohttp") as said:
        return await said.json()

def test_answer(rag_recording):
    assert requests.get("{server.url}/plain?by=requests").json()["path"] == "/plain?by=requests"
    assert asyncio.run(by_aiohttp())["path"] == "/plain?by=aiohttp"
    assert len(rag_recording.used) == 2
"""
        )
        own.run("--rag-mode=record").assert_outcomes(passed=1)
        assert len(server.calls) == 2
    own.run("--rag-mode=replay").assert_outcomes(passed=1)
