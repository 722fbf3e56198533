"""A study of one's own is a folder in ``studies/``: a file an experiment, and its prompts beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

import rag_harness
from tests.plugin.conftest import Suite

PACKAGE = Path(rag_harness.__file__).parent
EXPERIMENT = '''
"""{name}: the {top_k} best chunks."""

from rag_harness.pipelines.generation import Generator
from rag_harness.pipelines.parts import RunParts
from rag_harness.core.protocols import Experiment
from rag_harness.studies.retail import StandardRag


def build(parts: RunParts) -> Experiment:
    """Return this experiment."""
    dense, generator = parts.retrieval().dense, Generator(parts.chat(), parts.prompts("l1"))
    return Experiment("{name}", StandardRag(dense, generator, {top_k}), retriever=dense)
'''
TEST = """
import pytest

@pytest.mark.l1
def test_l1(rag_result):
    assert rag_result.ok, rag_result.why

@pytest.mark.rag_experiment("l1-wide")
def test_wide(rag_result):
    assert rag_result.ok, rag_result.why
"""


def _link(folder: Path, to: Path, beside: str = "") -> None:
    """Make a folder whose files are those of another, compiled as they are: to compile a copy is half of a start."""
    to.mkdir(parents=True)
    for each in folder.iterdir():
        if each.name != beside:
            (to / each.name).symlink_to(each)


@pytest.mark.long
@pytest.mark.usefixtures("cold_python")  # another package than the warm one has
def test_a_study_is_one_folder(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    clone = suite.path / "clone"
    _link(PACKAGE, clone / "rag_harness", beside="studies")
    _link(PACKAGE / "studies", clone / "rag_harness" / "studies")
    study = clone / "rag_harness" / "studies" / "leases"
    (study / "prompts").mkdir(parents=True)
    (study / "l1_search.py").write_text(EXPERIMENT.format(name="l1", top_k=2))
    (study / "l1__wide.py").write_text(EXPERIMENT.format(name="l1-wide", top_k=3))
    (study / "prompts" / "l1.system.md").write_text("You read leases.\n")
    (study / "prompts" / "l1.user.md").write_text("{context}\n\n{question}\n")
    monkeypatch.setenv("PYTHONPATH", str(clone))
    suite.pytester.makepyfile(TEST)
    suite.run().assert_outcomes(passed=8)
    assert [len(suite.rows(name)) for name in ("l1_search", "l1__wide")] == [4, 4]
    prompts = "".join(file.read_text() for file in (suite.path / "output" / "prompts").glob("*.json"))
    assert "You read leases." in prompts
