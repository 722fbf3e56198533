"""Whether rows of an experiment may be reused by a later run: what is not this package's own is asked each time.

Code of a user's own cannot be seen whole: what it answers may hang on a prompt file, a variable, a database or a
library that no import shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rag_harness.protocols import Experiment

_PACKAGE = __name__.partition(".")[0]


def is_own_code(code: Mapping[str, Collection[str]]) -> bool:
    """Return whether a module of ``code``, the modules of an experiment by part, is from outside of this package."""
    return not code or any(module.partition(".")[0] != _PACKAGE for modules in code.values() for module in modules)


def stated_fingerprint(pipeline: Any) -> str:
    """Return what a pipeline says that its answers hang on, its attribute ``fingerprint``; empty where it says none."""
    return str(getattr(pipeline, "fingerprint", "") or "")


def is_reusable(experiment: Experiment) -> bool:
    """Return whether rows of an experiment may be reused: it is the package's own, or it states a fingerprint."""
    return bool(stated_fingerprint(experiment.pipeline)) or not is_own_code(experiment.code)
