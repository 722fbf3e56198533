"""A page that may ask its own server and nobody else."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.browser.watched import Watch

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, ConsoleMessage, Request, Route


_REFUSED = re.compile(r"^Failed to load resource: the server responded with a status of (\d+)")


@dataclass
class Near(Watch):
    """What happened that must not. ``statuses`` are those that a test wants: the browser itself complains of each."""

    address: str = ""
    statuses: set[int] = field(default_factory=set)

    def context(self, context: BrowserContext) -> None:
        context.route("**/*", self._route)
        context.on("request", self._request)
        context.on("page", self._page)

    def _is_near(self, url: str) -> bool:
        return url.startswith(f"{self.address}/") or url.startswith("data:image/svg+xml,")

    def _request(self, request: Request) -> None:
        if not self._is_near(request.url):
            self.found.append(f"asked for: {request.url[:200]}")

    def _route(self, route: Route) -> None:
        if self._is_near(route.request.url):
            route.continue_()
        else:
            self.found.append(f"request: {route.request.url[:200]}")
            route.abort()

    def _console(self, message: ConsoleMessage) -> None:
        refused = _REFUSED.match(message.text)
        if not (refused and int(refused[1]) in self.statuses):
            super()._console(message)
