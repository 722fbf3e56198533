"""Code of a user's own. It cannot be seen whole, so its results are remembered only where it states a fingerprint.

What it answers may hang on a prompt file, a variable, a database or a library that no import shows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from inspect import getattr_static
from typing import Any

_PACKAGE = __name__.partition(".")[0]


def is_own(module: str) -> bool:
    """Return whether a module, or a file, is from outside of this package."""
    return module.partition(".")[0] != _PACKAGE


def stated_fingerprint(part: Any) -> str:
    """Return what a part says that its results hang on, its attribute ``fingerprint``; empty where it says nothing.

    A text or a number states something. A method does not: its name is the same whatever it would return. An object
    that makes up any attribute that it is asked for does not either.
    """
    if getattr_static(part, "fingerprint", None) is None:
        return ""
    stated = part.fingerprint
    return str(stated) if isinstance(stated, (str, int, float)) and not isinstance(stated, bool) else ""


def stated_truth(part: Any, name: str) -> bool | None:
    """Return what a part says of itself by the attribute ``name``; None where it says nothing.

    A method of that name says nothing, nor does an object that makes up any attribute.
    """
    if getattr_static(part, name, None) is None:
        return None
    stated = getattr(part, name)
    return stated if isinstance(stated, bool) else None


def may_be_kept(part: Any, made_in: str = "") -> bool:
    """Return whether results of a part may be kept for later runs: it is the package's, or states a fingerprint.

    ``made_in`` is the module that made it, where it is known: it may have changed an object of this package.
    """
    is_ours = not is_own(type(part).__module__) and not (made_in and is_own(made_in))
    return is_ours or bool(stated_fingerprint(part))


def is_own_code(code: Mapping[str, Collection[str]]) -> bool:
    """Return whether a module of ``code``, the modules of an experiment by part, is from outside of this package."""
    return not code or any(is_own(module) for modules in code.values() for module in modules)


def is_reusable(pipeline: Any, code: Mapping[str, Collection[str]]) -> bool:
    """Return whether rows of a pipeline may be reused: all of it is the package's own, or it states a fingerprint."""
    is_ours = not (is_own_code(code) or is_own(type(pipeline).__module__))
    return is_ours or bool(stated_fingerprint(pipeline))
