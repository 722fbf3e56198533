"""How long an answer is on its way from a server's last byte to the disk, without any kill.

By Little's law a kill loses, on average, as many answers as come in a second, times the seconds that each is on its
way. So 200 answers say more than 200 kills do.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.chaos.ledger import LINES
from tests.chaos.runs import Suite
from tests.plugin.counting_server import CountingServer

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.skipif(sys.platform != "linux", reason="one clock for all processes"),
    pytest.mark.usefixtures("long_version"),
]
QUERIES, AT_ONCE, IN_FLIGHT = 200, 4, 0.005
_TIMES = '''
"""Notes when an answer was read, and when it was in a recording or the journal."""
import atexit, json, os, re, time
from aiohttp.client_proto import ResponseHandler
from rag_harness.runs.journal import Journal
from rag_harness.models.recording import cassettes

noted = []


def note(what, content):
    found = set(re.findall(rb"about (question \\d+)", content))
    noted.extend((what, each.decode(), time.monotonic()) for each in found)


def before(owner, name, what, place):
    below = getattr(owner, name)

    def noting(*args):
        note(what, args[place])
        return below(*args)

    setattr(owner, name, noting)


def after(owner, name, what, place):
    below = getattr(owner, name)

    def noting(*args):
        found = below(*args)
        note(what, args[place])
        return found

    setattr(owner, name, noting)


before(ResponseHandler, "data_received", "read", 1)
after(Journal, "_write", "kept", 1)
after(cassettes, "begin_atomically", "kept", 1)


@atexit.register
def leave():
    with open(f"times-{os.getpid()}.json", "w") as file:
        json.dump(noted, file)
'''


@pytest.mark.parametrize("mode", ["live", "record", "live -n 2"])
def test_delays(tmp_path: Path, server: CountingServer, mode: str) -> None:
    suite = Suite(tmp_path, server.url, QUERIES)
    (tmp_path / "times.py").write_text(_TIMES)
    args = [f"--rag-mode={mode.split(maxsplit=1)[0]}", f"--rag-concurrency={AT_ONCE}", *mode.split()[1:]]
    status, said = suite.run("-p", "times", *args)
    assert status == 0, said[-2000:]
    times: dict[str, dict[str, float]] = {"read": {}, "kept": {}}
    for file in tmp_path.glob("times-*.json"):
        for what, question, when in json.loads(file.read_text()):
            times[what][question] = min(when, times[what].get(question, when))
    assert times["kept"].keys() == server.answered.keys()
    seconds = max(server.answered.values()) - min(server.answered.values())
    for what, found in times.items():
        delays = sorted(max(0.0, found[each] - when) for each, when in server.answered.items())
        late = sum(max(0.0, delay - IN_FLIGHT) for delay in delays) / seconds
        shares = " ".join(f"{1000 * delays[int(share * (QUERIES - 1))]:.1f}" for share in (0.5, 0.9, 0.95, 0.99, 1.0))
        LINES.append(f"{mode}, sent to {what}: {shares} ms (50, 90, 95, 99, 100 %); over 5 ms a kill: {late:.2f}")
