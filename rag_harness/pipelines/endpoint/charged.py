"""The metered way to a service, whose calls cost what its spec says."""

from __future__ import annotations

import json
from typing import Any

from rag_harness.models.allowed import Line
from rag_harness.models.call import Call, upper_bound
from rag_harness.models.meter import Money
from rag_harness.models.metered import MeteredTransport


class ChargedTransport(MeteredTransport):
    """Lets calls in as limiter and budget allow.

    Args:
        inner: the way to the service.
        limiter: caps, and the window of calls in flight.
        money: what calls may cost; None where there is no limit.
        usd: what a call costs; None: what the prices say of the model that the request names.
    """

    def __init__(self, inner: Any, limiter: Line, money: Money | None, usd: float | None) -> None:
        super().__init__(inner, limiter, money)
        self._usd = usd

    def _call(self, content: bytes) -> Call:
        asked = json.loads(content) if content else {}
        if self._usd is None and isinstance(asked, dict) and "messages" in asked:
            return super()._call(content)
        most = upper_bound(content, {})
        return Call(most, lambda usage: (self._usd or 0.0) * usage.calls)
