"""Check before the first question: the service is reachable, or its answers are recorded."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from rag_harness.errors import PrerequisiteError
from rag_harness.models.proxies import proxy_of
from rag_harness.pipelines.endpoint.pipeline import EndpointPipeline
from rag_harness.settings import Access
from rag_harness.settings.endpoint_spec import EndpointSpec
from rag_harness.types import Query

_WAITS = (0.0, 1.0, 2.0)
"""Seconds before each attempt to connect. A service that was just started needs a moment."""
_TIMEOUT = 5.0


def check_ready(
    spec: EndpointSpec,
    pipeline: EndpointPipeline,
    queries: Sequence[Query],
    access: Access,
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """Check that questions can be answered: from recordings, or by a reachable service.

    Args:
        spec: the service.
        pipeline: the pipeline of the service.
        queries: the queries of this run.
        access: the rights of the run's mode.
        wait: sleeps; replaced in tests.

    Raises:
        PrerequisiteError: nothing listens at the service's address; or nothing is recorded, and the mode may not ask.
    """
    left = [query for query in queries if not (access.reads_recordings and pipeline.is_recorded(query))]
    if not left:
        return
    if access.calls_network:
        _check_reachable(spec, wait)
    elif len(left) == len(queries):
        raise PrerequisiteError(
            f"No answer of {spec.name!r}{_of_version(pipeline)} to these {len(queries)} questions is recorded, and "
            f"mode {access.mode} asks no service. Ask it now: --rag-mode=live. Or keep its answers, to replay them "
            f"later: --rag-mode=record"
        )


def _of_version(pipeline: EndpointPipeline) -> str:
    return f", version {pipeline.version}," if pipeline.version else ""


def _check_reachable(spec: EndpointSpec, wait: Callable[[float], None]) -> None:
    address = urlsplit(spec.url)
    if not address.hostname or "$" in address.netloc or "{" in address.netloc:
        return  # the address depends on a question or the environment
    if proxy_of(address.scheme, address.hostname):
        return  # the proxy may reach what this machine does not
    port = address.port or (443 if address.scheme == "https" else 80)
    for seconds in _WAITS:
        wait(seconds)
        try:
            socket.create_connection((address.hostname, port), _TIMEOUT).close()
        except OSError as error:
            why = error.strerror or str(error)
        else:
            return
    raise PrerequisiteError(
        f"Nothing answers at {spec.url}, the url of endpoint {spec.name!r}: {why}. Start the service, or mend the url "
        f"in {spec.where}."
    )
