"""The ledger of a run: calls and tokens a minute, and money, of all workers. One process holds it. It knows no Ray.

A grant is on disk before it is returned. A ledger that is started again counts a grant without a settlement as spent,
until it is settled.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, time

from rag_harness.files.json_text import read_json
from rag_harness.files.open_files import APPENDING
from rag_harness.models.budget import PARTS_OF_A_DOLLAR, in_parts
from rag_harness.models.call_rates import Cap, Turn

PACE = 0.002
"""Seconds between the requests of two workers: twice the time of an actor's call, so that one ledger keeps up."""


@dataclass(frozen=True)
class Caps:
    """The limits of one server: calls and tokens in any minute; 0 is no limit."""

    rpm: float
    tpm: float


@dataclass(frozen=True)
class Grant:
    """How many of the waiting calls may start, and the seconds until the worker may ask again."""

    calls: int
    wait: float = 0.0


@dataclass(frozen=True)
class MoneyVerdicts:
    """The reservations that are granted, and those that never will be, by id. Any other may be asked for again."""

    granted: frozenset[str]
    refused: frozenset[str]
    spent: float


class RunLedger:
    """Counts calls, tokens and money of one run.

    Args:
        file: where grants are written; an existing file is read first.
        budget: USD; 0 is no limit.
    """

    def __init__(self, file: Path, budget: float) -> None:
        self._room = in_parts(budget)
        self._caps: dict[tuple[str, Caps], tuple[Cap, Cap]] = {}
        self._turns: dict[str, Turn] = {}
        self._due: dict[str, float] = {}
        self._open: dict[str, int] = {}
        self._settled: set[str] = set()
        self._spent = self._aside = 0
        self._read(file)
        file.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(file, APPENDING, 0o644)

    def calls(self, server: str, caps: Caps, waiting: Mapping[str, float], used: Mapping[str, float]) -> Grant:
        """Grant as many of ``waiting`` as may start now, in their order.

        Args:
            server: the server that the calls go to.
            caps: limits of the server.
            waiting: estimated tokens of each waiting call, by its id.
            used: tokens that earlier calls have really used, by their ids.
        """
        now = monotonic()
        self._correct(used)
        rate, amount = self._caps_of(server, caps)
        granted: list[tuple[str, float]] = []
        for call, tokens in waiting.items():
            opens = max(rate.opens(tokens, now), amount.opens(tokens, now))
            if opens > now:
                return self._granted(server, caps, granted, self._paced(call, now, opens - now))
            turn = Turn(now, tokens)
            if caps.tpm:
                self._turns[call] = turn
            rate.add(turn)
            amount.add(turn)
            granted.append((call, tokens))
        return self._granted(server, caps, granted, 0.0)

    def _correct(self, used: Mapping[str, float]) -> None:
        for call, tokens in used.items():
            if call in self._turns:
                self._turns.pop(call).tokens = tokens

    def _paced(self, call: str, now: float, wait: float) -> float:
        """Return in how many seconds the worker of a call may ask again. The waiting workers ask one after another."""
        worker = call.rpartition(":")[0]
        self._due = {each: due for each, due in self._due.items() if due > now and each != worker}
        wait = max(wait, PACE * (len(self._due) + 1))
        self._due[worker] = now + wait
        return wait

    def _granted(self, server: str, caps: Caps, calls: Sequence[tuple[str, float]], wait: float) -> Grant:
        if calls:
            self._write([{"server": server, "caps": [caps.rpm, caps.tpm], "at": time(), "calls": calls}])
        return Grant(len(calls), wait)

    def money(self, asked: Mapping[str, float], settled: Mapping[str, float]) -> MoneyVerdicts:
        """Settle ended calls at their cost, then reserve the highest cost of the new ones, in their order.

        Args:
            asked: USD by the id of the reservation. A reservation that was granted before is granted again.
            settled: USD by the id of the reservation.
        """
        for reservation, cost in settled.items():
            self._settle(reservation, in_parts(cost))
        granted, refused = set(), set()
        for reservation, usd in asked.items():
            parts = in_parts(usd)
            if reservation in self._open or self._spent + self._aside + parts <= self._room:
                self._put_aside(reservation, parts)
                granted.add(reservation)
            elif self._spent + parts > self._room:
                refused.add(reservation)
            else:
                break  # later calls wait too: smaller ones would always take the room of a large one
        lines = [{"settled": key, "usd": cost} for key, cost in settled.items()]
        self._write([*lines, *({"aside": key, "usd": asked[key]} for key in granted)])
        return MoneyVerdicts(frozenset(granted), frozenset(refused), self._spent / PARTS_OF_A_DOLLAR)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _settle(self, reservation: str, parts: int) -> None:
        if reservation not in self._settled:
            self._settled.add(reservation)
            self._aside -= self._open.pop(reservation, 0)
            self._spent += parts

    def _put_aside(self, reservation: str, parts: int) -> None:
        self._aside += parts - self._open.get(reservation, 0)
        self._open[reservation] = parts

    def _caps_of(self, server: str, caps: Caps) -> tuple[Cap, Cap]:
        key = server, caps
        if key not in self._caps:
            self._caps[key] = Cap(caps.rpm), Cap(caps.tpm, counts_tokens=True)
        return self._caps[key]

    def _write(self, lines: Sequence[Mapping[str, object]]) -> None:
        # No fsync: only this ledger reads the file, when it is started again during the run. A machine that fails and
        # loses the data ends the run as well; and with fsync 100 workers would wait for the disk one after another.
        content = "".join(f"{json.dumps(line)}\n" for line in lines)
        if content:
            os.write(self._descriptor, content.encode())

    def _read(self, file: Path) -> None:
        if not file.is_file():
            return
        for line in file.read_bytes().splitlines():
            try:
                said = read_json(line)
            except ValueError:
                continue  # torn by a kill, so that the grant was never returned
            if "settled" in said:
                self._settle(said["settled"], in_parts(said["usd"]))
            elif "aside" in said:
                self._put_aside(said["aside"], in_parts(said["usd"]))
            else:
                self._remember(said["server"], Caps(*said["caps"]), said["at"], said["calls"])

    def _remember(self, server: str, caps: Caps, at: float, calls: Sequence[tuple[str, float]]) -> None:
        # The monotonic clock of this process: somebody may set the machine's clock meanwhile.
        started = monotonic() - max(0.0, time() - at)
        for cap in self._caps_of(server, caps):
            for _, tokens in calls:
                cap.add(Turn(started, tokens))
