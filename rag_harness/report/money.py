"""Writes amounts of money for people."""

from __future__ import annotations


def money(dollars: float) -> str:
    """Return an amount for people: to the cent, and with more digits below a dollar."""
    return f"${dollars:.2f}" if dollars >= 1 else f"${dollars:.4f}"
