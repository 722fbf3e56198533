"""What every page begins with: the styles and the script in ``assets/``, and a policy that allows nothing else."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files


def styled(style: str, before: str = "") -> str:
    """Return the style of a page behind what all pages share; ``before`` is what that may override."""
    return before + _asset("base.css") + style


def scripted(script: str) -> str:
    """Return the script of a page, behind the functions that all pages share; all of it is strict."""
    return _asset("base.js") + script


def policy(style: str, script: str) -> str:
    """Return a Content-Security-Policy that allows nothing from outside, and inside only this style and script."""
    return (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"


def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")
