"""A page that is watched: whatever it asks for, complains of or pops up is kept, and fails its test."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, ConsoleMessage, Dialog, Page, Request, Route


@dataclass
class Watch:
    """What happened that must not: a line each. A test that expects one takes it out."""

    found: list[str] = field(default_factory=list)

    def context(self, context: BrowserContext) -> None:
        """Cut the network of a context, and keep what its pages do."""
        context.set_offline(True)
        context.route("**/*", self._route)
        context.on("request", self._request)
        context.on("page", self._page)

    def _page(self, page: Page) -> None:
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.found.append(f"error: {error}"))
        page.on("dialog", self._dialog)

    def _request(self, request: Request) -> None:
        if not (request.is_navigation_request() and request.url.startswith("file:")):
            self.found.append(f"asked for: {request.url[:200]}")

    def _route(self, route: Route) -> None:
        if route.request.is_navigation_request() and route.request.url.startswith("file:"):
            route.continue_()
        else:
            self.found.append(f"request: {route.request.url[:200]}")
            route.abort()

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.found.append(f"console {message.type}: {message.text}")

    def _dialog(self, dialog: Dialog) -> None:
        self.found.append(f"dialog: {dialog.message}")
        dialog.dismiss()
