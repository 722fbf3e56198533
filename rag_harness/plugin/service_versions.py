"""Versions of services under xdist: the controller asks once, and tells its workers the answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

    from rag_harness.settings import Settings

TOLD = "rag_versions"
"""The key under which a worker is told, for each service, its ``version`` or the ``problem`` with it."""


def versions_for_workers(settings: Settings) -> dict[str, dict[str, str]]:
    """Return the version of each service, or why it is not known; empty if nobody may be called."""
    from rag_harness.settings import access_of

    if access_of(settings).calls_nobody:
        return {}
    return {spec.name: _asked(settings, spec) for spec in settings.endpoints if spec.version}


def _asked(settings: Settings, spec: Any) -> dict[str, str]:
    from rag_harness.errors import PrerequisiteError
    from rag_harness.pipelines.endpoint.experiment import ask_for_version

    try:
        return {"version": ask_for_version(spec, settings)}
    except PrerequisiteError as error:
        # Trials of this service will report the problem. The run may be about another service only.
        return {"problem": str(error)}


def versions_told(config: pytest.Config) -> Mapping[str, Mapping[str, str]]:
    """Return the versions that this process was told; empty if it asks services itself."""
    found: Mapping[str, Mapping[str, str]] = getattr(config, "workerinput", {}).get(TOLD, {})
    return found
