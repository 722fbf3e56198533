"""Limits hold for the whole run: each worker of several gets an equal part of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rag_harness.settings import Settings

if TYPE_CHECKING:
    from rag_harness.settings.endpoint_spec import EndpointSpec


def share_of(settings: Settings, workers: int) -> Settings:
    """Return the settings for one of ``workers`` processes. The sum of all stays within the limit."""
    if workers <= 1:
        return settings
    return replace(
        settings,
        concurrency=max(1, settings.concurrency // workers),
        rpm=settings.rpm / workers,
        tpm=settings.tpm / workers,
        budget=settings.budget / workers,
        endpoints=tuple(_share(spec, workers) for spec in settings.endpoints),
    )


def _share(spec: EndpointSpec, workers: int) -> EndpointSpec:
    most = max(1, spec.concurrency // workers) if spec.concurrency else 0
    return replace(spec, concurrency=most, rpm=spec.rpm / workers)
