"""Files: written in two steps, read as JSON, held open on Windows, and what git says has changed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_harness.core import files
from rag_harness.core.errors import SettingsError
from rag_harness.core.files import begin_atomically, begun_file, finish_begun, write_atomically
from rag_harness.core.git import since
from rag_harness.core.json_text import DEEPEST_JSON, is_deep, read_json
from rag_harness.core.process_lock import LockHeldError, process_lock
from rag_harness.runs.journal import remove
from tests.git_repository import Repository, repository

# Files in two steps: what was begun is whole or nothing, whatever happens between them.

CONTENT = b"line\n" * 100


def whole(file: Path) -> bool:
    return file.read_bytes() == CONTENT


def test_a_reader_sees_nothing_until_it_is_in_place(tmp_path: Path) -> None:
    file = tmp_path / "new" / "a.yaml"
    finish = begin_atomically(file, CONTENT)
    assert not file.exists()
    finish()
    assert whole(file)
    assert [each.name for each in file.parent.iterdir()] == ["a.yaml"]


def test_what_a_kill_has_left_is_put_in_place_if_it_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    assert not finish_begun(file, whole)
    begin_atomically(file, CONTENT)
    assert finish_begun(file, whole)
    assert whole(file)


@pytest.mark.parametrize("size", [0, 1, len(CONTENT) - 1])
def test_a_part_is_no_file_and_in_nobodys_way(tmp_path: Path, size: int) -> None:
    file = tmp_path / "a.yaml"
    begun_file(file).write_bytes(CONTENT[:size])
    assert not finish_begun(file, whole)
    assert not file.exists()
    begin_atomically(file, CONTENT)()
    assert whole(file)
    assert not begun_file(file).exists()


def test_several_write_the_same_at_once(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    first, second = begin_atomically(file, CONTENT), begin_atomically(file, CONTENT)
    assert finish_begun(file, whole)  # a third one asks for it
    second()
    first()
    assert whole(file)
    assert [each.name for each in tmp_path.iterdir()] == ["a.yaml"]


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def full(*_: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="no room"):
        begin_atomically(tmp_path / "a.yaml", CONTENT)()
    assert list(tmp_path.iterdir()) == []


# What Windows refuses to do with open files, told by planted refusals: this is no Windows.


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waited: list[float] = []
    monkeypatch.setattr(files, "sleep", waited.append)
    return waited


@pytest.mark.parametrize("refusals", [0, 1, 5])
def test_a_file_that_is_read_meanwhile_is_replaced_a_moment_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: list[float], refusals: int
) -> None:
    left, replace = [None] * refusals, os.replace

    def refusing(made: str, file: Path) -> None:
        if left:
            left.pop()
            raise PermissionError(13, "The process cannot access the file", str(file))
        replace(made, file)

    monkeypatch.setattr("os.replace", refusing)
    write_atomically(tmp_path / "kept.json", b"new")
    assert (tmp_path / "kept.json").read_bytes() == b"new"
    assert waits == [0.01 * 2**n for n in range(refusals)]
    assert len(list(tmp_path.iterdir())) == 1


def test_a_file_that_stays_open_is_an_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: list[float]
) -> None:
    def refusing(made: str, file: Path) -> None:
        raise PermissionError(13, "The process cannot access the file", str(file))

    monkeypatch.setattr("os.replace", refusing)
    with pytest.raises(PermissionError):
        write_atomically(tmp_path / "kept.json", b"new")
    assert not list(tmp_path.iterdir())
    assert sum(waits) < 0.4


def test_another_error_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: list[float]) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path / "folder", b"new")
    assert not waits


def test_a_journal_whose_lock_is_open_is_removed_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, unlink = tmp_path / "run.jsonl", Path.unlink
    for ending in (".jsonl", ".lock"):
        file.with_suffix(ending).touch()

    def refusing(path: Path, missing_ok: bool = False) -> None:
        if path.suffix == ".lock":
            raise PermissionError(13, "The process cannot access the file", str(path))
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", refusing)
    remove(file)
    assert [each.name for each in tmp_path.iterdir()] == ["run.lock"]


def test_a_lock_that_cannot_be_written_to_is_held_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(path: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "another process has locked a portion of the file", str(path))

    monkeypatch.setattr(Path, "write_text", refusing)
    with (
        process_lock(tmp_path / "lock"),
        pytest.raises(LockHeldError, match=r"^another process$"),
        process_lock(tmp_path / "lock"),
    ):
        pytest.fail("held by two")


def test_lines_are_appended_as_they_are() -> None:
    assert files.APPENDING & os.O_APPEND
    assert files.APPENDING & getattr(os, "O_BINARY", 0) == getattr(os, "O_BINARY", 0)


# What git says has changed: of real repositories, with names of all kinds.

UMLAUT = "über uns & more"


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    made = repository(tmp_path / "repo", monkeypatch)
    (made.folder / "kb").mkdir()
    (made.folder / ".gitignore").write_text("*.tmp.md\n")
    made.write(**{f"kb/{name}": f"{name} is here\n" * 9 for name in ("same", "changed", "gone", "old", "-x", UMLAUT)})
    made.commit()
    return made


def test_changed_gone_and_renamed_files_are_named_staged_or_not(repo: Repository) -> None:
    repo.write(**{"kb/changed": "other", f"kb/{UMLAUT}": "other", "kb/-x": "other"})
    (repo.folder / "kb" / "gone.md").unlink()
    repo.git("mv", "kb/old.md", "kb/new\nname.md")
    named = ("changed", UMLAUT, "-x", "gone", "old", "new\nname")
    assert since(repo.folder / "kb", "HEAD").changed() == {f"kb/{name}.md" for name in named}


def test_a_hook_is_told_of_the_folder_and_not_of_where_it_runs(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.write(**{"kb/changed": "other"})
    monkeypatch.setenv("GIT_DIR", ".git")
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/none")
    assert since(repo.folder / "kb", "HEAD").changed() == {"kb/changed.md"}


def test_what_git_does_not_follow_is_named_though_it_is_ignored(repo: Repository) -> None:
    repo.write(**{"kb/new ü": "new", "kb/made.tmp": "ignored", "outside": "new"})
    assert since(repo.folder / "kb", "HEAD").untracked(repo.folder / "kb") == {"kb/new ü.md", "kb/made.tmp.md"}


def test_a_commit_is_what_the_working_tree_is_set_against(repo: Repository) -> None:
    repo.write(**{"kb/changed": "other"})
    repo.commit()
    at = since(repo.folder / "kb", "HEAD~1")
    assert at.changed() == {"kb/changed.md"}
    assert (at.content("kb/changed.md") or b"").startswith(b"changed is here")
    assert at.content("kb/never.md") is None
    assert since(repo.folder / "kb", "HEAD").changed() == frozenset()


def test_a_path_is_told_from_one_outside(repo: Repository, tmp_path: Path) -> None:
    at = since(repo.folder / "kb", "HEAD")
    assert [at.path_of(each) for each in (repo.folder / "kb" / "a.md", repo.folder, tmp_path)] == ["kb/a.md", "", None]


def test_what_is_no_commit_is_named(repo: Repository) -> None:
    for revision in ("nowhere", "HEAD~9", "--all", "--since=yesterday", "", "HEAD...HEAD", "HEAD:kb"):
        with pytest.raises(
            SettingsError, match=r"is not a commit of the repository .* Name a branch, a tag or a commit"
        ):
            since(repo.folder / "kb", revision)


def test_a_shallow_clone_is_told_to_be_fetched_whole(repo: Repository, tmp_path: Path) -> None:
    repo.git("commit", "-q", "--allow-empty", "-m", "second")
    repo.git("clone", "-q", "--depth=1", f"file://{repo.folder}", str(tmp_path / "shallow"))
    with pytest.raises(SettingsError, match="The clone is shallow: fetch it whole"):
        since(tmp_path / "shallow" / "kb", "HEAD~1")


def test_a_folder_outside_of_any_repository(repo: Repository, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    with pytest.raises(SettingsError, match="is in no git repository that can be read"):
        since(outside, "HEAD")
    with pytest.raises(SettingsError, match="No folder"):
        since(repo.folder / "nothing", "HEAD")


def test_a_machine_without_git(repo: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SettingsError, match="there is no program git on the PATH"):
        since(repo.folder, "HEAD")


# Foreign JSON ends in a value or in a ValueError, however deep it is.

VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
)


def depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 1 if inner is None else 1 + max(map(depth, inner), default=0)


@settings(max_examples=50)
@given(VALUES)
def test_what_is_no_deeper_is_as_json_has_it(value: Any) -> None:
    assert read_json(json.dumps(value)) == value
    assert read_json(json.dumps(value).encode()) == value


@settings(max_examples=50)
@given(VALUES, st.integers(1, 6))
def test_depth_is_counted_as_a_function_that_calls_itself_counts_it(value: Any, deepest: int) -> None:
    emptied = 1 if value in ([], {}) else 0
    assert is_deep(value, deepest) == (depth(value) - emptied > deepest) or depth(value) >= deepest


@pytest.mark.parametrize("levels", [DEEPEST_JSON + 1, 900, 100_000])
@pytest.mark.parametrize(("begin", "end"), [("[", "]"), ('{"a":', "}")])
def test_endless_brackets_are_refused(levels: int, begin: str, end: str) -> None:
    for text in (begin * levels + "1" + end * levels, begin * levels):
        with pytest.raises(ValueError, match=r"nested deeper than 100 levels|Expecting value|delimiter"):
            read_json(text)


def test_a_hundred_levels_are_read() -> None:
    assert read_json("[" * (DEEPEST_JSON - 1) + "1" + "]" * (DEEPEST_JSON - 1))
    assert json.loads("[" * 10 + "]" * 10) == read_json("[" * 10 + "]" * 10)
