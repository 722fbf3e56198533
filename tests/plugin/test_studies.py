"""A study of one's own is a module in ``studies/``, its prompts beside it, and a line an experiment in the table."""

from __future__ import annotations

from pathlib import Path

import pytest

import rag_harness
from tests.plugin.conftest import Suite

PACKAGE = Path(rag_harness.__file__).parent
LEASES = """
from rag_harness.pipelines.parts import Generator
from rag_harness.pipelines.parts import RunParts
from rag_harness.core.protocols import Experiment
from rag_harness.studies.retail import StandardRag


def build(parts: RunParts, name: str = "l1", top_k: int = 2) -> Experiment:
    dense, generator = parts.retrieval().dense, Generator(parts.chat(), parts.prompts("l1"))
    return Experiment(name, StandardRag(dense, generator, top_k), retriever=dense)
"""
BEGIN = "EXPERIMENTS: Mapping[str, ShippedExperiment] = {\n"
LINES = """\
    "l1": ShippedExperiment("rag_harness.studies.leases:build", "l1_search"),
    "l1-wide": ShippedExperiment("rag_harness.studies.leases:build", "l1__wide", values={"top_k": 3}),
"""
TEST = """
import pytest

@pytest.mark.l1
def test_l1(rag_result):
    assert rag_result.ok, rag_result.why

@pytest.mark.rag_experiment("l1-wide")
def test_wide(rag_result):
    assert rag_result.ok, rag_result.why
"""


def _link(folder: Path, to: Path, *beside: str) -> None:
    """Make a folder whose files are those of another, compiled as they are: to compile a copy is half of a start."""
    to.mkdir(parents=True)
    for each in folder.iterdir():
        if each.name not in beside:
            (to / each.name).symlink_to(each)


@pytest.mark.long
@pytest.mark.usefixtures("cold_python")  # another package than the warm one has
def test_a_study_is_a_module_its_prompts_and_lines_of_the_table(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    clone = suite.path / "clone"
    shipped, studies = PACKAGE / "studies", clone / "rag_harness" / "studies"
    _link(PACKAGE, clone / "rag_harness", "studies")
    _link(shipped, studies, "experiments.py", "prompts", "__pycache__")
    _link(shipped / "prompts", studies / "prompts")
    table = (shipped / "experiments.py").read_text(encoding="utf-8")
    assert BEGIN in table
    (studies / "experiments.py").write_text(table.replace(BEGIN, BEGIN + LINES), encoding="utf-8")
    (studies / "leases.py").write_text(LEASES)
    prompts_of_it = studies / "prompts" / "leases"
    prompts_of_it.mkdir()
    (prompts_of_it / "l1.system.md").write_text("You read leases.\n")
    (prompts_of_it / "l1.user.md").write_text("{context}\n\n{question}\n")
    monkeypatch.setenv("PYTHONPATH", str(clone))
    suite.pytester.makepyfile(TEST)
    suite.run().assert_outcomes(passed=8)
    assert [len(suite.rows(name)) for name in ("l1_search", "l1__wide")] == [4, 4]
    prompts = "".join(file.read_text() for file in (suite.path / "output" / "prompts").glob("*.json"))
    assert "You read leases." in prompts
