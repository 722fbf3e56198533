"""A pipeline of a user's own is asked in each run, recorded in mode record, and replayed in mode replay alone."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any

import pytest

from tests.plugin.conftest import Suite
from tests.unit.models.recording.answering import Answering, answering

TEST = """
import pytest

@pytest.mark.rag_experiment("mine")
def test_answers(rag_result):
    assert rag_result.ok, rag_result.why
"""
FIXTURES = """
import pytest

URL = "{url}"
{client}

class Mine:
    def __init__(self, made):
        self.made = made

    def answer(self, query):
        return ask(query.text)

@pytest.fixture(scope="session")
def documents_embedded():
    return ask("all of the documents")

@pytest.fixture(scope="session")
def rag_pipeline(documents_embedded):
    return Mine(documents_embedded)
"""
OPENAI = """
from openai import OpenAI

def ask(text):
    client = OpenAI(api_key="sk-planted-0123456789", base_url=URL + "/v1", max_retries=0)
    said = client.chat.completions.create(model="some/model", messages=[{"role": "user", "content": text}])
    return said.choices[0].message.content
"""
BODY = '{"model": "some/model", "messages": [{"role": "user", "content": text}]}'
READ = '["choices"][0]["message"]["content"]'
CLIENTS = {
    "openai": OPENAI,
    "httpx": f"""
import httpx
def ask(text):
    return httpx.post(URL + "/chat", json={BODY}).json(){READ}
""",
    "requests": f"""
import requests
def ask(text):
    return requests.post(URL + "/chat", json={BODY}).json(){READ}
""",
    "requests in a pool of threads": f"""
import requests
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
POOL, found = ThreadPoolExecutor(2), []
def ask(text):
    one = POOL.submit(requests.post, URL + "/chat", json={BODY})
    other = Thread(target=lambda: found.append(requests.get(URL + "/thread", params={{"q": text}}).json()))
    other.start()
    other.join()
    return one.result().json(){READ}
""",
    "urllib3": f"""
import json, urllib3
POOL = urllib3.PoolManager()
def ask(text):
    body = json.dumps({BODY})
    said = POOL.request("POST", URL + "/chat", body=body, headers={{"Content-Type": "application/json"}})
    return said.json(){READ}
""",
    "aiohttp": f"""
import asyncio, aiohttp
async def asked(text):
    async with aiohttp.ClientSession() as session, session.post(URL + "/chat", json={BODY}) as said:
        return (await said.json()){READ}
def ask(text):
    return asyncio.run(asked(text))
""",
}
PLAIN = """
from pathlib import Path
def ask(text):
    return Path("prompt.txt").read_text() + " " + text
"""
QUESTIONS = 4


@pytest.fixture
def mine(suite: Suite) -> Suite:
    suite.pytester.makepyfile(TEST)
    return suite


def write(suite: Suite, client: str, server: Answering | None = None) -> None:
    suite.pytester.makeconftest(FIXTURES.format(url=server.url if server else "", client=client))


def rows_of(suite: Suite) -> list[Any]:
    return [*suite.rows("mine")]


@pytest.mark.parametrize("client", CLIENTS)
def test_calls_of_set_up_and_of_trials_are_recorded_and_replayed_with_the_server_gone(mine: Suite, client: str) -> None:
    if find_spec(client.partition(" ")[0]) is None:
        pytest.skip(f"{client} is not installed")
    with answering("Zone 1.") as server:
        write(mine, CLIENTS[client], server)
        mine.run("--rag-mode=record").assert_outcomes(passed=QUESTIONS)
        asked = len(server.calls)
        assert asked in (QUESTIONS + 1, 2 * (QUESTIONS + 1))
        recorded = mine.run("--rag-mode=record")
        assert len(server.calls) == asked
        assert f"{QUESTIONS} replayed" in str(recorded.stdout)
    replayed = mine.run("--rag-mode=replay")
    replayed.assert_outcomes(passed=QUESTIONS)
    replayed.stdout.fnmatch_lines([f"*{QUESTIONS} replayed, recorded *; 0 asked now"])
    rows = rows_of(mine)
    assert {row["llm_answer"] for row in rows} == {"Zone 1."}
    assert all(row["recorded_at"] for row in rows)
    assert "planted" not in "".join(file.read_text() for file in (mine.path / "cassettes").rglob("*.yaml"))


UNRECORDED = """
import http.client, subprocess, sys
def ask(text):
    connection = http.client.HTTPConnection(URL.removeprefix("http://"))
    connection.request("GET", "/plain")
    connection.getresponse().read()
    return subprocess.run([sys.executable, "-c", "print('Zone 1.')"], capture_output=True, text=True).stdout
"""


@pytest.mark.parametrize("workers", [(), pytest.param(("-n", "2"), marks=pytest.mark.long)])
def test_what_cannot_be_recorded_is_named_once_with_its_count(mine: Suite, workers: tuple[str, ...]) -> None:
    with answering("Zone 1.") as server:
        write(mine, UNRECORDED, server)
        result = mine.run("--rag-mode=record", *workers)
        result.assert_outcomes(passed=QUESTIONS)
        n, where = len(server.calls), server.url.removeprefix("http://")
    printed = " ".join(str(result.stdout).split())
    assert "mine: not recorded, so a replay makes them again or refuses them: " in printed
    assert f"{n} connections to {where}, {n} processes" in printed
    assert "not recorded, so" not in str(mine.run("--rag-mode=live").stdout)


@pytest.mark.parametrize("mode", ["auto", "live"])
def test_without_recording_it_is_asked_each_time_whatever_is_recorded(mine: Suite, mode: str) -> None:
    with answering("Zone 1.") as server:
        write(mine, OPENAI, server)
        mine.run("--rag-mode=record").assert_outcomes(passed=QUESTIONS)
        for n in (2, 3):
            result = mine.run(f"--rag-mode={mode}")
            assert len(server.calls) == n * (QUESTIONS + 1)
            assert f"{QUESTIONS} asked now" in str(result.stdout)


def test_a_call_that_is_not_recorded_is_named_where_it_is_made(mine: Suite) -> None:
    with answering("Zone 1.") as server:
        write(mine, OPENAI, server)
        mine.run("--rag-mode=record", "--rag-limit=2").assert_outcomes(passed=2)
    result = mine.run("--rag-mode=replay")
    assert "No recording of some/model" in str(result.stdout)
    assert "Record it: --rag-mode=record" in str(result.stdout)
    result.assert_outcomes(passed=2, failed=QUESTIONS - 2)
    write(mine, OPENAI.replace('content": text', "content\": text + '!'"), server)
    of_set_up = mine.run("--rag-mode=replay")
    assert "Record it: --rag-mode=record" in str(of_set_up.stdout)
    assert of_set_up.ret != 0


def test_what_decides_its_answers_may_change_anywhere_and_is_seen(mine: Suite) -> None:
    write(mine, PLAIN)
    prompt = mine.path / "prompt.txt"
    prompt.write_text("One:")
    mine.run("--rag-mode=live").assert_outcomes(passed=QUESTIONS)
    prompt.write_text("Two:")
    result = mine.run("--rag-mode=live")
    assert f"{QUESTIONS} asked now" in str(result.stdout)
    assert all(row["llm_answer"].startswith("Two:") for row in rows_of(mine))


def test_an_interrupted_run_is_announced_and_gone_on_with_when_that_is_asked_for(mine: Suite) -> None:
    write(mine, PLAIN)
    (mine.path / "prompt.txt").write_text("One:")
    mine.run("--maxfail=1", "-k", "direct", "--deselect=x").assert_outcomes(passed=3, deselected=1)
    assert not (mine.path / "output" / "unfinished").exists()
    interrupted(mine)
    kept = {row["query_id"] for row in rows_of(mine)}
    (mine.path / "prompt.txt").write_text("Two:")
    ended_at_once = mine.run("--rag-gate=nonsense")
    assert ended_at_once.ret == pytest.ExitCode.USAGE_ERROR
    result = mine.run("--rag-resume")
    result.assert_outcomes(passed=QUESTIONS)
    assert "--rag-resume goes on" not in str(result.stdout)
    said = {row["query_id"]: row["llm_answer"][:4] for row in rows_of(mine)}
    assert said == {each: "One:" if each in kept else "Two:" for each in said}
    interrupted(mine)
    result = mine.run()
    result.stdout.fnmatch_lines(
        [f"rag: {len(kept)} of {QUESTIONS} answers of an interrupted run of mine: --rag-resume goes on with it.*"]
    )
    assert {row["llm_answer"][:4] for row in rows_of(mine)} == {"Two:"}


def interrupted(suite: Suite) -> None:
    """Run until the second answer, and stop as by Ctrl-C."""
    (test,) = suite.path.glob("test_*.py")
    whole, stop = test.read_text(), "    seen.append(1)\n    if len(seen) == 2:\n        raise KeyboardInterrupt\n"
    test.write_text(f"{whole}\n{stop}\nseen = []\n")
    suite.run("--rag-concurrency=1")
    test.write_text(whole)


def test_rows_of_a_stated_fingerprint_are_reused_and_it_is_said(mine: Suite) -> None:
    write(mine, PLAIN + "\n\nVERSION = 'v1'\n")
    conftest = mine.path / "conftest.py"
    conftest.write_text(conftest.read_text().replace("class Mine:", "class Mine:\n    fingerprint = VERSION\n"))
    (mine.path / "prompt.txt").write_text("One:")
    mine.run().assert_outcomes(passed=QUESTIONS)
    (mine.path / "prompt.txt").write_text("Two:")
    assert "of version v1" in str(mine.run().stdout)
    assert {row["llm_answer"][:4] for row in rows_of(mine)} == {"One:"}
    conftest.write_text(conftest.read_text().replace("'v1'", "'v2'"))
    mine.run()
    assert {row["llm_answer"][:4] for row in rows_of(mine)} == {"Two:"}


PARTLY = """
import httpx
from functools import cache

WORDS = "first"

@cache
def page():
    return httpx.get(URL + "/page").json()["path"]

def ask(text):
    page()
    body = {"model": "some/model", "messages": [{"role": "user", "content": WORDS + text}]}
    return httpx.post(URL + "/chat", json=body).json()["choices"][0]["message"]["content"]
"""
AGED = re.compile(r"answers: 4 asked now, with replayed parts, recorded .* old\)")


def test_what_hangs_on_recordings_in_part_says_so_and_has_an_age(mine: Suite) -> None:
    with answering("Zone 1.") as server:
        write(mine, PARTLY, server)
        assert "answers: 4 asked now\n" in str(mine.run("--rag-mode=record").stdout)
        write(mine, PARTLY.replace('"first"', '"second"'), server)
        again = str(mine.run("--rag-mode=record", "--rag-max-age=0.001s", "--rag-gate=mine: error_rate <= 0.1").stdout)
    # The page was fetched for the fixture, before the first answer.
    assert AGED.search(again)
    assert "stale " in again


def test_a_fingerprint_that_states_nothing_reuses_nothing(mine: Suite) -> None:
    write(mine, PLAIN)
    conftest = mine.path / "conftest.py"
    whole = conftest.read_text()
    method = "def fingerprint(self):\n        return 'v1'\n"
    made_up = "def __getattr__(self, name):\n        return 'made up'\n"
    for more in ("fingerprint = None\n", "fingerprint = ''\n", "fingerprint = True\n", method, made_up):
        conftest.write_text(whole.replace("class Mine:", f"class Mine:\n    {more}"))
        (mine.path / "prompt.txt").write_text("One:")
        mine.run().assert_outcomes(passed=QUESTIONS)
        assert f"{QUESTIONS} asked now" in str(mine.run().stdout)
