"""Queries whose answer a superseded page gives otherwise are found by their evidence."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rag_harness.__main__ import CANNOT_RUN, main
from rag_harness.authoring.kb.embedded_planner import planned
from rag_harness.authoring.kb.page_grammar import compose
from rag_harness.authoring.kb.plan import PlanRequest, briefs, mark_superseded, plan_text
from rag_harness.authoring.kb.validation import validate
from rag_harness.core.errors import DataError
from tests.plugin.counting_server import counting_server
from tests.unit.authoring.kb.killed_writer import AT_ONCE
from tests.unit.authoring.kb.small_plan import plan_of
from tests.unit.authoring.kb.test_asked_pages import asked_for

# Queries whose answer a superseded page gives otherwise are found by their evidence.

SHIPPED = Path(__file__).parents[4] / "data" / "kb"
OLD, NEW = "Return it within 30 days.", "Return it within 45 days."
PLAN = {
    "pages": [{"id": "new", "filename": "new.md"}, {"id": "old", "filename": "old.md"}],
    "version_pairs": [
        {"outdated": "old", "current": "new", "conflicts": [{"outdated_statement": OLD, "current_statement": NEW}]}
    ],
}


def kb(folder: Path, *queries: dict[str, Any], plan: Any = PLAN) -> Path:
    (folder / "structure.json").write_text(json.dumps(plan))
    (folder / "queries.jsonl").write_text("".join(json.dumps(query) + "\n" for query in queries))
    return folder


def quoting(text: str, filename: str = "new.md", **metadata: Any) -> dict[str, Any]:
    return {"query_id": "q1", "evidence": [{"filename": filename, "quote": text}], "metadata": metadata}


@pytest.mark.parametrize("quote", [NEW, f"So: **{NEW}** Or not.", "within 45\ndays."])
def test_a_quote_of_the_current_statement_is_marked(tmp_path: Path, quote: str) -> None:
    found = mark_superseded(kb(tmp_path, quoting(quote, topic="returns", version_pair="stale")))
    assert found.marked == 1
    assert json.loads(found.lines[0])["metadata"] == {
        "topic": "returns",
        "version_pair": "old",
        "superseded": [{"outdated_statement": OLD, "current_statement": NEW}],
    }


@pytest.mark.parametrize(
    "query",
    [quoting(NEW, "other.md"), quoting("Pay in cash."), quoting(" "), {"query_id": "q2"}, quoting("", superseded=[1])],
)
def test_what_asks_for_something_else_is_kept_as_it_is(tmp_path: Path, query: dict[str, Any]) -> None:
    found = mark_superseded(kb(tmp_path, query))
    assert found.marked == 0
    assert "superseded" not in json.loads(found.lines[0]).get("metadata", {})


def test_the_shipped_queries_that_turn_on_a_version(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    marked = tmp_path / "queries.jsonl"
    assert main(["kb", "superseded", str(SHIPPED), "-o", str(marked)]) == 0
    assert capsys.readouterr().out.startswith("23 of 200 queries")
    queries = [json.loads(line) for line in marked.read_text().splitlines()]
    assert all(query["metadata"]["version_conflict"] for query in queries if "superseded" in query["metadata"])


@pytest.mark.parametrize(
    ("plan", "queries", "message"),
    [
        ({"pages": []}, "", "no version_pairs"),
        ("nonsense", "", "expected an object"),
        (PLAN, "{", "queries.jsonl:1: no JSON"),
        (PLAN, "7\n", "queries.jsonl:1: no query"),
        (PLAN, '{"metadata": 3}\n', "queries.jsonl:1: no query"),
    ],
)
def test_what_cannot_be_read_says_where(tmp_path: Path, plan: Any, queries: str, message: str) -> None:
    folder = kb(tmp_path, plan=plan)
    (folder / "queries.jsonl").write_text(queries)
    with pytest.raises(DataError, match=message):
        mark_superseded(folder)


@pytest.mark.parametrize(("name", "said"), [("q.csv", "is a table"), ("q.json", "is a JSON array")])
def test_a_table_is_told_with_what_makes_lines_of_it(tmp_path: Path, name: str, said: str) -> None:
    file = kb(tmp_path) / name
    file.write_text("question\nWhy?\n" if name.endswith("csv") else "[{}]")
    with pytest.raises(DataError, match=f"{said}.*rag-harness queries import .*{name} -o queries.jsonl"):
        mark_superseded(tmp_path, file)


def test_without_queries_it_says_so(tmp_path: Path) -> None:
    (kb(tmp_path) / "queries.jsonl").unlink()
    assert main(["kb", "superseded", str(tmp_path), "-o", str(tmp_path / "out.jsonl")]) == CANNOT_RUN


def test_turns_are_marked_where_they_stand(tmp_path: Path) -> None:
    turns = [{"query": "How?", **quoting("Pay in cash.", kind="a")}, {"query": "When?", **quoting(NEW, kind="b")}]
    turns = [{key: value for key, value in turn.items() if key != "query_id"} for turn in turns]
    talk = {"conversation": "c1", "metadata": {"part": "fit"}, "turns": turns}
    found = mark_superseded(kb(tmp_path, talk, quoting(NEW)))
    assert (found.marked, found.queries) == (2, 3)
    whole = json.loads(found.lines[0])
    assert [sorted(turn["metadata"]) for turn in whole["turns"]] == [["kind"], ["kind", "superseded", "version_pair"]]
    assert whole["metadata"] == {"part": "fit"}
    assert main(["kb", "superseded", str(tmp_path), "-o", str(tmp_path / "out.jsonl")]) == 0
    bad = kb(tmp_path, {"conversation": "c1", "turns": 3})
    with pytest.raises(DataError, match=r"queries\.jsonl:1: no conversation: turns: a list of objects"):
        mark_superseded(bad)


# A run that is killed goes on where it was: no page that was written is paid for again.

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
