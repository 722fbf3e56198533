"""Reads from a test item which trial it is about, which fixture makes its pipeline, and whether it is skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rag_harness.types import GOLDEN, TrialId

if TYPE_CHECKING:
    import pytest

    from rag_harness.engine.trial_rows import Trial


def trial_id_of(item: pytest.Item) -> TrialId | None:
    """Return the trial that a test is about, golden entries included; None for other tests."""
    params = _params(item)
    if "rag_trial" in params:
        found: TrialId = params["rag_trial"].id
        return found
    return TrialId(GOLDEN, params["rag_golden_id"]) if "rag_golden_id" in params else None


def trial_of(item: pytest.Item) -> Trial | None:
    """Return the trial of an experiment that answers; None for other tests, those of the golden suite included."""
    trial: Trial | None = _params(item).get("rag_trial")
    return trial


def _params(item: pytest.Item) -> dict[str, Any]:
    callspec = getattr(item, "callspec", None)
    params = callspec.params if callspec else {}
    # pytest puts a placeholder where a test is parametrized with nothing: here, since its data have errors.
    return {name: value for name, value in params.items() if type(value).__name__ != "NotSetType"}


def own_fixture(item: pytest.Item) -> Any:
    """Return the user's own definition of ``rag_pipeline`` that ``item`` gets; None if it gets the plugin's."""
    fixtures = getattr(item, "_fixtureinfo").name2fixturedefs.get("rag_pipeline", ())  # noqa: B009
    return fixtures[-1] if len(fixtures) > 1 else None


def made_in(fixture: Any) -> str:
    """Return where a fixture is written, as ``written_in`` does; empty if there is no fixture."""
    from rag_harness.pipelines.declared import written_in

    return written_in(getattr(fixture, "func", None))


def is_skipped(item: pytest.Item) -> bool:
    """Return whether a mark will skip the test, so that nobody pays for its trial."""
    try:
        from _pytest.skipping import evaluate_skip_marks
    except ImportError:
        return any(item.iter_markers("skip"))
    try:
        return evaluate_skip_marks(item) is not None
    except Exception:
        return True  # the condition cannot be evaluated; the test itself will say so
