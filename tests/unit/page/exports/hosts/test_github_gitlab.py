"""Comment and commit status on GitHub and GitLab, against endpoints on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, BrokenBarrierError

import pytest

from rag_harness.__main__ import CANNOT_RUN, main
from rag_harness.page.exports.github_gitlab import CommentPlace, GitHubRepository, GitLabNotes, keep_comment
from tests.unit.page.exports.hosts.fake_hosts import BOT, SOMEBODY, TOKEN, FakeHost, fake_host
from tests.unit.page.runs import gate, summarise, write_study

# One comment on GitHub and GitLab, by ``rag-harness ci comment`` against endpoints on this machine.

FIRST = "<!-- rag-harness: . -->"
HOSTS = ("github", "gitlab")


def environment(kind: str, host: FakeHost) -> dict[str, str]:
    if kind == "github":
        return {"GITHUB_REPOSITORY": "o/r", "GH_TOKEN": TOKEN, "GITHUB_API_URL": host.url}
    return {
        **{"GITLAB_CI": "true", "CI_PROJECT_ID": "5", "CI_MERGE_REQUEST_IID": "7"},
        **{"CI_API_V4_URL": host.url, "RAG_HARNESS_GITLAB_TOKEN": TOKEN},
    }


def place(kind: str, host: FakeHost) -> CommentPlace:
    given = environment(kind, host)
    return GitHubRepository(given).comments(7) if kind == "github" else GitLabNotes(given, 7)


@pytest.fixture(autouse=True)
def no_other_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_REPOSITORY", "GITLAB_CI", "CI_MERGE_REQUEST_IID", "CI_MERGE_REQUEST_PROJECT_ID", "GH_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def host() -> Iterator[FakeHost]:
    with fake_host() as found:
        yield found


@pytest.fixture(params=HOSTS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def job(kind: str, host: FakeHost, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Return the arguments of the command in a job of this host."""
    for name, value in environment(kind, host).items():
        monkeypatch.setenv(name, value)
    (tmp_path / "comment.md").write_text("## PASS\n", encoding="utf-8")
    return ["ci", "comment", str(tmp_path / "comment.md"), "--number=7"]


def test_a_first_comment_is_written_and_read_back(job: list[str], host: FakeHost) -> None:
    assert main(job) == 0
    assert [each["body"] for each in host.comments.values()] == [f"{FIRST}\n## PASS\n"]
    methods = [method for method, path in host.asked if "user" not in path]
    assert methods == ["GET", "POST", "GET"]


def test_what_is_there_is_kept_up_to_date_and_others_are_left_alone(job: list[str], host: FakeHost) -> None:
    for n in range(120):  # behind the first page
        host.add(f"talk {n}", SOMEBODY)
    theirs = host.add(f"{FIRST}\nof somebody who knows the marker", SOMEBODY)
    other = host.add("<!-- rag-harness: docs -->\nof another suite")
    ours = host.add(f"{FIRST}\nold")
    assert main(job) == 0
    assert host.comments[ours]["body"] == f"{FIRST}\n## PASS\n"
    assert "somebody who knows" in host.comments[theirs]["body"]
    assert "another suite" in host.comments[other]["body"]
    assert len(host.comments) == 123


def test_what_a_race_has_left_before_goes(job: list[str], host: FakeHost) -> None:
    first, _, _ = (host.add(f"{FIRST}\nold {n}") for n in range(3))
    assert main(job) == 0
    assert {number: each["body"] for number, each in host.comments.items()} == {first: f"{FIRST}\n## PASS\n"}


def test_of_two_jobs_at_once_one_comment_is_left(kind: str, host: FakeHost) -> None:
    both = Barrier(2)

    def together(method: str) -> None:
        if method == "POST":  # both have looked and found none
            try:
                both.wait(5)
            except BrokenBarrierError:
                pytest.fail("only one has written")

    host.before = together
    with ThreadPoolExecutor(2) as threads:
        kept = list(threads.map(lambda text: keep_comment(place(kind, host), ".", text), ("one\n", "two\n")))
    ((number, left),) = host.comments.items()
    assert set(kept) == {number}
    assert left["body"] in (f"{FIRST}\none\n", f"{FIRST}\ntwo\n")


def test_a_comment_that_another_job_has_removed_is_no_error(kind: str, host: FakeHost) -> None:
    host.add(f"{FIRST}\nold")
    twice = host.add(f"{FIRST}\nold, too")

    def sooner(method: str) -> None:
        if method == "DELETE":
            host.comments.pop(twice)

    host.before = sooner
    keep_comment(place(kind, host), ".", "new\n")
    assert ("DELETE", twice) in [(method, int(path.rpartition("/")[2])) for method, path in host.asked[-1:]]
    assert len(host.comments) == 1


def test_a_name_cannot_leave_its_comment(kind: str, host: FakeHost) -> None:
    number = keep_comment(place(kind, host), "a --> @all", "text\n")
    first, _, rest = host.comments[number]["body"].partition("\n")
    assert first == "<!-- rag-harness: a------all -->"
    assert rest == "text\n"


def test_a_long_text_is_cut_and_says_so(kind: str, host: FakeHost) -> None:
    number = keep_comment(place(kind, host), ".", "ä" * 40_000)
    body = host.comments[number]["body"]
    assert len(body) < 65_536
    assert body.endswith("Cut after 60000 bytes. The whole text is in the results of the run.\n")
    keep_comment(place(kind, host), ".", "ä" * 30_000)
    assert host.comments[number]["body"] == f"{FIRST}\n{'ä' * 30_000}"


@pytest.mark.parametrize("refused", ["GET", "POST"])
def test_what_is_refused_is_said_without_the_token(
    job: list[str], host: FakeHost, capsys: pytest.CaptureFixture[str], refused: str
) -> None:
    host.refuses = refused
    assert main(job) == CANNOT_RUN
    said = capsys.readouterr().err
    assert "403" in said
    assert "not accessible" in said
    assert TOKEN not in said


def test_without_a_token_nothing_is_asked(
    job: list[str], host: FakeHost, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("GH_TOKEN", "RAG_HARNESS_GITLAB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    assert main(job) == CANNOT_RUN
    assert "are needed" in capsys.readouterr().err
    assert not host.asked


def test_a_merge_request_is_that_of_the_job(host: FakeHost, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "c.md").write_text("x")
    for name, value in environment("gitlab", host).items():
        monkeypatch.setenv(name, value)
    assert main(["ci", "comment", str(tmp_path / "c.md")]) == 0
    assert len(host.comments) == 1
    monkeypatch.setenv("CI_PROJECT_ID", "9")  # the pipeline of a fork
    monkeypatch.setenv("CI_MERGE_REQUEST_PROJECT_ID", "5")
    assert main(["ci", "comment", str(tmp_path / "c.md")]) == 0
    assert len(host.comments) == 1
    monkeypatch.delenv("CI_MERGE_REQUEST_IID")
    assert main(["ci", "comment", str(tmp_path / "c.md")]) == 0
    assert len(host.comments) == 1


@pytest.mark.parametrize(
    ("head", "sha", "finds"), [("fork:mine", "abc", True), ("fork:mine", "old", False), ("fork:other", "abc", False)]
)
def test_the_pull_request_of_a_fork_is_that_of_branch_and_commit(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, head: str, sha: str, finds: bool
) -> None:
    host.pulls = [
        {"number": 3, "head": {"label": "fork:mine", "sha": "def"}},
        {"number": 7, "head": {"label": "fork:mine", "sha": "abc"}},
    ]
    for name, value in environment("github", host).items():
        monkeypatch.setenv(name, value)
    (tmp_path / "c.md").write_text("x")
    assert main(["ci", "comment", str(tmp_path / "c.md"), f"--head={head}", f"--sha={sha}"]) == 0
    assert bool(host.comments) is finds


def test_a_job_elsewhere_and_a_wrong_number_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c.md").write_text("x")
    assert main(["ci", "comment", str(tmp_path / "c.md")]) == CANNOT_RUN
    assert "not a job of GitHub or GitLab" in capsys.readouterr().err
    assert main(["ci", "comment", str(tmp_path / "c.md"), "--number=7/../8"]) == CANNOT_RUN
    assert main(["ci", "comment", str(tmp_path / "gone.md")]) == CANNOT_RUN


def test_an_account_is_told_by_its_login_not_by_the_text(host: FakeHost) -> None:
    host.add(f"{FIRST}\nmine", f"{BOT}2")
    number = place("github", host)
    assert not list(number.own(FIRST))


# ``rag-harness ci status``: the verdict of the gates as the status of a commit.

SHA = "c0ffee" * 6 + "c0ff"


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHost]:
    with fake_host() as found:
        monkeypatch.setenv("GITHUB_REPOSITORY", "o/r")
        monkeypatch.setenv("GH_TOKEN", TOKEN)
        monkeypatch.setenv("GITHUB_API_URL", found.url)
        yield found


@pytest.mark.parametrize(
    ("states", "outcome", "state", "said"),
    [
        (["passed"], "success", "success", "PASS: 1 of 1 gate passed, 0 failed"),
        (["passed"], "failure", "failure", "The suite failed. PASS: 1 of 1 gate passed, 0 failed"),
        (["passed"], "cancelled", "failure", "The suite failed. PASS: 1 of 1 gate passed, 0 failed"),
        (["passed", "failed"], "failure", "failure", "FAIL: 1 of 2 gates failed, 1 passed"),
        (["passed", "failed"], "success", "failure", "FAIL: 1 of 2 gates failed, 1 passed"),
        (["undecided"], "success", "success", "UNDECIDED: 1 of 1 gate undecided, 0 failed"),
        (["undecided"], "failure", "failure", "The suite failed. UNDECIDED: 1 of 1 gate undecided, 0 failed"),
        (["not judged"], "success", "error", "NO VERDICT: 1 of 1 gate not judged"),
        ([], "success", "error", "NO VERDICT: no gate is set (--rag-gate, or rag_gate in the ini file)"),
    ],
)
def test_the_state_is_that_of_gates_and_suite(
    tmp_path: Path, github: FakeHost, states: list[str], outcome: str, state: str, said: str
) -> None:
    output = write_study(tmp_path / "output")
    summarise(output, *(gate(f"e3: recall@5 >= 0.{n}", each) for n, each in enumerate(states)))
    assert main(["ci", "status", str(output), f"--sha={SHA}", f"--outcome={outcome}", "--link=https://x.org/r"]) == 0
    (status,) = github.statuses
    expected = {"sha": SHA, "state": state, "description": said, "context": "rag-harness"}
    assert status == {**expected, "target_url": "https://x.org/r"}


def test_a_run_that_left_nothing_is_an_error_of_the_status(tmp_path: Path, github: FakeHost) -> None:
    assert main(["ci", "status", str(tmp_path), f"--sha={SHA}", "--outcome=failure", "--name=docs"]) == 0
    (status,) = github.statuses
    assert (status["state"], status["context"]) == ("error", "rag-harness: docs")
    assert status["description"].startswith("NO VERDICT: ")
    assert len(status["description"]) <= 140
    assert "target_url" not in status


def test_a_status_that_may_not_be_set_is_said(
    tmp_path: Path, github: FakeHost, capsys: pytest.CaptureFixture[str]
) -> None:
    github.refuses = "POST"
    assert main(["ci", "status", str(write_study(tmp_path / "output")), f"--sha={SHA}"]) == CANNOT_RUN
    assert "403" in capsys.readouterr().err
