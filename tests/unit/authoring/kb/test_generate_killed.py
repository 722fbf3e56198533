"""A run that is killed goes on where it was: no page that was written is paid for again."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from rag_harness.authoring.kb.embedded_planner import planned
from rag_harness.authoring.kb.page_grammar import compose
from rag_harness.authoring.kb.plan import PlanRequest, briefs, plan_text
from rag_harness.authoring.kb.validation import validate
from tests.plugin.counting_server import counting_server
from tests.unit.authoring.kb.killed_writer import AT_ONCE
from tests.unit.authoring.kb.small_plan import plan_of
from tests.unit.authoring.kb.test_asked_pages import asked_for

KILLS = 3


def test_killed_three_times_no_page_that_was_written_is_asked_for_again(tmp_path: Path) -> None:
    plan = planned(PlanRequest("retail support", 24))
    (tmp_path / "warm").mkdir()
    (tmp_path / "structure.json").write_text(plan_text(plan), encoding="utf-8")
    good = {brief.page.filename: compose(brief, 0) for brief in briefs(plan)}
    others = {brief.page.filename: compose(brief, 0) for brief in briefs(plan_of())}
    asked: Counter[str] = Counter()

    def reply(body: Any) -> str:
        name = asked_for(body["messages"])
        asked[name] += name in good
        return {**others, **good}[name]

    with counting_server(delay=0.05, reply=reply) as server:
        command = [sys.executable, "-m", "tests.unit.authoring.kb.killed_writer", str(tmp_path), server.url, str(KILLS)]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout.splitlines()[-1])
    assert said["status"] == 0
    assert [len(seen) for seen in said["seen"]] == sorted(len(seen) for seen in said["seen"])
    assert said["seen"][0]
    # What was on the wire, or being checked, when the process died may be asked for once more; what was on disk, never.
    assert {asked[name] for name in said["seen"][0]} == {1}
    assert len(good) <= asked.total() <= len(good) + KILLS * 2 * AT_ONCE
    assert max(asked.values()) <= 1 + KILLS
    assert validate(tmp_path / "kb").ok
    assert not list((tmp_path / "kb").glob(".*"))
