"""The service keeps conversations, and is evaluated by its address, by the TOML of service-evaluate.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed: pip install '.[service]'")


from rag_harness.core.types import Answer, PipelineOutput, Query
from rag_harness.service.app_state import Service
from rag_harness.service.corpus.contents import DEFAULT
from tests.plugin.conftest import Suite
from tests.unit.service.listened import serving
from tests.unit.service.served import made_app, said_by

PAGE = (Path(__file__).parents[2] / "docs/how-to/service-evaluate.md").read_text(encoding="utf-8")
(TALKING,) = re.findall(r"```toml\n(# talking\.toml\n.*?)```", PAGE, re.DOTALL)
FILE = "--rag-endpoint=talking.toml"
TURNS = [{"query": f"q{turn}", "ground_truth": "45 days"} for turn in (1, 2, 3)]
SAID = ["q1 after []", "q2 after ['q1']", "q3 after ['q1', 'q2']"]


@dataclass
class Recalls:
    """A pipeline that says what was asked before. ``forgets`` are questions at which the server forgets all that."""

    asked: list[Query] = field(default_factory=list)
    forgets: set[str] = field(default_factory=set)
    service: Service | None = None

    async def answer(self, query: Query) -> PipelineOutput:
        self.asked.append(query)
        if query.text in self.forgets and self.service is not None:
            self.service.conversations.end((DEFAULT, None), query.place["conversation"])
        return PipelineOutput(Answer(f"{query.text} after {[each.content for each in query.history[::2]]}"))


@pytest.fixture
def served(suite: Suite) -> Iterator[Recalls]:
    """Serve the pipeline at the address in ``talking.toml``."""
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.write_queries([{"conversation": f"c{n}", "turns": TURNS} for n in range(2)])
    pipeline = Recalls()
    with made_app(suite.path / "served", said_by(pipeline)) as (app, service), serving(app) as port:
        pipeline.service = service
        (suite.path / "talking.toml").write_text(TALKING.replace(":8000", f":{port}"))
        yield pipeline


def said(suite: Suite, name: str = "talking") -> dict[str, str]:
    rows: list[Any] = suite.rows(name)
    return {row["query_id"]: row["llm_answer"] for row in rows}


EXPECTED = {f"c{n}#{turn}": SAID[turn - 1] for n in range(2) for turn in (1, 2, 3)}


@pytest.mark.parametrize("workers", [pytest.param("-n0", marks=pytest.mark.long), "-n2"])
def test_its_conversations_are_recorded_repeated_and_replayed(suite: Suite, served: Recalls, workers: str) -> None:
    options = (FILE, "--rag-repeats=2", workers)
    suite.run(*options, "--rag-mode=record").assert_outcomes(passed=6)
    assert len(served.asked) == 12
    assert len({query.place["conversation"] for query in served.asked}) == 4
    suite.run(*options, "--rag-mode=replay", "--rag-overwrite").assert_outcomes(passed=6)
    assert len(served.asked) == 12
    assert said(suite) == said(suite, "derived/talking+repeat2") == EXPECTED


def test_what_it_has_forgotten_is_an_error_and_is_begun_anew(suite: Suite, served: Recalls) -> None:
    served.forgets = {"q2"}
    result = suite.run(FILE, "--rag-mode=record", "-n0")
    result.assert_outcomes(passed=4, failed=2)
    result.stdout.fnmatch_lines(["*SessionLostError*has forgotten the session of c0#3: *status 404*"])
    served.forgets.clear()
    suite.run(FILE, "--rag-mode=record", "-n0").assert_outcomes(passed=6)
    assert said(suite) == EXPECTED
