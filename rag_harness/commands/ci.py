"""``rag-harness ci``: what a job says on its host, GitHub or GitLab."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rag_harness.errors import DataError, SettingsError
from rag_harness.shown.terminal import say

if TYPE_CHECKING:
    from rag_harness.exports.hosts.kept_comment import CommentPlace

_NAME = "what tells it from that of another suite in the same repository; default: ."


def comment_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``ci comment``."""
    parser.add_argument("file", type=Path, metavar="FILE", help="Markdown, as rag-harness report writes it")
    parser.add_argument("--name", default=".", help=_NAME)
    numbered = "of the pull request; default: that of the job's merge request (GitLab)"
    parser.add_argument("--number", default="", metavar="N", help=numbered)
    parser.add_argument("--head", default="", metavar="OWNER:BRANCH", help="GitHub: where the pull request comes from")
    parser.add_argument("--sha", default="", metavar="COMMIT", help="with --head: its last commit")


def run_comment(chosen: argparse.Namespace) -> int:
    """Keep one comment up to date."""
    from rag_harness.exports.hosts.kept_comment import keep_comment

    try:
        text = chosen.file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise DataError(f"{chosen.file} cannot be read: {error.strerror}. Write it: rag-harness report -o …") from error
    place = _place(chosen, os.environ)
    if place is None:
        say("No open pull request has this commit as its last one: no comment.")
        return 0
    say(f"comment {keep_comment(place, chosen.name, text)} is up to date")
    return 0


def status_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``ci status``."""
    parser.add_argument("output", type=Path, metavar="OUTPUT", help="output folder of the run")
    parser.add_argument("--sha", required=True, metavar="COMMIT", help="commit whose status it is")
    parser.add_argument("--name", default=".", help=_NAME)
    parser.add_argument("--link", default="", metavar="URL", help="address of the report")
    came = "how the suite's step ended, as GitHub says it: anything but success is a failure; default: success"
    parser.add_argument("--outcome", default="success", help=came)


def run_status(chosen: argparse.Namespace) -> int:
    """Set the status of a commit by the verdict of the run's gates."""
    from rag_harness.exports.hosts.github_host import GitHubRepository
    from rag_harness.page.badge import status_by_gates
    from rag_harness.page.report_files import read_runs

    repository = GitHubRepository(os.environ)
    try:
        state, said = status_by_gates(read_runs([chosen.output])[0], chosen.outcome == "success")
    except DataError as error:
        state, said = "error", f"NO VERDICT: {error}"
    context = "rag-harness" if chosen.name == "." else f"rag-harness: {chosen.name}"
    repository.set_status(chosen.sha, state, said, context, chosen.link)
    say(f"{context}: {state}, {said}")
    return 0


def _place(chosen: argparse.Namespace, environment: Mapping[str, str]) -> CommentPlace | None:
    """Return where the comment stands; None where there is no pull request."""
    number = chosen.number or environment.get("CI_MERGE_REQUEST_IID", "")
    if number and not number.isdecimal():
        raise SettingsError(f"--number {number!r} is no number of a pull request.")
    if environment.get("GITLAB_CI"):
        from rag_harness.exports.hosts.gitlab_host import GitLabNotes

        return GitLabNotes(environment, int(number)) if number else None
    if not environment.get("GITHUB_REPOSITORY"):
        raise SettingsError("This is no job of GitHub or GitLab: neither GITHUB_REPOSITORY nor GITLAB_CI is set.")
    from rag_harness.exports.hosts.github_host import GitHubRepository

    repository = GitHubRepository(environment)
    found = int(number) if number else repository.pull_request(chosen.head, chosen.sha) if chosen.head else None
    return repository.comments(found) if found is not None else None
