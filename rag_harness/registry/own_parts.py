"""Which code is a user's own: it cannot be seen whole, so what it said is remembered only where it states a version.

What it answers may hang on a prompt file, a variable, a database or a library that no import shows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rag_harness.protocols import Experiment

_PACKAGE = __name__.partition(".")[0]


def is_own(module: str) -> bool:
    """Return whether a module, or a file, is from outside of this package."""
    return module.partition(".")[0] != _PACKAGE


def stated_fingerprint(part: Any) -> str:
    """Return what a part says that its results hang on, its attribute ``fingerprint``; empty where it says nothing."""
    return str(getattr(part, "fingerprint", "") or "")


def may_be_kept(part: Any) -> bool:
    """Return whether results of a part may be kept for later runs: it is the package's, or states a fingerprint."""
    return not is_own(type(part).__module__) or bool(stated_fingerprint(part))


def is_own_code(code: Mapping[str, Collection[str]]) -> bool:
    """Return whether a module of ``code``, the modules of an experiment by part, is from outside of this package."""
    return not code or any(is_own(module) for modules in code.values() for module in modules)


def is_reusable(experiment: Experiment) -> bool:
    """Return whether rows of an experiment may be reused: it is the package's own, or it states a fingerprint."""
    return bool(stated_fingerprint(experiment.pipeline)) or not is_own_code(experiment.code)
