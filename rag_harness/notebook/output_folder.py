"""The output folder while an evaluation writes to it: held, logged, and without a network in modes that call nobody.

Meanwhile checks of long answers have the time of an answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from rag_harness.errors import CriticalError
from rag_harness.files.alone import RUN_LOCK, HeldError, alone
from rag_harness.files.log import close_log, open_log
from rag_harness.models.recording.network_guard import LOOPBACK, allow_connections, refuse_connections
from rag_harness.registry.package_digest import remember_in
from rag_harness.settings import Settings, access_of
from rag_harness.work.checks_in_time import checks_within


@contextmanager
def written_to(settings: Settings, output: Path, log_named: str = "") -> Iterator[None]:
    """Hold the output folder, write the log, end late checks, and close the network where the mode calls nobody.

    Args:
        settings: of the evaluation.
        output: the folder.
        log_named: the name of the log; none is written where it is empty.

    Raises:
        CriticalError: the folder cannot be written, or another run writes there.
    """
    with ExitStack() as closing:
        try:
            output.mkdir(parents=True, exist_ok=True)
            closing.enter_context(alone(output / RUN_LOCK))
        except HeldError as error:
            raise CriticalError(
                f"Another run is writing to {output}: {error.by}. Wait until it has ended, or choose a folder: output="
            ) from None
        except OSError as error:
            raise CriticalError(f"Results cannot be written to {output}: {error}. Choose another: output=") from None
        if log_named:
            open_log(settings.path(settings.logs), log_named)
            closing.callback(close_log)
        closing.enter_context(checks_within(settings.deadline))
        remember_in(settings.path(settings.cache_dir))
        if access_of(settings).calls_nobody:
            host = urlsplit(settings.qdrant_url).hostname
            refuse_connections(LOOPBACK if host in LOOPBACK else ())
            closing.callback(allow_connections)
        yield
