"""Runs against an endpoint that misbehaves: each ends, with rows that say what happened."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Any, NamedTuple

import pytest

from tests.plugin.conftest import QUERIES, Suite
from tests.unit.models.chat.test_openai_chat import DONE, event, stream
from tests.unit.server import Reply, refusal, serving

GOOD = stream(event(json.dumps({"answer": "45 days"})) + event(finish="stop") + event(usage=(11, 7)) + DONE)
_TEST = """
import pytest

@pytest.mark.e1
def test_answers(rag_result):
    assert rag_result.ok, rag_result.why
"""
# The waits between tries are seconds, which is right for a server and not for a test.
_SHORT_WAITS = """
from rag_harness.models import calls

calls._FIRST_WAIT = 0.01
"""
_PROFILE = """
[tool.rag_harness.profiles.own]
chat_model = "own/model"
chat_base_url = "{url}"
embed_model = "mock/hashed-words"
"""


def run(suite: Suite, url: str, *args: str) -> pytest.RunResult:
    suite.pytester.makepyfile(_TEST)
    suite.pytester.makeconftest(_SHORT_WAITS)
    (suite.path / "pyproject.toml").write_text(_PROFILE.format(url=url), encoding="utf-8")
    options = ("--rag-profile=own", "--rag-mode=live", *args)
    return suite.pytester.runpytest_subprocess(*options, timeout=120)


@dataclass(frozen=True)
class Fault:
    """What the server does whenever it is asked one question, what its row then says, and how often it was asked."""

    reply: Reply
    said: str
    calls: int = 4
    stage: str = "generate"


FAULTS = {
    "hangs": Fault(Reply(hangs=True), "DeadlineError: no whole answer within 0.4 s*Gave up after 4 tries"),
    "one byte a second": Fault(stream(GOOD.body, drip=1.0), "DeadlineError: no whole answer within 0.4 s"),
    "resets connections": Fault(Reply(reset=True, length=100), "Gave up after 4 tries"),
    "resets in the middle": Fault(stream(event("{"), reset=True, length=9999), "Gave up after 4 tries"),
    "half a JSON": Fault(Reply(body=b'{"choices": [{'), "a stream was asked for, and the server sent"),
    "500 for ever": Fault(refusal(500, "the lamp broke"), "the lamp broke"),
    "200 with an error": Fault(refusal(200, "overloaded upstream"), "overloaded upstream"),
    "wait for an hour": Fault(refusal(429, "slow", retry_after="3600"), "asks to wait 3600 s, longer than", calls=1),
    "400": Fault(refusal(400, "context too long"), "the request was refused: *context too long", calls=1),
    "no JSON": Fault(stream(event("45 days", "stop") + DONE), "ModelOutputError: *'45 days'", calls=1, stage="parse"),
}


class Misbehaved(NamedTuple):
    """A run that meets each of the faults, one a question, and how often the server was asked each."""

    suite: Suite
    result: pytest.RunResult
    calls: Counter[str]


@pytest.fixture(scope="module")
def misbehaved(shared_suite: Suite) -> Misbehaved:
    shared_suite.write_queries([{"query_id": _id(name), "query": f"about {name}?"} for name in FAULTS])
    with serving(*(fault.reply for fault in FAULTS.values())) as server:
        vars(server)["next"] = lambda: FAULTS[_fault(server.requests[-1])].reply
        result = run(shared_suite, server.url, "--rag-timeout=0.4", f"--rag-concurrency={len(FAULTS)}")
        return Misbehaved(shared_suite, result, Counter(map(_fault, server.requests)))


def _id(name: str) -> str:
    return name.replace(" ", "_")


def _fault(request: dict[str, Any]) -> str:
    text = str(request["messages"][-1]["content"])
    return next(name for name in FAULTS if f"about {name}?" in text)


def test_a_run_that_meets_all_faults_ends(misbehaved: Misbehaved) -> None:
    misbehaved.result.assert_outcomes(failed=len(FAULTS))
    text = misbehaved.result.stdout.str() + misbehaved.result.stderr.str()
    assert not any(bad in text for bad in ("Task was destroyed", "Event loop is closed", "never retrieved"))


@pytest.mark.parametrize("name", FAULTS)
def test_the_row_says_why(misbehaved: Misbehaved, name: str) -> None:
    fault = FAULTS[name]
    (row,) = (row for row in misbehaved.suite.rows("e1_baseline") if row["query_id"] == _id(name))
    assert row["status"] == "error"
    # Failures that say the same stand in one block, whose last line names the others.
    blocks = misbehaved.result.stdout.str().split("_ test_answers[")
    named = re.compile(rf"e1-{_id(name)}(?![\w-])")
    block = next(each for each in blocks if named.search(each.partition("\n=")[0]))
    printed = " ".join(block.partition("\ncommand ")[0].split())
    assert fnmatch(printed, f"*why {fault.stage}: *{fault.said}*")
    assert misbehaved.calls[name] == fault.calls


def test_a_short_wait_is_kept_and_the_run_is_whole(suite: Suite) -> None:
    with serving(refusal(429, "slow down", retry_after="0.3"), refusal(500, "oops"), GOOD) as server:
        result = run(suite, server.url, "--rag-concurrency=2")
    result.assert_outcomes(passed=4)
    assert "calls were tried again 2 times" in " ".join(result.stdout.str().split())
    rows = suite.rows("e1_baseline")
    assert sum(int(str(row["retries"])) for row in rows) == 2
    assert max(float(str(row["waited_ms"])) for row in rows) >= 300
    assert len(server.requests) == 6


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--rag-concurrency=0", "concurrency is '0': Input should be greater than or equal to 1."),
        pytest.param(
            "--rag-budget=-1", "budget is '-1': Input should be greater than or equal to 0.", marks=pytest.mark.long
        ),
        ("--rag-prices=prices.toml", "*prices.toml: models.'own/model': Unknown key 'inptu'. Did you mean 'input'?"),
        ("--rag-budget=1", "The budget is 1 USD, but 'own/model' has no price."),
    ],
)
def test_options_that_cannot_be_used_end_the_run_before_the_first_call(suite: Suite, option: str, said: str) -> None:
    (suite.path / "prices.toml").write_text('[models."own/model"]\ninptu = 1\n', encoding="utf-8")
    with serving(GOOD) as server:
        result = run(suite, server.url, option)
    assert result.ret != 0
    assert server.requests == []
    text = result.stdout.str() + result.stderr.str()
    assert "Traceback" not in text
    pytest.LineMatcher(text.splitlines()).fnmatch_lines([f"*{said}*"])


# 1 USD a token: a call uses 1,000, and may use about 1,400.
_DEAR = '[models."own/model"]\ninput = 1_000_000\noutput = 1_000_000\n'
_LONG = stream(event(json.dumps({"answer": "45 days"})) + event(finish="stop") + event(usage=(200, 800)) + DONE)


@pytest.mark.parametrize("concurrency", [pytest.param("1", marks=pytest.mark.long), "4"])
def test_a_budget_ends_the_calls_and_the_next_run_goes_on(suite: Suite, concurrency: str) -> None:
    (suite.path / "prices.toml").write_text(_DEAR, encoding="utf-8")
    options = ("--rag-prices=prices.toml", "--rag-budget=4000", f"--rag-concurrency={concurrency}", "-rs")
    with serving(_LONG) as server:
        result = run(suite, server.url, *options)
        result.assert_outcomes(passed=3, skipped=1)
        result.stdout.fnmatch_lines(["*not run: budget: the next call may cost up to *"])
        assert [row["cost_usd"] for row in suite.rows("e1_baseline")] == [1000.0] * 3
        assert len(server.requests) == 3
        run(suite, server.url, *options).assert_outcomes(passed=4)
        assert len(server.requests) == 4
    assert len(suite.rows("e1_baseline")) == 4


def test_waits_of_calls_that_were_given_up_are_counted_and_are_not_the_harness(suite: Suite) -> None:
    refused = [refusal(429, "slow down", retry_after="0.3"), refusal(503, "the lamp broke", retry_after="0.3")]
    # Two: while one waits because it was told to, the other waits for its turn.
    suite.write_queries(QUERIES[:2])
    with serving(*refused * 4) as server:
        result = run(suite, server.url, "--rag-concurrency=4")
    result.assert_outcomes(failed=2)
    rows = suite.rows("e1_baseline")
    assert [row["retries"] for row in rows] == [3] * 2
    assert all(float(str(row["waited_ms"])) >= 900 for row in rows)
    assert all(float(str(row["total_time_ms"])) < 850 for row in rows), "waiting is no work"
    said = result.stdout.str()
    spent = dict(re.findall(r"(waiting between tries|harness) ([\d.]+) s", said))
    assert float(spent["waiting between tries"]) >= 0.8
    assert float(spent["harness"]) < 0.8
    assert "6 retries" in said
