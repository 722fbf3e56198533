"""What a panel of judges is worth: how far its judges agree, and by people's labels the best one beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rag_harness.page.content import Table, word_cells
from rag_harness.page.figures import NONE
from rag_harness.page.run import Run

_HEADS = (
    "experiment", "measure", "judged by all", "α", "labels", "independent votes", "panel", "best judge", "silent",
)  # fmt: skip
_NOTES = (
    "α is Krippendorff's, of the judges among each other. Independent votes are J / (1 + (J - 1) ρ), ρ being the mean "
    "correlation of two judges' errors against people's labels. Panel and best judge: accuracy at 0.5, or Spearman's "
    "correlation where people gave ratings; the best one is chosen on these labels, which flatters it a little."
)


def panel_table(run: Run) -> Table | None:
    """Return what ``summary.json`` says of the run's panels; None where it has none."""
    found = [each for each in run.summary.get("panels") or () if isinstance(each, Mapping)]
    if not found:
        return None
    judges: Sequence[Any] = found[0].get("judges") or [NONE]
    claims = f"The claims below a trial are those of {judges[0]}, the first judge."
    why = dict.fromkeys(str(each["unworthy"]) for each in found if each.get("unworthy"))
    return Table("panels", _HEADS, [_row(each) for each in found], "Panel of judges", [_NOTES, claims, *why])


def _row(found: Mapping[str, Any]) -> list[Any]:
    worth: Mapping[str, Any] = found.get("worth") or {}
    best = str(worth.get("best") or "")
    silent = ", ".join(f"{name}: {count}" for name, count in (found.get("silent") or {}).items())
    return word_cells(
        str(found.get("suite", "")),
        str(found.get("measure", "")),
        f"{found.get('judged')} of {found.get('cases')}",
        _number(found.get("alpha")),
        str(worth.get("labels", NONE)),
        _number(worth.get("n_eff")),
        _number(worth.get("panel")),
        f"{best}: {_number((worth.get('by_judge') or {}).get(best))}" if best else NONE,
        silent or NONE,
    )


def _number(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, (int, float)) else NONE
