"""What git says has changed: of real repositories, with names of all kinds."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_harness.core.errors import SettingsError
from rag_harness.core.git import since
from tests.git_repository import Repository, repository

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
        with pytest.raises(SettingsError, match=r"is no commit of the repository .* Name a branch, a tag or a commit"):
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
