"""This repository's own fixtures and options."""

from __future__ import annotations

pytest_plugins = ["pytester"]
