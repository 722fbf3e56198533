"""Versions of services under xdist: the controller asks once, and tells its workers what came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

    from rag_harness.settings import Settings

TOLD = "rag_versions"
"""Name among what a worker is told: by service its ``version``, or the ``problem`` with it."""


def versions_for_workers(settings: Settings) -> dict[str, dict[str, str]]:
    """Return the version of each service that has one, or why it does not say; nothing where nobody may be asked."""
    from rag_harness.settings import access_of

    if not access_of(settings).calls_network:
        return {}
    return {spec.name: _asked(settings, spec) for spec in settings.endpoints if spec.version}


def _asked(settings: Settings, spec: Any) -> dict[str, str]:
    from rag_harness.errors import PrerequisiteError
    from rag_harness.pipelines.endpoint.experiment import ask_for_version

    try:
        return {"version": ask_for_version(spec, settings)}
    except PrerequisiteError as error:
        # Whoever runs a trial of it says so: another service may be all that is wanted.
        return {"problem": str(error)}


def told(config: pytest.Config) -> Mapping[str, Mapping[str, str]]:
    """Return what this process was told; nothing where it asks itself."""
    found: Mapping[str, Mapping[str, str]] = getattr(config, "workerinput", {}).get(TOLD, {})
    return found
