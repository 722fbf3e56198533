"""Everything that changes a result, in one digest per experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

from rag_harness.files.sources import json_digest
from rag_harness.protocols import Experiment
from rag_harness.registry.own_parts import is_own, is_own_code, stated_fingerprint
from rag_harness.registry.package_digest import library_versions, package_digest
from rag_harness.settings import Settings
from rag_harness.settings.table import affecting

if TYPE_CHECKING:
    from collections.abc import Callable

    from rag_harness.dataset.data import Data


def fingerprint_parts(
    experiment: Experiment, settings: Settings, queries_digest: str, documents: str = ""
) -> dict[str, Any]:
    """Return what decides the results of ``experiment``, by name, ready for JSON.

    These are: its queries; what it declares and what its parts have noted; this package and the libraries that decide
    results; and the pipeline's attribute ``fingerprint``. Code of a user's own cannot be seen whole, and does not
    count: its settings do, and the digest of its ``documents``.
    """
    ours = {part: sorted(each for each in modules if not is_own(each)) for part, modules in experiment.code.items()}
    parts = {
        "queries": queries_digest,
        "profile": settings.profile,
        "mode": settings.mode,
        "package": package_digest(),
        "code": ours,
        "own": stated_fingerprint(experiment.pipeline),
        "ingredients": dict(experiment.ingredients),
    }
    if is_own_code(experiment.code):
        own = affecting(settings, "retrieval", "reranking", "generation")
        return parts | {"documents": documents, "settings": own}
    return parts | {"libraries": library_versions()}


def fingerprint_of(experiment: Experiment, settings: Settings, queries_digest: str, documents: str = "") -> str:
    """Return the digest that stands in every row of ``experiment``; see ``fingerprint_parts``."""
    return json_digest(fingerprint_parts(experiment, settings, queries_digest, documents))


def fingerprint_about(experiment: Experiment, settings: Settings, data: Data) -> str:
    """Return the same for an experiment that is asked about ``data``."""
    # A user's own pipeline may read any of the documents; parts of the package note what they search.
    documents = data.pages_digest if is_own_code(experiment.code) else ""
    return fingerprint_of(experiment, settings, data.queries_digest, documents)


def asked_now(fingerprint: Callable[[Experiment], str]) -> Callable[[Experiment], str]:
    """Return a fingerprint of this command alone for what is a user's own: no trial of an earlier command is reused."""
    command = uuid4().hex

    def found(experiment: Experiment) -> str:
        said = fingerprint(experiment)
        return said if experiment.is_reusable else json_digest([said, command])

    return found
