"""Proxies from the environment."""

from __future__ import annotations

from urllib.request import getproxies, proxy_bypass

from rag_harness.models.recording.network_guard import LOOPBACK


def proxy_of(scheme: str, host: str) -> str | None:
    """Return the environment's proxy for a host. None for a direct connection, as to this machine."""
    return None if host in LOOPBACK or proxy_bypass(host) else getproxies().get(scheme)
