"""The options and parts of the chat model of role ``writer``, for commands that ask it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rag_harness.commands.with_settings import settings_said
from rag_harness.errors import DataError, SettingsError

if TYPE_CHECKING:
    from rag_harness.pipelines.parts import RunParts

WRITER_SETTINGS = {
    "writer_model": "chat model that writes, for --writer llm; default: that of the profile's role writer",
    "writer_base_url": "its OpenAI-compatible endpoint; default: that of the profile's role writer",
    **{
        name: f"as --rag-{name} of a test run, for --writer llm"
        for name in ("profile", "mode", "budget", "prices", "concurrency")
    },
}


def writer_parts(chosen: argparse.Namespace, longest: int = 0) -> RunParts:
    """Return the parts with the writer; ``longest`` is how many tokens a reply may need.

    Raises:
        SettingsError: no writer is named, or it has no key.
    """
    from dataclasses import replace

    from rag_harness.models.api_keys import check_api_keys
    from rag_harness.models.endpoints import endpoint_of
    from rag_harness.pipelines.parts import RunParts
    from rag_harness.settings.loading import load_settings
    from rag_harness.settings.profiles import EMBEDDED_URL

    settings = load_settings(settings_said(chosen, WRITER_SETTINGS))
    settings = replace(settings, max_output_tokens=max(settings.max_output_tokens, longest))
    asked = endpoint_of(settings, "writer")
    if asked.base_url in ("", EMBEDDED_URL):
        raise SettingsError(
            f"--writer llm asks a chat model, but {asked.model!r} is the reader in this process, which writes nothing. "
            "Name one with --writer-model and --writer-base-url, or leave --writer out."
        )
    check_api_keys(settings)
    return RunParts(settings)


@contextmanager
def told_where_written(place: Path) -> Iterator[None]:
    """Raise a message that names the file that could not be written, the system's reason, and what to do.

    Raises:
        DataError: raised instead of an ``OSError``.
    """
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        raise DataError(f"{place} cannot be written: {why}. Make room there, or name another place with -o.") from error
