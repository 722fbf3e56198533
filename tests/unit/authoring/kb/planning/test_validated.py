"""``kb validate`` names what the plan of a knowledge base says against itself, with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_harness.authoring.kb.plan import PLAN_FILE, Plan, plan_text
from rag_harness.authoring.kb.validation import validate
from tests.unit.authoring.kb.planning.plans import NEW, OLD, OTHER, fact, plan


def told(folder: Path, broken: Plan) -> list[str]:
    (folder / PLAN_FILE).write_text(plan_text(broken), encoding="utf-8")
    (folder / "rates.md").write_text("# Rates\n\nParcel 1 costs €4.90 per order.\n", encoding="utf-8")
    report = validate(folder)
    return [f"{finding.where} {finding.message}" for check in report.checks for finding in check.findings]


@pytest.mark.parametrize(
    ("broken", "named"),
    [
        (plan(OLD.model_copy(update={"supersedes": "rates"}), NEW, OTHER), "rates-2023: supersedes itself: "),
        (plan(OLD.model_copy(update={"facts": (fact(1, "€3.90"), fact(2, "€7"))}), NEW, OTHER), "rates: fact f2 dif"),
        (plan(OLD, NEW, OTHER.model_copy(update={"facts": (fact(1),)})), "gifts: fact f1 stands on rates-2023 already"),
    ],
)
def test_a_fault_of_the_plan_is_named_with_its_line(tmp_path: Path, broken: Plan, named: str) -> None:
    (found,) = [each for each in told(tmp_path, broken) if named in each]
    line = int(found.split()[0].rpartition(":")[2])
    assert named.split(":", maxsplit=1)[0] in (tmp_path / PLAN_FILE).read_text(encoding="utf-8").splitlines()[line - 1]
