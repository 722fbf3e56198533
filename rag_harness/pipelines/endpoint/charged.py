"""HTTP transport to a service, with limits and costs."""

from __future__ import annotations

import json
from typing import Any

from rag_harness.models.allowed import Line
from rag_harness.models.anew import note_what_is_sent
from rag_harness.models.call import NO_USAGE, Call, upper_bound
from rag_harness.models.meter import Money
from rag_harness.models.metered import MeteredTransport


class ChargedTransport(MeteredTransport):
    """Sends a call when limiter and budget allow it.

    Args:
        inner: the transport to the service.
        limiter: caps, and the window of calls in flight.
        money: the budget; None without a limit.
        usd: the price of a call. None: the price table's price for the model of the request.
    """

    def __init__(self, inner: Any, limiter: Line, money: Money | None, usd: float | None) -> None:
        super().__init__(inner, limiter, money)
        self._usd = usd

    async def _admit(self, call: Call) -> None:
        await super()._admit(call)
        try:
            await note_what_is_sent()
        except BaseException:
            call.settle(NO_USAGE)
            self._end(call)
            raise

    def _call(self, content: bytes) -> Call:
        asked = json.loads(content) if content else {}
        if self._usd is None and isinstance(asked, dict) and "messages" in asked:
            return super()._call(content)
        most = upper_bound(content, {})
        return Call(most, lambda usage: (self._usd or 0.0) * usage.calls)
