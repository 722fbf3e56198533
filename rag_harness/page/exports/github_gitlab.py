"""Comments under pull requests of GitHub and merge requests of GitLab, which a later run replaces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from re import sub
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from rag_harness.core.errors import PrerequisiteError, SettingsError
from rag_harness.page.exports.servers import Posting

MOST_BYTES = 60_000
"""GitHub takes 65,536 characters."""


class CommentPlace(Protocol):
    """The comments on a pull request, as the account of the token may change them."""

    def own(self, first: str) -> Iterable[int]:
        """Yield the numbers of this account's comments that begin with ``first``."""
        ...

    def write(self, text: str) -> int:
        """Write a comment, and return its number."""
        ...

    def rewrite(self, number: int, text: str) -> None:
        """Replace the text of a comment."""
        ...

    def remove(self, number: int) -> None:
        """Remove a comment, if it is still there."""
        ...


def keep_comment(place: CommentPlace, name: str, text: str) -> int:
    """Write the comment called ``name``, or replace the one that is there; return its number.

    It is looked for once more after writing: of two jobs that found none, each has written one. Both keep the oldest.

    Args:
        place: where it stands.
        name: tells it from others of the same account; shown to nobody.
        text: Markdown; cut after 60,000 bytes, which is said.

    Raises:
        PrerequisiteError: the host refuses, or does not show what was written.
    """
    first = f"<!-- rag-harness: {sub('[^A-Za-z0-9_.-]', '-', name)} -->"
    body = f"{first}\n{_cut(text)}"
    there = sorted(place.own(first))
    if there:
        written = there[0]
        place.rewrite(written, body)
    else:
        written = place.write(body)
    there = sorted(place.own(first))
    if not there:
        raise PrerequisiteError(f"Comment {written} was written, and is not among the comments. Run the job again.")
    oldest, *others = there
    for each in others:
        place.remove(each)
    if oldest != written:
        place.rewrite(oldest, body)
    return oldest


def _cut(text: str) -> str:
    content = text.encode("utf-8", "replace")
    if len(content) <= MOST_BYTES:
        return text
    kept = content[:MOST_BYTES].decode("utf-8", "ignore")
    return f"{kept}\n\nCut after {MOST_BYTES} bytes. The whole text is in the results of the run.\n"


_LOGIN = "github-actions[bot]"
"""The account of a job's own token."""
_A_PAGE, _MOST_PAGES = 100, 50
_DESCRIPTION = 140
"""Most characters of a status' description that GitHub takes."""


class GitHubRepository:
    """The repository of a job.

    Args:
        environment: the variables of GitHub, and ``GH_TOKEN``.

    Raises:
        SettingsError: the token or the repository is missing.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        token, repository = environment.get("GH_TOKEN", ""), environment.get("GITHUB_REPOSITORY", "")
        if not token or not repository:
            raise SettingsError("GitHub: GH_TOKEN and GITHUB_REPOSITORY are needed. Set GH_TOKEN: ${{ github.token }}")
        headers = {"Authorization": f"Bearer {token}", "X-GitHub-Api-Version": "2022-11-28"}
        self._api = Posting("GitHub", environment.get("GITHUB_API_URL") or "https://api.github.com", headers)
        self._path = f"/repos/{quote(repository)}"

    def pull_request(self, head: str, commit: str) -> int | None:
        """Return the number of the open pull request from ``OWNER:BRANCH`` whose last commit this is; None for none."""
        found = self._api.send(f"{self._path}/pulls?{urlencode({'state': 'open', 'head': head})}").content
        return next((int(each["number"]) for each in found if each["head"]["sha"] == commit), None)

    def comments(self, number: int) -> _Comments:
        """Return the comments on a pull request."""
        return _Comments(self._api, f"{self._path}/issues", number)

    def set_status(self, commit: str, state: str, said: str, context: str, link: str = "") -> None:
        """Set the status of a commit.

        Args:
            commit: its full hash.
            state: success, failure or error.
            said: beside it; cut after 140 characters.
            context: its name.
            link: address of the report; empty for none.

        Raises:
            PrerequisiteError: GitHub refuses.
        """
        short = said if len(said) <= _DESCRIPTION else f"{said[: _DESCRIPTION - 1]}…"
        body = {"state": state, "description": short, "context": context}
        if link:
            body["target_url"] = link
        self._api.send(f"{self._path}/statuses/{quote(commit, safe='')}", body)


class _Comments:
    def __init__(self, api: Posting, path: str, number: int) -> None:
        self._api, self._path = api, path
        self._place = f"{path}/{number}/comments"

    def own(self, first: str) -> Iterator[int]:
        for each in pages(self._api, self._place):
            if each["user"]["login"] == _LOGIN and str(each.get("body") or "").startswith(first):
                yield int(each["id"])

    def write(self, text: str) -> int:
        return int(self._api.send(self._place, {"body": text}).content["id"])

    def rewrite(self, number: int, text: str) -> None:
        self._api.send(f"{self._path}/comments/{number}", {"body": text}, method="PATCH")

    def remove(self, number: int) -> None:
        self._api.send(f"{self._path}/comments/{number}", known=(404,), method="DELETE")


def pages(api: Posting, path: str) -> Iterator[Mapping[str, Any]]:
    """Yield the entries of a list that comes in pages, as GitHub and GitLab number them."""
    for page in range(1, _MOST_PAGES + 1):
        found = api.send(f"{path}?per_page={_A_PAGE}&page={page}").content
        yield from found
        if len(found) < _A_PAGE:
            return


# A job's own token, ``CI_JOB_TOKEN``, may not write notes: its endpoints are listed in GitLab's page "Fine-grained
# permissions for CI/CD job tokens". So a project access token is needed.

TOKEN = "RAG_HARNESS_GITLAB_TOKEN"
"""Variable with a project access token: scope api, role Reporter."""


class GitLabNotes:
    """The notes on a merge request.

    Args:
        environment: the variables that GitLab sets, and the token.
        number: of the merge request, as its page shows it (iid).

    Raises:
        SettingsError: the token is missing, or this is not a job of GitLab.
    """

    def __init__(self, environment: Mapping[str, str], number: int) -> None:
        # The merge request is the project's that it goes to, also where its pipeline runs in a fork.
        project = environment.get("CI_MERGE_REQUEST_PROJECT_ID") or environment.get("CI_PROJECT_ID", "")
        token = environment.get(TOKEN, "")
        if not token or not project:
            raise SettingsError(
                f"GitLab: CI_PROJECT_ID and {TOKEN} are needed. Make a project access token with the scope api and the "
                f"role Reporter, and set it as a masked variable: a job's own token may not write notes."
            )
        self._api = Posting("GitLab", environment.get("CI_API_V4_URL", ""), {"PRIVATE-TOKEN": token})
        self._place = f"/projects/{quote(project, safe='')}/merge_requests/{number}/notes"

    def own(self, first: str) -> Iterator[int]:
        """Yield the numbers of this account's notes that begin with ``first``."""
        account = self._api.send("/user").content["id"]
        for each in pages(self._api, self._place):
            if each["author"]["id"] == account and not each["system"] and str(each["body"]).startswith(first):
                yield int(each["id"])

    def write(self, text: str) -> int:
        """Write a note, and return its number."""
        return int(self._api.send(self._place, {"body": text}).content["id"])

    def rewrite(self, number: int, text: str) -> None:
        """Replace the text of a note."""
        self._api.send(f"{self._place}/{number}", {"body": text}, method="PUT")

    def remove(self, number: int) -> None:
        """Remove a note, if it is still there."""
        self._api.send(f"{self._place}/{number}", known=(404,), method="DELETE")
