"""What a file of somebody else names is read from its own folder, whatever names it and however it leads elsewhere."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.unit.authoring.importing.conftest import Importing

CANARY = "private-canary"
CARD = "---\nconfigs:\n- config_name: default\n  data_files:\n  - {split: test, path: %s}\n---\n"
QUESTION = "- vars: {question: Why?}\n"
PLACES = {
    "default": "defaultTest: NAMED\ntests:\n" + QUESTION,
    "tests": "tests: NAMED\n",
    "listed tests": "tests:\n- NAMED\n" + QUESTION,
    "path of tests": "tests:\n- {path: 'NAMED'}\n" + QUESTION,
    "scenario": "scenarios:\n- config: NAMED\n  tests:\n  - vars: {question: Why?}\n",
    "variables": "tests:\n- vars: NAMED\n" + QUESTION,
    "listed variables": "tests:\n- vars: [NAMED]\n" + QUESTION,
    "variable": "tests:\n- vars: {question: Why?, order: NAMED}\n",
    "assertion": "tests:\n- vars: {question: Why?}\n  assert: [{type: is-json, value: NAMED}]\n",
    "assertion list": "tests:\n- vars: {question: Why?}\n  assert: [{type: icontains-any, value: [NAMED]}]\n",
}
"""Each place of a config of promptfoo that may name a file."""
TEXTS = ("variable", "assertion", "assertion list")
FILE = "file://"


@pytest.fixture
def outside(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder beside that of the config, and in that one what leads there."""
    folder = tmp_path_factory.mktemp("outside")
    said = {"question": CANARY, "vars": {"question": CANARY, "private": CANARY}, "metadata": {"k": CANARY}}
    (folder / "secret.json").write_text(json.dumps(said))
    beside = tmp_path / "set"
    beside.mkdir()
    (beside / "link.json").symlink_to(folder / "secret.json")
    (beside / "linked").symlink_to(folder)
    (beside / "circle.json").symlink_to("circle.json")
    (beside / "device.json").symlink_to("/dev/zero")
    os.mkfifo(beside / "pipe.json")
    return folder


NAMES = [
    "file://OUTSIDE/secret.json", "OUTSIDE/secret.json", "file://../../BESIDE/secret.json", "file://./../../BESIDE/secret.json",
    "file://linked/../BESIDE/secret.json", "file://link.json", "file://linked/secret.json", "file://circle.json",
    "file://device.json", "file://pipe.json", "file:///dev/zero.json", "file://..\\\\..\\\\BESIDE\\\\secret.json",
]  # fmt: skip


@pytest.mark.parametrize(
    ("place", "name"),
    # A variable or a value that does not begin with file:// is a text.
    [(place, name) for place in PLACES for name in NAMES if FILE in name or place not in TEXTS],
)
def test_a_config_reads_nothing_outside_of_its_folder(
    importing: Importing, outside: Path, place: str, name: str
) -> None:
    named = name.replace("OUTSIDE", str(outside)).replace("BESIDE", outside.name)
    found = importing("set/c.yaml", PLACES[place].replace("NAMED", json.dumps(named).strip('"')), "--from", "promptfoo")
    assert CANARY not in json.dumps(found.lines) + found.said
    assert found.status, found.said  # nothing is left out in silence
    assert Path(named.replace("\\", "/")).name.removeprefix("..") in found.said


@pytest.mark.parametrize("pattern", ["linked/*.json", "../../outside*/secret.json", "*.json", "/*/secret.json"])
def test_no_pattern_leads_out_of_the_folder(importing: Importing, outside: Path, pattern: str) -> None:
    found = importing("set/c.yaml", f"tests: file://{pattern}\n", "--from", "promptfoo")
    assert CANARY not in json.dumps(found.lines) + found.said
    assert found.status == 2


@pytest.mark.parametrize(
    "path",
    ["../../BESIDE/secret.json", "OUTSIDE/secret.json", "link.json", "linked/*.json", "pipe.json", "hf://a/b.json"],
)
def test_a_data_set_reads_nothing_outside_of_its_folder(importing: Importing, outside: Path, path: str) -> None:
    named = path.replace("OUTSIDE", str(outside)).replace("BESIDE", outside.name)
    found = importing("set/README.md", CARD % named, "--from", "hf", kb=False)
    found = importing("set", None, "--from", "hf")
    assert CANARY not in json.dumps(found.lines) + found.said
    assert found.status == 2
    assert named.replace("*", "secret") in found.said or named in found.said


def test_a_data_set_without_a_card_is_not_led_out_by_links(importing: Importing, outside: Path) -> None:
    found = importing("set", None, "--from", "hf")
    assert found.status == 2
    assert CANARY not in found.said
    assert "Name one of its files: none that is read" in found.said


def test_a_snapshot_of_the_hub_has_links_to_its_own_blobs(importing: Importing, tmp_path: Path) -> None:
    blobs, snapshot = tmp_path / "repo" / "blobs", tmp_path / "repo" / "snapshots" / "abc"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    (blobs / "1f").write_text('{"question": "Why?", "answer": "So."}\n')
    (snapshot / "q.jsonl").symlink_to("../../blobs/1f")
    (snapshot / "README.md").write_text(CARD % "q.jsonl")
    assert [line["query"] for line in importing("repo/snapshots/abc", None, "--from", "hf").lines] == ["Why?"]


def test_a_link_within_the_folder_is_followed(importing: Importing, outside: Path, tmp_path: Path) -> None:
    (tmp_path / "set" / "deep").mkdir()
    (tmp_path / "set" / "deep" / "tests.yaml").write_text(QUESTION)
    (tmp_path / "set" / "near.yaml").symlink_to("deep/tests.yaml")
    found = importing("set/c.yaml", "tests: file://near.yaml\n", "--from", "promptfoo")
    assert [line["query"] for line in found.lines] == ["Why?"]
