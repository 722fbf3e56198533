"""GitLab: notes on merge requests.

A job's own token, ``CI_JOB_TOKEN``, may not write notes: its endpoints are listed in GitLab's page "Fine-grained
permissions for CI/CD job tokens". So a project access token is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import quote

from rag_harness.errors import SettingsError
from rag_harness.exports.hosts.github_host import pages
from rag_harness.exports.posting import Posting

TOKEN = "RAG_HARNESS_GITLAB_TOKEN"
"""Variable with a project access token: scope api, role Reporter."""


class GitLabNotes:
    """The notes on a merge request.

    Args:
        environment: the variables that GitLab sets, and the token.
        number: of the merge request, as its page shows it (iid).

    Raises:
        SettingsError: there is no token, or this is no job of GitLab.
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
