"""GitHub: comments on pull requests, and statuses of commits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from rag_harness.errors import SettingsError
from rag_harness.exports.posting import Posting

_LOGIN = "github-actions[bot]"
"""The account of a job's own token."""
_A_PAGE, _MOST_PAGES = 100, 50
_DESCRIPTION = 140
"""Most characters of a status' description that GitHub takes."""


class GitHubRepository:
    """The repository of a job.

    Args:
        environment: the variables that GitHub sets, and ``GH_TOKEN``.

    Raises:
        SettingsError: there is no token, or no repository.
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
