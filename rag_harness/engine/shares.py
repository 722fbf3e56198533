"""Divides the limits of a run among its workers, in equal parts."""

from __future__ import annotations

from dataclasses import replace

from rag_harness.settings import Settings


def share_of(settings: Settings, workers: int) -> Settings:
    """Return the settings for one of ``workers`` processes. Together they stay within the limits."""
    if workers <= 1:
        return settings
    shared = share_in_flight(settings, workers)
    return replace(
        shared,
        rpm=settings.rpm / workers,
        tpm=settings.tpm / workers,
        budget=settings.budget / workers,
        endpoints=tuple(replace(spec, rpm=spec.rpm / workers) for spec in shared.endpoints),
    )


def share_in_flight(settings: Settings, workers: int) -> Settings:
    """Return the settings for one of ``workers`` processes that ask one ledger for rates and money."""
    endpoints = tuple(replace(spec, concurrency=_part(spec.concurrency, workers)) for spec in settings.endpoints)
    return replace(settings, concurrency=_part(settings.concurrency, workers), endpoints=endpoints)


def _part(most: int, workers: int) -> int:
    """Return a worker's part of a number of calls; 0 is no limit."""
    return max(1, most // workers) if most else 0
