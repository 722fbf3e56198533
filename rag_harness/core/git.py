"""Changes in a git repository since a revision."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from rag_harness.core.errors import SettingsError

_SECONDS = 60
_OF_CALLER = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")
"""Variables that git sets for its hooks. They name the hook's repository; here the repository of a folder is meant."""


@dataclass(frozen=True, slots=True)
class Since:
    """A repository and a commit of it. Paths are relative to ``top``, with ``/``."""

    top: Path
    commit: str

    def changed(self) -> frozenset[str]:
        """Return the tracked files that differ from the commit, also deleted ones. A renamed file counts as two."""
        return _paths(_git(self.top, "diff", "--name-only", "-z", "--no-renames", self.commit, "--"))

    def untracked(self, folder: Path) -> frozenset[str]:
        """Return the untracked files below a folder, also ignored ones."""
        return _paths(_git(self.top, "--literal-pathspecs", "ls-files", "--others", "-z", "--", str(folder.resolve())))

    def path_of(self, file: Path) -> str | None:
        """Return the path of a file or folder in the repository; None where it is outside, "" for ``top`` itself."""
        try:
            below = file.resolve().relative_to(self.top).as_posix()
        except ValueError:
            return None
        return "" if below == "." else below

    def content(self, path: str) -> bytes | None:
        """Return the content of a file at the commit, or None where the commit lacks the file."""
        done = _ask(self.top, "cat-file", "blob", f"{self.commit}:{path}")
        return done.stdout if done.returncode == 0 else None


def since(folder: Path, revision: str) -> Since:
    """Return the repository that contains a folder, at a revision: a branch, a tag, a commit.

    Raises:
        SettingsError: git, the repository or the revision is missing. The message has the remedy.
    """
    if not folder.is_dir():
        raise SettingsError(f"No folder {folder}, so git cannot say what has changed in it.")
    top = _ask(folder, "rev-parse", "--show-toplevel")
    if top.returncode:
        raise SettingsError(
            f"{folder} is in no git repository that can be read ({_said(top)}), so what has changed since {revision!r} "
            f"cannot be told. Leave --rag-affected-by out."
        )
    root = Path(os.fsdecode(top.stdout.removesuffix(b"\n")))
    return Since(root, _commit(root, revision))


def _commit(top: Path, revision: str) -> str:
    # The suffix keeps git from reading a revision that begins with ``-`` as an option.
    found = _ask(top, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    if found.returncode == 0 and revision:
        return found.stdout.decode().strip()
    shallow = _ask(top, "rev-parse", "--is-shallow-repository").stdout.strip() == b"true"
    remedy = (
        "The clone is shallow: fetch it whole (fetch-depth: 0 of actions/checkout, or git fetch --unshallow)."
        if shallow
        else "Name a branch, a tag or a commit that git log shows; of a remote branch, fetch it first."
    )
    raise SettingsError(f"{revision!r} is not a commit of the repository {top}. {remedy}")


def _git(folder: Path, *asked: str) -> bytes:
    done = _ask(folder, *asked)
    if done.returncode:
        raise SettingsError(f"git {asked[0]} failed in {folder}: {_said(done)}. Leave --rag-affected-by out.")
    return done.stdout


def _ask(folder: Path, *asked: str) -> subprocess.CompletedProcess[bytes]:
    kept = {name: value for name, value in os.environ.items() if name not in _OF_CALLER}
    quiet = {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        return subprocess.run(
            ["git", *asked], cwd=folder, env={**kept, **quiet}, capture_output=True, timeout=_SECONDS, check=False
        )
    except OSError as error:
        raise SettingsError(
            f"--rag-affected-by asks git what has changed, and there is no program git on the PATH that can be run "
            f"({error.strerror}). Install it, or leave the option out."
        ) from None
    except subprocess.TimeoutExpired:
        raise SettingsError(f"git {asked[0]} took longer than {_SECONDS} s in {folder}.") from None


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[0].removeprefix("fatal: ") if lines else f"exit status {done.returncode}"


def _paths(listed: bytes) -> frozenset[str]:
    return frozenset(os.fsdecode(path) for path in listed.split(b"\0") if path)
