"""The pages on tuning: their two commands are run, each space on them is read, and their tables name what there is."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from rag_harness.__main__ import main
from rag_harness.core.settings.configurations import known_parameters, read_configuration
from rag_harness.core.settings.endpoints import read_endpoint
from rag_harness.diagnosis.tuning.outcome import read_outcome
from rag_harness.diagnosis.tuning.space import _KEYS, read_space
from tests.plugin.test_docs_gates import ROOT, blocks

PAGE, SERVICE, KEYS = (
    (ROOT / "docs" / page).read_text(encoding="utf-8")
    for page in ("how-to/tune.md", "how-to/tune-a-service.md", "reference/spaces.md")
)
OF_A_SERVICE, ASKED = blocks(SERVICE, "toml")
SPACES = [*blocks(PAGE, "toml"), OF_A_SERVICE, *blocks(KEYS, "toml")]
(COMMANDS,) = blocks(PAGE, "sh")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with somebody's documents, and the page's first space."""
    (tmp_path / "my_docs").mkdir()
    for page in sorted((ROOT / "data/kb").glob("*.md"))[:20]:
        shutil.copy(page, tmp_path / "my_docs")
    (tmp_path / "space.toml").write_text(SPACES[0])
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.long
def test_two_commands_tune_anybody_s_documents(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for line in COMMANDS.splitlines():
        assert main([*shlex.split(line)[1:], "--profile", "mock"]) == 0
    said = capsys.readouterr().out
    outcome = read_outcome(folder / "output")
    assert outcome is not None
    assert outcome.held_out is not None
    assert len(outcome.entries) == 3 * 2 * 3 + 1
    for words in ("questions that it was not chosen by", "do not report that one", "The race ended after"):
        assert words in said
        assert words in PAGE
    tuned = read_configuration(folder / "tuned.toml")
    assert tuned.by_name["retriever"] == outcome.entry(outcome.winner).values["retriever"]
    assert main(["report", "output", "-o", "race.html"]) == 0


@pytest.mark.parametrize("number", range(len(SPACES)))
def test_each_space_is_read(tmp_path: Path, number: int) -> None:
    file = tmp_path / "space.toml"
    file.write_text(SPACES[number])
    assert len(list(read_space(file).combinations())) > 1


def test_every_key_and_every_parameter_is_named() -> None:
    rows = {name.strip("[]") for name in re.findall(r"^\| `([^`]+)`", KEYS, re.MULTILINE)}
    assert rows == {*_KEYS}
    assert {*known_parameters("")} <= {*re.findall(r"`(\w+)`", KEYS)}


def test_the_service_has_the_place_that_its_space_varies(tmp_path: Path) -> None:
    (tmp_path / "my_service.toml").write_text(ASKED)
    (tmp_path / "service.toml").write_text(OF_A_SERVICE)
    place = json.loads(read_endpoint(tmp_path / "my_service.toml").body)
    (varied,) = read_space(tmp_path / "service.toml").parameters
    for name in varied.name.removeprefix("body.").split("."):
        place = place[name]
    assert place == 5
