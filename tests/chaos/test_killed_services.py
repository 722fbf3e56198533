"""Services that are killed while documents come, are replaced and leave, and while questions are answered.

``tests/unit/service/corpus/test_kills.py`` has a short version.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.chaos.ledger import account
from tests.chaos.processes import members, send, started

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc"),
    pytest.mark.usefixtures("long_version"),
]
if sys.version_info < (3, 11):
    pytest.skip("the service needs Python 3.11", allow_module_level=True)

from tests.unit.service.corpus.test_kills import kill_once, looked_at  # noqa: E402

SHARE_OF_CORPUS, SHARE_OF_SERVERS = 0.5, 0.1


def test_kills_while_documents_come_are_replaced_and_leave(tmp_path: Path, kills: int) -> None:
    book = account("ingest, replace, delete killed")
    for seed in range(10_000, 10_000 + max(1, round(kills * SHARE_OF_CORPUS))):
        kill_once(tmp_path, tmp_path / "notes", seed)
        try:
            asyncio.run(looked_at(tmp_path, tmp_path / "notes"))
        except AssertionError:
            book.note(lost=1)
            raise
        book.note()


class Asked:
    """One server whose documents are loaded: its port, found in what it prints.

    It prints its address before it loads them, and refuses requests until then: with hundreds of documents that is long
    enough for the first request.
    """

    def __init__(self, said: Path, process: subprocess.Popen[bytes]) -> None:
        until, self.port = time.monotonic() + 60, 0
        while not self.port and time.monotonic() < until and process.poll() is None:
            found = [line for line in said.read_text().splitlines() if "http://127.0.0.1:" in line]
            self.port = int(found[-1].partition("http://127.0.0.1:")[2].partition("/")[0]) if found else 0
            time.sleep(0.02)
        assert self.port, said.read_text()[-2000:]
        while self.ask("GET", "/ready")[0] != 200 and process.poll() is None:
            assert time.monotonic() < until, self.ask("GET", "/ready")[1]
            time.sleep(0.02)

    def ask(self, method: str, path: str, body: bytes = b"", kind: str = "application/json") -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body or None, {"content-type": kind} if body else {})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def put(self, name: str, text: str) -> int:
        head = f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        body = f"{head}{text}\r\n--x--\r\n".encode()
        return self.ask("POST", "/ingest", body, "multipart/form-data; boundary=x")[0]

    def names(self) -> set[str]:
        listed = json.loads(self.ask("GET", "/documents")[1])
        return {str(each["name"]) for each in listed["documents"] if each["status"] == "ready"}


def test_kills_of_a_server_that_is_asked(tmp_path: Path, kills: int) -> None:
    chance, book = random.Random(7), account("serve killed")
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "returns.md").write_text("# Returns\n\nLamps go back within 45 days.\n")
    words = ["serve", "--experiment=e2", "--profile=mock", "--kb=kb", "--port=0", "--state=state"]
    command, acknowledged = [sys.executable, "-m", "rag_harness", *words], set[str]()
    for number in range(max(1, round(kills * SHARE_OF_SERVERS))):
        said = tmp_path / f"said-{number}.txt"
        with started(command, tmp_path, said) as process:
            asked = Asked(said, process)
            lost = acknowledged - asked.names()
            book.note(lost=len(lost))
            assert not lost
            until, count = time.monotonic() + chance.uniform(0.05, 0.6), 0
            with suppress(OSError, http.client.HTTPException):
                while time.monotonic() < until:
                    name = f"page-{number}-{(count := count + 1)}.md"
                    if asked.put(name, f"# Page {name}\n\nIt says {name}.\n") in (200, 201):
                        acknowledged.add(name)
                    assert asked.ask("POST", "/query", b'{"query": "lamps?"}')[0] == 200
            send(signal.SIGKILL, members(process.pid))
