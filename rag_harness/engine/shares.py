"""Limits hold for the whole run: each worker of several gets an equal part of them."""

from __future__ import annotations

from dataclasses import replace

from rag_harness.settings import Settings


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
    )
