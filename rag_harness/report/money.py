"""Amounts for people to read."""

from __future__ import annotations


def money(dollars: float) -> str:
    """Return an amount for people to read: to the cent, and finer below a dollar."""
    return f"${dollars:.2f}" if dollars >= 1 else f"${dollars:.4f}"
