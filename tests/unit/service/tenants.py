"""Servers with tenants, asked in process; and what two servers say, compared."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from anyio.to_thread import run_sync

from rag_harness.core.settings.loading import load_settings
from rag_harness.service.app_state import Options
from rag_harness.service.database import StateFolder
from rag_harness.service.keys import SCOPES, make_key
from rag_harness.service.server import create_app, opened

_ID = re.compile(r"\b(?:[0-9a-f]{32}|[0-9a-f]{16})\b")
_CLOCKS = re.compile(r"ms$|^(?:created|began|start_ms)$|time_to_first")
_ANSWERS = ("ratelimit-policy", "content-type", "location", "allow", "www-authenticate", "retry-after", "cache-control")


@dataclass
class Server:
    """One server and a client for each of its tenants; ``everything`` sees all collections."""

    clients: Mapping[str, httpx.AsyncClient]
    keys: Mapping[str, str]


@asynccontextmanager
async def server(folder: Path, tenants: Sequence[str], **options: Any) -> AsyncIterator[Server]:
    """Give a server whose tenants may do everything, in their own collections; on the mock profile."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = load_settings({"profile": "mock", "top_k": 3, "candidates": 5}, rootdir=folder)
    made = Options("e3", folder / "state", **options)
    with StateFolder(made.state) as state:
        collections = {**{tenant: tenant for tenant in tenants}, "everything": None}
        keys = {
            name: await run_sync(make_key, state.database, SCOPES, name, collection, "1000000/minute")
            for name, collection in collections.items()
        }
        app = create_app(lambda: opened(made, settings, state))
        async with app.router.lifespan_context(app):
            clients = {name: _client(app, key) for name, key in keys.items()}
            yield Server(clients, keys)
            for client in clients.values():
                await client.aclose()


def _client(app: Any, key: str) -> httpx.AsyncClient:
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://rag.example", headers=headers)


@dataclass
class Comparable:
    """What a server says, with its ids numbered as they come and its clocks stopped."""

    numbers: dict[str, int] = field(default_factory=dict)

    def of(self, answer: httpx.Response) -> tuple[int, dict[str, str], Any]:
        """Return what must be the same on two servers that were asked the same."""
        headers = {name: self._plain(answer.headers[name]) for name in _ANSWERS if name in answer.headers}
        left = re.search(r"r=(\d+)", answer.headers.get("ratelimit", "")) or [""]
        return answer.status_code, {**headers, "left": left[0]}, self._content(answer.text)

    def _content(self, text: str) -> Any:
        if text.startswith(("event:", "data:")):
            return [self._line(line) for line in text.splitlines()]
        return self._line(text)

    def _line(self, line: str) -> Any:
        try:
            return self._plain(json.loads(line.removeprefix("data: ")))
        except ValueError:
            return self._plain(line)

    def _plain(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: None if _CLOCKS.search(key) else self._plain(held) for key, held in value.items()}
        if isinstance(value, list):
            return [self._plain(held) for held in value]
        return _ID.sub(self._number, value) if isinstance(value, str) else value

    def _number(self, found: re.Match[str]) -> str:
        return f"id {self.numbers.setdefault(found[0], len(self.numbers))}"
