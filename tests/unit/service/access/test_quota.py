"""A quota is granted exactly, whoever races and however the server ends; a rate is told before it is passed."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import SettingsError
from rag_harness.service.app_state import Options
from rag_harness.service.database import Database
from rag_harness.service.keys import NOBODY_ELSE, Principal, find_key, grant, list_keys, make_key
from rag_harness.service.problems import ProblemError
from rag_harness.service.rate_limits import Rates, parsed_rate
from tests.unit.service.access.small_app import Asking, create_app, opened

CLIENTS = 64


def principal(db: Database, quota: int | None = None, rate: str = "") -> Principal:
    found = find_key(db, make_key(db, ["query"], quota=quota, rate=rate))
    assert found is not None
    return found


async def granted_to(db: Database, asker: Principal) -> bool:
    try:
        await grant(db, asker)
    except ProblemError as problem:
        return problem.code != "quota_used_up"
    return True


async def race(db: Database, asker: Principal, each: int) -> int:
    async def client() -> int:
        return sum([await granted_to(db, asker) for _ in range(each)])

    return sum(await asyncio.gather(*(client() for _ in range(CLIENTS))))


def test_racing_clients_are_granted_the_limit_exactly(db: Database) -> None:
    asker = principal(db, quota=100)
    assert asyncio.run(race(db, asker, 5)) == 100
    assert list_keys(db)[0].used == 100


_ASKS = """
import asyncio, os, signal, sys
from pathlib import Path
from rag_harness.service.keys import find_key, grant
from rag_harness.service.problems import ProblemError
from rag_harness.service.database import Database

db = Database(Path(sys.argv[1]) / "service.sqlite3")
asker, kill_after, told = find_key(db, sys.argv[2]), int(sys.argv[3]), 0

async def client():
    global told
    for _ in range(100):
        try:
            await grant(db, asker)
        except ProblemError:
            return
        print("granted", flush=True)
        told += 1
        if told == kill_after:
            os.kill(os.getpid(), signal.SIGKILL)

async def race():
    await asyncio.gather(*(client() for _ in range(64)))

asyncio.run(race())
db.close()
"""


def asked_in_a_process(folder: Path, key: str, kill_after: int = 0) -> int:
    """Return how many grants a process was told of before it ended, or was killed in the midst of them."""
    command = [sys.executable, "-c", _ASKS, str(folder), key, str(kill_after)]
    # It kills itself: whoever read along on a busy machine would come too late.
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == (-signal.SIGKILL if kill_after else 0), ended.stderr
    return ended.stdout.count("granted\n")


def test_killed_midway_and_started_again_it_is_still_exact(db: Database, tmp_path: Path) -> None:
    key, limit = make_key(db, ["query"], quota=300), 300
    told = asked_in_a_process(tmp_path, key, kill_after=97)
    used = list_keys(db)[0].used
    # What was told was committed before; at most a question a client was granted and its answer lost.
    assert told <= used <= told + CLIENTS
    assert used < limit
    assert asked_in_a_process(tmp_path, key) == limit - used
    assert list_keys(db)[0].used == limit


def test_two_processes_share_one_quota(db: Database, tmp_path: Path) -> None:
    asker = principal(db, quota=50)
    with opened(tmp_path) as other:

        async def both() -> int:
            return sum(await asyncio.gather(race(db, asker, 1), race(other, asker, 1)))

        assert asyncio.run(both()) == 50


def test_questions_are_counted_without_a_quota_and_for_nobody_without_a_key(db: Database) -> None:
    asker = principal(db)
    assert asyncio.run(granted_to(db, asker))
    assert asyncio.run(granted_to(db, NOBODY_ELSE))
    assert list_keys(db)[0].used == 1


def test_a_client_is_told_that_waiting_does_not_help(db: Database) -> None:
    asking = Asking(create_app(db), make_key(db, ["query"], quota=1))
    assert asking.ask().is_success
    refused = asking.ask()
    assert (refused.status_code, refused.json()["code"]) == (429, "quota_used_up")
    assert refused.headers["x-should-retry"] == "false"
    assert "1 questions, and they were asked" in refused.json()["detail"]


def test_a_request_that_is_no_question_costs_none(db: Database) -> None:
    asking = Asking(create_app(db), make_key(db, ["query"], quota=1))
    assert asking("POST", "/query", json={}).status_code == 422
    assert asking.ask().is_success


# Rates


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000_000.0
        monkeypatch.setattr(Rates.__init__, "__defaults__", (lambda: self.now,))


def test_above_the_rate_a_client_is_told_when_to_come_back(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    asking = Asking(create_app(db), make_key(db, ["query"], rate="2/minute"))
    first = asking.ask()
    clock.now += 20.5
    second, third = asking.ask(), asking.ask()
    assert [answer.status_code for answer in (first, second, third)] == [200, 200, 429]
    assert first.headers["ratelimit-policy"] == '"key";q=2;w=60'
    assert first.headers["ratelimit"] == '"key";r=1;t=60'
    assert third.headers["retry-after"] == "40"
    assert third.headers["ratelimit"] == '"key";r=0;t=40'
    assert third.json()["code"] == "too_many_requests"
    clock.now += 40
    assert asking.ask().is_success


def test_a_rate_is_of_its_key(db: Database) -> None:
    app = create_app(db, Options("e1", rate="1/hour"))
    one, other, own = (Asking(app, make_key(db, ["query"], rate=rate)) for rate in ("", "", "3/hour"))
    assert [one.ask().status_code for _ in range(2)] == [200, 429]
    assert [other.ask().status_code for _ in range(2)] == [200, 429]
    assert [own.ask().status_code for _ in range(4)] == [200, 200, 200, 429]


def test_what_was_refused_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, asker = Clock(monkeypatch), Principal(1, "", frozenset())
    rates = Rates("1/minute")
    rates.count(asker)
    for _ in range(5):
        clock.now += 10
        with pytest.raises(ProblemError):
            rates.count(asker)
    clock.now += 10.1
    assert rates.count(asker) is not None


def test_a_clock_that_is_set_back_locks_no_key_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def machine(said: float) -> None:
        monkeypatch.setattr(time, "time", lambda: said)

    rates, asker = Rates("2/minute"), Principal(1, "", frozenset())
    machine(1_000_000.0)
    assert rates.count(asker) is not None
    machine(1_000_000.0 - 3_600)
    standing = rates.count(asker)
    assert standing is not None
    assert (standing.left, standing.seconds) == (0, 60)
    with pytest.raises(ProblemError) as refused:
        rates.count(asker)
    assert int(refused.value.headers["Retry-After"]) <= 60


@given(st.lists(st.floats(0, 30), max_size=60), st.integers(1, 5))
def test_a_rate_holds_in_every_window(pauses: list[float], most: int) -> None:
    now, granted, asker = 0.0, list[float](), Principal(1, "", frozenset())
    rates = Rates(f"{most}/minute", lambda: now)
    for pause in pauses:
        now += pause
        in_window = [each for each in granted if each > now - 60]
        if len(in_window) == most:
            with pytest.raises(ProblemError) as refused:
                rates.count(asker)
            assert int(refused.value.headers["Retry-After"]) - 1 <= in_window[0] + 60 - now
            continue
        standing = rates.count(asker)
        assert standing is not None
        assert standing.left == most - 1 - len(in_window)
        granted.append(now)


@pytest.mark.parametrize("asker", [NOBODY_ELSE, Principal(1, "", frozenset())])
def test_no_rate_is_none(asker: Principal) -> None:
    rates = Rates("1/hour" if asker.key_id is None else "")
    assert [rates.count(asker) for _ in range(3)] == [None] * 3


def test_open_paths_have_no_rate(db: Database) -> None:
    asking: Any = Asking(create_app(db, Options("e1", rate="1/hour")), make_key(db, ["query"]))
    assert [asking("GET", "/health").status_code for _ in range(3)] == [200] * 3


@pytest.mark.parametrize("amount", ["1", "60", "007"])
@pytest.mark.parametrize("between", ["/", " / ", " per ", "per"])
@pytest.mark.parametrize("multiple", ["", "1", "10"])
@pytest.mark.parametrize("unit", ["second", "minutes", "HOUR", "day", "month", "years"])
def test_rates_are_those_of_the_package_limits(amount: str, between: str, multiple: str, unit: str) -> None:
    limits = pytest.importorskip("limits")
    rate = parsed_rate(words := f"{amount}{between}{multiple} {unit}")
    other = limits.parse(words)
    assert (rate.most, rate.window) == (other.amount, other.get_expiry())


@pytest.mark.parametrize(
    "words", ["", "5", "/minute", "0/minute", "1/0 minute", "-1/minute", "1/week", "1/minute, 2/hour"]
)
def test_what_is_no_rate_is_refused(words: str) -> None:
    with pytest.raises(SettingsError, match="Write a number and a time"):
        parsed_rate(words)
