"""Recordings: asked and found in a file for an experiment, and torn ones named with the line."""

from __future__ import annotations

import errno
import json
import os
import urllib.request
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_harness.core.concurrency import IMPORTING
from rag_harness.core.errors import CriticalError, DataError, RecordingWriteError
from rag_harness.models.recording.cassette_file import (
    ExperimentCassette,
    Recorded,
    cassette_of,
    read_interaction,
    read_interaction_text,
    write_interaction,
)
from rag_harness.models.recording.cassettes import Cassettes
from rag_harness.models.recording.playback import Playback
from rag_harness.models.recording.scrubbing import CleanedRequest, abridged, request_digest

SHIPPED = Path(__file__).parents[4] / "cassettes" / "embedded"
URL = "http://host.test/v1/chat/completions"
BODY: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Question: why?"}], "temperature": 0.0}


def ask(cassettes: Cassettes, body: Any = None, url: str = URL) -> CleanedRequest:
    return cassettes.asked("POST", url, json.dumps(BODY if body is None else body).encode())


def answer(body: bytes = b'{"a":\n1}', kind: str = "application/json") -> Recorded:
    return Recorded(200, kind, body, 12.5, 3.25)


def files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())


def test_round_trip(tmp_path: Path) -> None:
    cassettes = Cassettes(tmp_path)
    asked = ask(cassettes)
    assert cassettes.load(asked) is None
    cassettes.save(asked, answer())
    found = Cassettes(tmp_path).load(asked)
    assert found is not None
    assert (found.status, found.body, found.total_ms, found.ttft_ms) == (200, b'{"a":\n1}', 12.5, 3.25)
    assert found.request == BODY


@settings(max_examples=30)
@given(st.binary(max_size=40) | st.text(max_size=40).map(str.encode), st.sampled_from(["", "text/plain", "image/png"]))
def test_any_answer_round_trips(tmp_path_factory: pytest.TempPathFactory, body: bytes, kind: str) -> None:
    cassettes = Cassettes(tmp_path_factory.mktemp("c"))
    cassettes.save(ask(cassettes), answer(body, kind))
    found = cassettes.load(ask(cassettes))
    assert found is not None
    assert (found.body, found.content_type) == (body, kind)


def _request(file: Path) -> dict[str, Any]:
    import yaml

    body = yaml.safe_load(file.read_text(encoding="utf-8"))["interactions"][0]["request"]["body"]
    found: dict[str, Any] = json.loads(body)
    return found


LONG = "\n\n".join(f"[Source {n}: page.md] {letter * 300}" for n, letter in ((1, "a"), (2, "b")))


def test_an_abridged_recording_answers_the_whole_request_alone(tmp_path: Path) -> None:
    cassettes = Cassettes(tmp_path, abridges=True)
    body = {**BODY, "messages": [{"role": "user", "content": f"{LONG}\n\nQuestion: Why?"}]}
    cassettes.save(ask(cassettes, body), answer())
    (file,) = files(tmp_path)
    kept = file.read_text(encoding="utf-8")
    assert "Question: Why?" in kept
    assert "a" * 80 in kept
    assert "a" * 101 not in kept
    found = Cassettes(tmp_path).load(ask(cassettes, body))
    assert found is not None
    assert found.body == answer().body
    other = {**BODY, "messages": [{"role": "user", "content": f"{LONG[:-1]}c\n\nQuestion: Why?"}]}
    missed = ask(Cassettes(tmp_path), other)
    assert cassettes.load(missed) is None
    assert cassettes.nearest(missed).endswith("differs in the text of [Source 2].")


def test_a_source_with_a_long_address_is_named_where_its_text_differs(tmp_path: Path) -> None:
    label = f"[Source 1: module-1/chapter-2.md | Section: {'Nodes > ' * 12}Topics | Relevance: 0.51]"
    cassettes = Cassettes(tmp_path, abridges=True)
    bodies = [
        {**BODY, "messages": [{"role": "user", "content": f"{label} {letter * 300}\n\nQuestion: Why?"}]}
        for letter in "ab"
    ]
    cassettes.save(ask(cassettes, bodies[0]), answer())
    assert cassettes.nearest(ask(cassettes, bodies[1])).endswith("differs in the text of [Source 1].")


@settings(max_examples=40)
@given(st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_abridging_twice_is_abridging_once(value: Any) -> None:
    assert abridged(abridged(value)) == abridged(value)


@settings(max_examples=50)
@given(st.lists(st.text("ab", min_size=190, max_size=230), min_size=2, max_size=4))
def test_abridged_texts_are_equal_where_the_texts_are(paragraphs: list[str]) -> None:
    text, turned = "\n\n".join(paragraphs), "\n\n".join(reversed(paragraphs))
    assert (abridged(text) == abridged(turned)) == (text == turned)
    assert max(map(len, abridged(text).split("\n\n"))) <= 200


def test_order_of_keys_and_spelling_of_numbers_do_not_matter(tmp_path: Path) -> None:
    cassettes = Cassettes(tmp_path)
    same = cassettes.asked("POST", URL, b'{"temperature": 0, "messages": %s, "model": "m"}' % _messages())
    other = cassettes.asked("POST", URL, b'{"temperature": 1, "messages": %s, "model": "m"}' % _messages())
    assert ask(cassettes).digest == same.digest != other.digest


def _messages() -> bytes:
    return json.dumps(BODY["messages"]).encode()


def test_every_cut_is_seen(tmp_path: Path) -> None:
    cassettes = Cassettes(tmp_path)
    asked = ask(cassettes)
    cassettes.save(asked, answer(b"data: {}\n\ndata: [DONE]\n\n", "text/event-stream"))
    whole = (file := cassettes.file(asked)).read_bytes()
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        with pytest.raises(DataError, match=r"cannot be read: .*Delete it and record it again"):
            cassettes.load(asked)
    file.write_bytes(whole)
    assert cassettes.load(asked) is not None


def test_newer_schema_is_named(tmp_path: Path) -> None:
    cassettes = Cassettes(tmp_path)
    cassettes.save(ask(cassettes), answer())
    (file,) = files(tmp_path)
    file.write_text(file.read_text().replace("rag_harness: 1", "rag_harness: 2"))
    with pytest.raises(DataError, match=r"\.yaml cannot be read: it was made by a newer release \(schema 2\)"):
        cassettes.load(ask(cassettes))


@pytest.mark.parametrize(
    "text",
    [
        "version: 1\ninteractions: " + "[" * 100_000,
        "version: 1\ninteractions:\n" + "- " * 100_000 + "x\n",
        "{a: " * 100_000,
    ],
    ids=["lists", "blocks", "mappings"],
)
def test_a_recording_of_endless_brackets_is_damaged_and_ends_no_process(tmp_path: Path, text: str) -> None:
    file = tmp_path / "deep.yaml"
    file.write_text(text)
    with pytest.raises(DataError, match=r"deep\.yaml cannot be read: it is nested deeper than 20 levels\. Delete it"):
        read_interaction(file)


def test_a_recording_of_a_gigabyte_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "huge.yaml"
    with file.open("wb") as stream:
        stream.truncate(2**30)
    with pytest.raises(DataError, match=r"it has 1024 MB, and no recording has more than 128"):
        read_interaction(file)


def test_a_body_that_is_no_text_is_damage(tmp_path: Path) -> None:
    cassettes = Cassettes(tmp_path)
    cassettes.save(ask(cassettes), answer())
    (file,) = files(tmp_path)
    lines = file.read_text().splitlines(keepends=True)
    begin, end = (next(n for n, line in enumerate(lines) if each in line) for each in ("string:", "metadata:"))
    lines[begin:end] = ["      string: [[a], [b]]\n"]
    file.write_text("".join(lines))
    with pytest.raises(DataError, match="a body is not text"):
        read_interaction(file)


def test_a_hundred_misses_read_each_recording_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cassettes = Cassettes(tmp_path)
    for number in range(5):
        cassettes.save(ask(cassettes, {**BODY, "messages": [{"content": f"Question: {number}\nSay why."}]}), answer())
    opened: list[Path] = []
    parsed: list[Any] = []

    def noted(file: Path) -> Recorded:
        opened.append(file)
        return read_interaction(file)

    def read(text: Any) -> Any:
        parsed.append(text)
        return json.loads(text)

    monkeypatch.setattr("rag_harness.models.recording.cassettes.read_interaction", noted)
    monkeypatch.setattr("rag_harness.models.recording.cassette_file.read_json", read)
    for number in range(100):
        missed = ask(cassettes, {**BODY, "messages": [{"content": f"Question: {number % 5}\nSay why and when."}]})
        assert "differs in the question" in cassettes.nearest(missed)
    assert sorted(opened) == files(tmp_path)
    assert len(parsed) == 5 + 100  # all of them once, and for each miss the one that is named


def test_a_damaged_neighbour_is_no_ones_miss(tmp_path: Path) -> None:
    cassettes = Cassettes(tmp_path)
    cassettes.save(ask(cassettes), answer())
    (tmp_path / "m" / "broken.yaml").write_text("version: 1\ninter")
    assert "differs in temperature (0.0 recorded)" in cassettes.nearest(ask(cassettes, {**BODY, "temperature": 1.0}))


@pytest.mark.parametrize(
    "model",
    ["../../x", "..", ".", "", "/etc/passwd", "a" * 300, "é" * 200, ".hidden", "vectors", "own", "a\0b", "\ud83d"],
)
def test_hostile_model_names_stay_in_the_folder(tmp_path: Path, model: str) -> None:
    folder = tmp_path / "cassettes" / "p"
    cassettes = Cassettes(folder)
    asked = ask(cassettes, {**BODY, "model": model})
    cassettes.save(asked, answer())
    (file,) = files(tmp_path)
    assert file.parent.parent == folder
    assert file.parent.name not in ("vectors", "pairs", "tokens", "chunks", "own")
    assert not file.parent.name.startswith(".")
    assert cassettes.load(asked) is not None
    assert Cassettes(folder).unused() == [file]


def test_a_slash_in_a_model_name(tmp_path: Path) -> None:
    cassettes = Cassettes(tmp_path)
    assert (
        cassettes.file(ask(cassettes, {**BODY, "model": "x-ai/grok-beta:free"})).parent.name == "x-ai--grok-beta--free"
    )
    names = {cassettes.file(ask(cassettes, {**BODY, "model": name})).parent for name in ("..", ".", "", "...")}
    assert len(names) == 4


def test_half_a_character_in_a_prompt(tmp_path: Path) -> None:
    cassettes = Cassettes(tmp_path)
    body = {**BODY, "messages": [{"role": "user", "content": "half \ud83d of it"}]}
    cassettes.save(ask(cassettes, body), answer(b'{"text": "\\ud83d"}'))
    found = Cassettes(tmp_path).load(ask(cassettes, body))
    assert found is not None
    assert found.request == body
    assert json.loads(found.body)["text"] == "\ud83d"
    other = {**BODY, "messages": [{"role": "user", "content": "half ? of it"}]}
    assert cassettes.load(ask(cassettes, other)) is None


def test_used_and_unused(tmp_path: Path) -> None:
    cassettes = Cassettes(tmp_path)
    for seed in range(3):
        cassettes.save(ask(cassettes, {**BODY, "seed": seed}), answer())
    (tmp_path / "vectors" / "m").mkdir(parents=True)
    (tmp_path / "vectors" / "x.yaml").write_text("not a recording")
    assert (len(cassettes.used), len(cassettes.made), cassettes.unused()) == (3, 3, [])
    later = Cassettes(tmp_path)
    later.load(ask(later, {**BODY, "seed": 1}))
    later.load(ask(later, {**BODY, "seed": 9}))
    assert later.used == {later.file(ask(later, {**BODY, "seed": 1}))}
    assert set(later.unused()) == cassettes.made - later.used
    assert not later.made


def test_has_asks_for_the_cleaned_request(tmp_path: Path) -> None:
    cassettes = Cassettes(tmp_path, scrub=lambda text: text.replace("why", "X"))
    assert not cassettes.has(ask(cassettes))
    cassettes.save(ask(cassettes), answer())
    assert cassettes.has(ask(cassettes))
    assert not cassettes.has(cassettes.asked("POST", "/v1/embeddings", json.dumps(BODY).encode()))
    (file,) = files(tmp_path)
    assert file.stem == request_digest("POST", "/v1/chat/completions", _request(file))
    assert "why" not in file.read_text()


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_disk_full_stops_the_run_and_leaves_what_was_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    cassettes = Cassettes(tmp_path)
    playback = Playback(cassettes, may_call=True, keep=True)
    playback.save(ask(cassettes), answer())
    before = {file: file.read_bytes() for file in files(tmp_path)}
    new = ask(cassettes, {**BODY, "seed": 1})

    def full(*args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, step, full)
        with pytest.raises(RecordingWriteError, match=r"cannot be kept: .*No space left on device.*--rag-project"):
            playback.save(new, answer())
    assert issubclass(RecordingWriteError, CriticalError)
    assert {file: file.read_bytes() for file in files(tmp_path)} == before
    with pytest.raises(RecordingWriteError):
        playback.allow(new)  # an SDK that tries again would pay again


def test_a_folder_that_cannot_be_written_is_named_before_any_call(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    cassettes = Cassettes(tmp_path / "taken" / "p")
    with pytest.raises(DataError, match=r"which cannot be written: .*Nothing was called\. Name another folder"):
        Playback(cassettes, may_call=True, keep=True)
    Playback(cassettes, may_call=False, keep=False)


def test_a_read_only_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    def refuse(**options: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    with pytest.raises(DataError, match="Permission denied"):
        Playback(Cassettes(tmp_path), may_call=True, keep=True)


def test_checking_leaves_no_file(tmp_path: Path) -> None:
    Playback(Cassettes(tmp_path / "new"), may_call=True, keep=True)
    assert files(tmp_path) == []


def test_nearest_of_a_request_without_a_model(tmp_path: Path) -> None:
    cassettes = Cassettes(tmp_path)
    for page in ("a", "b"):
        cassettes.save(cassettes.asked("GET", f"https://host.test/pages/{page}?lang=en", b""), answer())
    said = cassettes.nearest(cassettes.asked("GET", "https://host.test/pages/a?lang=de", b""))
    assert said.endswith("differs in the query string ('lang=en' recorded).")
    assert cassettes.nearest(cassettes.asked("GET", "https://other.test/", b"")).startswith("Nothing of other.test is ")


def test_parts_of_a_form_have_another_border_each_time(tmp_path: Path) -> None:
    def form(border: str, text: str) -> CleanedRequest:
        body = f'--{border}\r\ncontent-disposition: form-data; name="a"\r\n\r\n{text}\r\n--{border}--\r\n'
        kind = {"content-type": f"multipart/form-data; boundary={border}"}
        return Cassettes(tmp_path).asked("POST", "https://host.test/upload", body.encode(), kind)

    assert form("abc123", "x") == form("def456", "x")
    assert form("abc123", "x").digest != form("abc123", "y").digest


@pytest.mark.parametrize(
    ("method", "url", "content", "kind"),
    [
        ("GET", "https://host.test/a?q=1&api_key={}", b"", ""),
        ("GET", "https://host.test/a?q=1&key={}&sig={}&access_token={}&token={}", b"", ""),
        ("GET", "https://me:{}@host.test/a?q=1", b"", ""),
        ("POST", "https://host.test/a?q=1", b"client_secret={}&b=1", "application/x-www-form-urlencoded"),
        ("POST", "https://host.test/a?q=1", b'{{"api_key": "{}", "b": 1}}', "application/json"),
    ],
)
def test_keys_decide_no_name_and_reach_no_file(
    tmp_path: Path, method: str, url: str, content: bytes, kind: str
) -> None:
    def asked(key: str) -> CleanedRequest:
        filled = [each.replace("{}", key).replace("{{", "{").replace("}}", "}") for each in (url, content.decode())]
        return cassettes.asked(method, filled[0], filled[1].encode(), {"content-type": kind} if kind else {})

    cassettes = Cassettes(tmp_path)
    cassettes.save(asked("planted-key-01"), answer(b'{"echo": "planted-key-01"}' if "?q=1&" in url else b"{}"))
    (file,) = files(tmp_path)
    assert "planted-key-01" not in file.read_text()
    assert "q=1" in file.read_text()
    assert cassettes.load(asked("another-key-2")) is not None


def test_who_imports_vcrpy_waits_for_other_large_imports(tmp_path: Path) -> None:
    cassettes = Cassettes(tmp_path)
    # What is not text cannot be written without vcrpy.
    saving = Thread(target=lambda: cassettes.save(ask(cassettes), answer(b"\xff", "image/png")))
    with IMPORTING:
        saving.start()
        saving.join(0.2)
        assert saving.is_alive()
    saving.join(20)
    assert files(tmp_path)


def test_an_answer_is_safe_from_kills_before_it_is_in_its_place(tmp_path: Path) -> None:
    killed = Cassettes(tmp_path)
    killed.begin(ask(killed), answer())
    assert list(tmp_path.rglob("*.yaml")) == []
    assert Cassettes(tmp_path).has(ask(killed))
    found = Cassettes(tmp_path).load(ask(killed))
    assert found is not None
    assert found.body == answer().body


def test_half_an_answer_counts_as_none(tmp_path: Path) -> None:
    cassettes = Cassettes(tmp_path)
    cassettes.begin(ask(cassettes), answer())
    (begun,) = files(tmp_path)
    begun.write_bytes(begun.read_bytes()[:-9])
    assert cassettes.load(ask(cassettes)) is None
    cassettes.save(ask(cassettes), answer())
    assert cassettes.load(ask(cassettes)) is not None
    assert [file.suffix for file in files(tmp_path)] == [".yaml"]


# A file with the interactions of an experiment: found by digest, read by vcrpy, torn ones named with the line.

ROOT = Path(__file__).parents[4]
EXPERIMENT_CASSETTE_SHIPPED = ROOT / "cassettes" / "embedded"
EXPERIMENT_CASSETTE_URL = "http://127.0.0.1:9/v1/chat/completions"
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
    return cassettes.asked("POST", EXPERIMENT_CASSETTE_URL, json.dumps(body).encode())


def experiment_cassette_answer(number: int) -> Recorded:
    kind, ttft = ("text/event-stream", 2.5) if number % 2 else ("text/plain", None)
    times = (12.25, ttft)
    return Recorded(200, kind, SAID[number].encode(), *times, recorded_at="2026-11-20T14:02:00+00:00", version="r'2")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two files of experiments."""
    cassettes = Cassettes(tmp_path)
    texts = {
        asked(cassettes, n).digest: write_interaction(asked(cassettes, n), experiment_cassette_answer(n)).decode()
        for n in range(7)
    }
    entries = [*texts.items()]
    (tmp_path / "e1.yaml").write_text(cassette_of(dict(entries[:3])), encoding="utf-8")
    (tmp_path / "e2.yaml").write_text(cassette_of(dict(entries[3:])), encoding="utf-8")
    return tmp_path


def test_each_interaction_comes_back_as_it_was(folder: Path) -> None:
    cassettes = Cassettes(folder)
    for number in range(7):
        found, alone = cassettes.load(asked(cassettes, number)), experiment_cassette_answer(number)
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
    cassettes.save(asked(cassettes, 0), replace(experiment_cassette_answer(0), body=b"new"))
    for each in (cassettes, Cassettes(folder)):
        found = each.load(asked(cassettes, 0))
        assert found is not None
        assert found.body == b"new"
    assert (folder / "e1.yaml").read_bytes() == before


def test_a_miss_names_the_nearest_of_an_experiment(folder: Path) -> None:
    cassettes = Cassettes(folder)
    said = cassettes.nearest(
        cassettes.asked("POST", EXPERIMENT_CASSETTE_URL, json.dumps({**asked(cassettes, 1).body, "seed": 3}).encode())
    )
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
            assert found.body == experiment_cassette_answer(number).body
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
    assert found.body == experiment_cassette_answer(5).body


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
    cassette = ExperimentCassette(EXPERIMENT_CASSETTE_SHIPPED / f"{experiment}.yaml")
    chosen = [cassette.read(digest) for digest in cassette.digests[::67]]
    matched = ("method", "path", "body")
    with vcr.use_cassette(str(cassette.file), record_mode="none", match_on=matched) as played:
        for each in reversed(chosen):
            body = json.dumps(each.request, separators=(",", ":")).encode()
            call = urllib.request.Request(EXPERIMENT_CASSETTE_URL, body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(call, timeout=5) as response:
                assert response.read() == each.body
        assert played.play_count == len(chosen) == 3


def test_what_ships_is_whole_and_found_by_its_request() -> None:
    for file in EXPERIMENT_CASSETTE_SHIPPED.glob("*.yaml"):
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
    for file in EXPERIMENT_CASSETTE_SHIPPED.glob("*.yaml"):
        cassette = ExperimentCassette(file)
        assert all(cassette.read(digest).status == 200 for digest in cassette.digests)


def test_a_text_of_one_interaction_is_read_as_its_file_is() -> None:
    cassettes = Cassettes(Path("nowhere"))
    text = write_interaction(asked(cassettes, 1), experiment_cassette_answer(1)).decode()
    assert read_interaction_text(text).body == experiment_cassette_answer(1).body
