"""A file with the interactions of an experiment: found by digest, read by vcrpy, torn ones named with the line."""

from __future__ import annotations

import json
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import DataError
from rag_harness.models.recording.cassette_file import (
    ExperimentCassette,
    Recorded,
    cassette_of,
    read_interaction_text,
    write_interaction,
)
from rag_harness.models.recording.cassettes import Cassettes
from rag_harness.models.recording.scrubbing import CleanedRequest, request_digest

ROOT = Path(__file__).parents[4]
SHIPPED = ROOT / "cassettes" / "embedded"
URL = "http://127.0.0.1:9/v1/chat/completions"
SAID = [
    "data: {}\n\ndata: [DONE]\n\n",
    '{"a": 1}',
    "no newline",
    "ends\n",
    "three\n\n\n",
    " begins with a blank",
    "x\x85y",
]


def asked(cassettes: Cassettes, number: int) -> CleanedRequest:
    body = {"model": "m", "messages": [{"role": "user", "content": f"question {number}\n\n- request:\n  metadata:"}]}
    return cassettes.asked("POST", URL, json.dumps(body).encode())


def answer(number: int) -> Recorded:
    kind, ttft = ("text/event-stream", 2.5) if number % 2 else ("text/plain", None)
    times = (12.25, ttft)
    return Recorded(200, kind, SAID[number].encode(), *times, recorded_at="2026-11-20T14:02:00+00:00", version="r'2")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two files of experiments."""
    cassettes = Cassettes(tmp_path)
    texts = {asked(cassettes, n).digest: write_interaction(asked(cassettes, n), answer(n)).decode() for n in range(7)}
    entries = [*texts.items()]
    (tmp_path / "e1.yaml").write_text(cassette_of(dict(entries[:3])), encoding="utf-8")
    (tmp_path / "e2.yaml").write_text(cassette_of(dict(entries[3:])), encoding="utf-8")
    return tmp_path


def test_each_interaction_comes_back_as_it_was(folder: Path) -> None:
    cassettes = Cassettes(folder)
    for number in range(7):
        found, alone = cassettes.load(asked(cassettes, number)), answer(number)
        assert found is not None
        assert replace(found, sent="", url="") == alone
        assert found.request == asked(cassettes, number).body
        assert cassettes.has(asked(cassettes, number))
    assert cassettes.used == {folder / "e1.yaml", folder / "e2.yaml"}
    assert cassettes.load(asked(cassettes, 8)) is None
    assert not cassettes.has(asked(cassettes, 8))
    assert cassettes.unused() == []


def test_what_is_recorded_again_lies_beside_and_counts(folder: Path) -> None:
    cassettes = Cassettes(folder)
    before = (folder / "e1.yaml").read_bytes()
    cassettes.save(asked(cassettes, 0), replace(answer(0), body=b"new"))
    for each in (cassettes, Cassettes(folder)):
        found = each.load(asked(cassettes, 0))
        assert found is not None
        assert found.body == b"new"
    assert (folder / "e1.yaml").read_bytes() == before


def test_a_miss_names_the_nearest_of_an_experiment(folder: Path) -> None:
    cassettes = Cassettes(folder)
    said = cassettes.nearest(cassettes.asked("POST", URL, json.dumps({**asked(cassettes, 1).body, "seed": 3}).encode()))
    assert said.startswith("The nearest recording, e1.yaml:39, differs in ")


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 0.9, 0.99])
def test_of_a_torn_file_the_whole_ones_are_read_and_the_line_is_named(folder: Path, share: float) -> None:
    file = folder / "e2.yaml"
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * share)])
    cassettes, damaged, said = Cassettes(folder), 0, ""
    for number in range(7):
        try:
            found = cassettes.load(asked(cassettes, number))
            assert found is not None
            assert found.body == answer(number).body
        except DataError as error:
            damaged += 1
            said = str(error)
    assert 0 < damaged <= 4
    line = int(said.partition(f"{file}, line ")[2].split(":")[0])
    assert line == 1 or content.decode().splitlines()[line - 1] == "- request:"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("    digest: ", "    digets: ", "line 3: the recording that begins there is not whole"),
        ("    total_ms: 12.25\n", "    total_ms: fast\n", "line 3 cannot be read: "),
        ("      code: 200\n", "      code: [\n", "line 3 cannot be read: "),
        (
            "    rag_harness: 1\n",
            "    rag_harness: 9\n",
            r"line 3 cannot be read: it was made by a newer release \(schema 9",
        ),
    ],
)
def test_an_edited_file_is_named_with_the_line(folder: Path, old: str, new: str, said: str) -> None:
    file = folder / "e1.yaml"
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    cassettes = Cassettes(folder)
    with pytest.raises(DataError, match=f"e1.yaml, {said}"):
        cassettes.load(asked(cassettes, 0))
    found = cassettes.load(asked(cassettes, 5))
    assert found is not None
    assert found.body == answer(5).body


def test_a_file_that_begins_otherwise_is_named_where_something_is_missing(folder: Path) -> None:
    file = folder / "e1.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("version: 1", "version: 2"), encoding="utf-8")
    cassettes = Cassettes(folder)
    assert cassettes.load(asked(cassettes, 0)) is not None
    with pytest.raises(DataError, match=r"e1\.yaml, line 1: it does not begin as a recording of this tool"):
        cassettes.load(asked(cassettes, 9))


def test_a_file_that_is_no_text_is_named(folder: Path) -> None:
    (folder / "e1.yaml").write_bytes(b"\xff\xfe")
    cassettes = Cassettes(folder)
    with pytest.raises(DataError, match=r"e1\.yaml cannot be read: "):
        cassettes.load(asked(cassettes, 0))


def test_yaml_reads_the_same(folder: Path) -> None:
    import yaml

    for name, numbers in (("e1", range(3)), ("e2", range(3, 7))):
        found = yaml.safe_load((folder / f"{name}.yaml").read_text(encoding="utf-8"))["interactions"]
        assert [each["response"]["body"]["string"] for each in found] == [SAID[number] for number in numbers]


def test_a_form_of_others_is_not_packed(folder: Path) -> None:
    with pytest.raises(ValueError, match="d1 is in a form that cannot be packed"):
        cassette_of({"d1": "interactions: []\n"})


@pytest.mark.parametrize("experiment", ["e1", "e2", "e3", "e4"])
def test_plain_vcrpy_replays_what_ships(experiment: str) -> None:
    """By method, path and body, as a test of somebody without this package would."""
    vcr = pytest.importorskip("vcr")
    cassette = ExperimentCassette(SHIPPED / f"{experiment}.yaml")
    chosen = [cassette.read(digest) for digest in cassette.digests[::67]]
    matched = ("method", "path", "body")
    with vcr.use_cassette(str(cassette.file), record_mode="none", match_on=matched) as played:
        for each in reversed(chosen):
            body = json.dumps(each.request, separators=(",", ":")).encode()
            call = urllib.request.Request(URL, body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(call, timeout=5) as response:
                assert response.read() == each.body
        assert played.play_count == len(chosen) == 3


def test_what_ships_is_whole_and_found_by_its_request() -> None:
    for file in SHIPPED.glob("*.yaml"):
        cassette = ExperimentCassette(file)
        assert cassette.fault == ""
        for digest in cassette.digests[::9]:
            found = cassette.read(digest)
            assert digest == request_digest("POST", "/v1/chat/completions", found.request)


def test_nothing_that_ships_needs_yaml(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing it takes a third of a second."""

    def refused(text: str) -> Any:
        raise AssertionError(text[:300])

    monkeypatch.setattr("rag_harness.models.recording.cassette_file._as_yaml", refused)
    for file in SHIPPED.glob("*.yaml"):
        cassette = ExperimentCassette(file)
        assert all(cassette.read(digest).status == 200 for digest in cassette.digests)


def test_a_text_of_one_interaction_is_read_as_its_file_is() -> None:
    cassettes = Cassettes(Path("nowhere"))
    text = write_interaction(asked(cassettes, 1), answer(1)).decode()
    assert read_interaction_text(text).body == answer(1).body
