"""One ledger for many workers: what they may do together is never more than one process may do alone."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_harness.core.errors import BudgetError, CriticalError
from rag_harness.core.settings import Settings
from rag_harness.runs.distributed import ledger as ledger_module
from rag_harness.runs.distributed.ledger import Caps, Grant, LeasedMeter, MoneyVerdicts, RunLedger
from tests.unit.virtual_time import run

_number = itertools.count()


class Near:
    """The ledger, an actor call away: ``seconds`` there and back."""

    def __init__(self, ledger: RunLedger, seconds: float = 0.001) -> None:
        self.ledger, self.seconds, self.asked = ledger, seconds, 0

    async def calls(self, server: str, caps: Caps, waiting: Mapping[str, float], used: Mapping[str, float]) -> Grant:
        self.asked += 1
        await asyncio.sleep(self.seconds)
        return self.ledger.calls(server, caps, waiting, used)

    async def money(self, asked: Mapping[str, float], settled: Mapping[str, float]) -> MoneyVerdicts:
        self.asked += 1
        await asyncio.sleep(self.seconds)
        return self.ledger.money(asked, settled)


def _ledger(folder: Path, budget: float = 0.0) -> RunLedger:
    return RunLedger(folder / f"{next(_number)}.ledger", budget)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the ledger's clock be that of the loop, whose time is virtual."""
    monkeypatch.setattr(ledger_module, "monotonic", lambda: asyncio.get_running_loop().time())


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("workers", [1, 3])
def test_calls_a_minute_are_those_of_the_whole_run(tmp_path: Path, workers: int) -> None:
    async def go() -> list[float]:
        near, started = Near(_ledger(tmp_path)), []
        given_ = Settings(rpm=120, concurrency=500)
        meters = [LeasedMeter(given_, lambda: near, f"w{number}") for number in range(workers)]

        async def call(number: int) -> None:
            line = meters[number % workers].limiter("http://server")
            turn = await line.enter(0)
            started.append(asyncio.get_running_loop().time())
            await asyncio.sleep(0.2)
            line.leave(turn)

        await asyncio.gather(*(call(number) for number in range(400)))
        assert near.asked < 60 * workers  # in blocks: not one request a call
        return started

    started = sorted(run(go()))
    most = max(sum(begin <= each < begin + 60 for each in started) for begin in started)
    assert most == 120
    assert started[-1] - started[0] == pytest.approx(180, abs=4)  # none is left unused: 2 % of 180 s


@pytest.mark.usefixtures("clock")
def test_tokens_that_calls_did_not_use_make_room_for_others(tmp_path: Path) -> None:
    async def go() -> float:
        near = Near(_ledger(tmp_path))
        line = LeasedMeter(Settings(tpm=1000), lambda: near, "w").limiter("http://server")
        for _ in range(10):
            turn = await line.enter(500)
            turn.tokens = 10  # of the 500 that it was taken to use
            line.leave(turn)
        return asyncio.get_running_loop().time()

    assert run(go()) < 60


_usd = st.integers(0, 100).map(lambda cents: cents / 100)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.floats(0.05, 3), st.lists(st.tuples(_usd, _usd, st.booleans(), st.integers(0, 2)), max_size=15))
def test_workers_never_pass_the_budget(
    tmp_path: Path, limit: float, calls: list[tuple[float, float, bool, int]]
) -> None:
    ledger = _ledger(tmp_path, limit)

    async def go() -> list[float]:
        near = Near(ledger)
        meters = [LeasedMeter(Settings(budget=limit), lambda: near, f"w{number}") for number in range(3)]
        for meter in meters:
            assert meter.money is not None

        async def one(reserved: float, part: float, cancel: bool, worker: int) -> float:
            money = meters[worker].money
            assert money is not None
            waiting = asyncio.ensure_future(money.budget.reserve(reserved))
            await asyncio.sleep(part)
            if cancel and not waiting.done():
                waiting.cancel()
            try:
                await waiting
            except (BudgetError, asyncio.CancelledError):
                return 0.0
            await asyncio.sleep(part)
            money.budget.settle(reserved, reserved * part)
            return reserved * part

        spent = await asyncio.gather(*(one(*call) for call in calls))
        for meter in meters:
            await meter.aclose()
        return list(spent)

    spent = sum(run(go()))
    assert spent <= limit + 1e-9
    assert ledger.money({}, {}).spent == pytest.approx(spent, abs=1e-9)  # whoever was cancelled has cost nothing
    ledger.close()


def test_a_ledger_that_died_counts_what_was_open_as_spent_until_it_is_settled(tmp_path: Path) -> None:
    file = tmp_path / "run.ledger"
    first = RunLedger(file, 1.0)
    assert first.money({"a": 0.4, "b": 0.4}, {}).granted == {"a", "b"}
    first.money({}, {"a": 0.1})
    first.close()
    file.write_bytes(file.read_bytes() + b'{"aside": "c", "us')  # torn: nobody has learned of it
    again = RunLedger(file, 1.0)
    assert not again.money({"d": 0.6}, {}).granted  # 0.1 spent, 0.4 open
    assert again.money({"d": 0.5}, {}).granted == {"d"}
    assert again.money({"b": 0.4}, {}).granted == {"b"}  # an answer that was lost: asked again, granted again, once
    again.money({}, {"b": 0.0})
    assert again.money({"e": 0.4}, {}).granted == {"e"}
    again.close()


def test_a_ledger_that_died_remembers_the_calls_of_the_last_minute(tmp_path: Path) -> None:
    file, caps = tmp_path / "run.ledger", Caps(3, 0)
    first = RunLedger(file, 0)
    assert first.calls("s", caps, {"a": 0, "b": 0}, {}) == Grant(2)
    first.close()
    again = RunLedger(file, 0).calls("s", caps, {"c": 0, "d": 0}, {})
    assert again.calls == 1
    assert 55 < again.wait <= 60


def test_a_large_call_comes_to_its_turn(tmp_path: Path) -> None:
    ledger = _ledger(tmp_path, 1.0)
    ledger.money({"first": 0.5}, {})
    verdicts = ledger.money({"large": 0.9, "small": 0.1}, {})
    assert not verdicts.granted  # small waits behind large, which fits when first turns out cheaper
    assert not verdicts.refused
    assert ledger.money({"large": 0.9, "small": 0.1}, {"first": 0.0}).granted == {"large", "small"}
    assert ledger.money({"more": 1.1}, {}).refused == {"more"}


def test_without_its_ledger_no_call_starts(tmp_path: Path) -> None:
    class Gone(Near):
        async def calls(self, *_: object) -> Grant:
            raise OSError("the node is gone")

    async def go() -> None:
        line = LeasedMeter(Settings(rpm=5), lambda: Gone(_ledger(tmp_path)), "w").limiter("http://server")
        await line.enter(0)

    with pytest.raises(CriticalError, match="the node is gone"):
        run(go())


def test_workers_that_wait_ask_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All would ask at each turn of any of them: the ledger, one process, could not answer that."""
    ledger, caps, now = _ledger(tmp_path), Caps(2, 0), [0.0]
    monkeypatch.setattr(ledger_module, "monotonic", lambda: now[0])
    ledger.calls("s", caps, {"w0:1": 0, "w0:2": 0}, {})
    now[0] = 59.9999
    waits = [ledger.calls("s", caps, {f"w{number}:3": 0}, {}).wait for number in range(100)]
    assert waits == pytest.approx([0.002 * (number + 1) for number in range(100)])
    now[0] = 59.99995
    assert ledger.calls("s", caps, {"w0:3": 0}, {}).wait == pytest.approx(0.2)  # behind the 99 others
    now[0] = 60.0
    assert ledger.calls("s", caps, {"w1:3": 0}, {}).calls == 1


def test_a_clock_that_is_set_changes_nothing_while_the_ledger_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, caps = _ledger(tmp_path), Caps(2, 0)
    assert ledger.calls("s", caps, {"a": 0, "b": 0}, {}).calls == 2
    for hour in (3600, -3600):
        _set_clock(monkeypatch, hour)
        grant = ledger.calls("s", caps, {"c": 0}, {})
        assert grant.calls == 0
        assert 55 < grant.wait <= 60


def test_after_a_restart_a_clock_that_was_set_back_makes_calls_wait_and_never_more_than_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, caps = tmp_path / "run.ledger", Caps(2, 0)
    first = RunLedger(file, 0)
    assert first.calls("s", caps, {"a": 0, "b": 0}, {}).calls == 2
    first.close()
    _set_clock(monkeypatch, -3600)
    grant = RunLedger(file, 0).calls("s", caps, {"c": 0}, {})
    assert grant.calls == 0
    assert 55 < grant.wait <= 60


def _set_clock(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(ledger_module, "time", lambda: time.time() + seconds)


def test_what_is_put_aside_is_a_sum_that_is_kept_and_read_again(tmp_path: Path) -> None:
    file = tmp_path / "run.ledger"
    ledger = RunLedger(file, 10.0)
    ledger.money({"a": 3.0, "b": 3.0, "c": 3.0}, {})
    ledger.money({"a": 3.0}, {"b": 1.0, "never granted": 0.0})
    ledger.money({}, {"b": 1.0})  # told twice
    for each in (ledger, RunLedger(file, 10.0)):
        assert not each.money({"d": 3.1}, {}).granted  # 6 aside, 1 spent
        assert each.money({"e": 3.0}, {}).granted == {"e"}
        each.money({}, {"e": 0.0})


def test_turns_of_calls_whose_tokens_nobody_counts_are_not_kept(tmp_path: Path) -> None:
    ledger = _ledger(tmp_path)
    ledger.calls("s", Caps(1000, 0), {f"w:{number}": 0 for number in range(500)}, {})
    assert not ledger._turns
    ledger.calls("s", Caps(0, 1e6), {"w:1": 10}, {})
    assert list(ledger._turns) == ["w:1"]
    ledger.calls("s", Caps(0, 1e6), {}, {"w:1": 5})
    assert not ledger._turns


def test_money_that_was_asked_for_in_vain_is_not_asked_for_again(tmp_path: Path) -> None:
    class OnceGone(Near):
        async def money(self, asked: Mapping[str, float], settled: Mapping[str, float]) -> MoneyVerdicts:
            self.seconds, was_gone = 0.001, self.seconds
            if was_gone == 1.0:
                raise OSError("the node is gone")
            return await super().money(asked, settled)

    async def go() -> None:
        near = OnceGone(_ledger(tmp_path, 1.0), seconds=1.0)
        money = LeasedMeter(Settings(budget=1.0), lambda: near, "w").money
        assert money is not None
        with pytest.raises(CriticalError, match="the node is gone"):
            await money.budget.reserve(0.6)
        await money.budget.reserve(0.6)  # nobody has the first, so there is room for this one

    run(go())
