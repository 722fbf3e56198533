"""The commands about results: rag-harness report, results validate and export, ci comment and status, and schema."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_harness.core.errors import DataError, SettingsError
from rag_harness.core.escaping import say, say_json
from rag_harness.core.progress import uncollected
from rag_harness.frontends.cli import FOUND

if TYPE_CHECKING:
    from rag_harness.page.exports.github_gitlab import CommentPlace


# ``rag-harness results``: checks whether result files are complete and valid.


def validate_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``results validate``."""
    parser.add_argument(
        "path", type=Path, nargs="?", default=Path("output"), help="result file or folder; default: output"
    )
    parser.add_argument(
        "--queries", type=Path, metavar="FILE", help="questions: each result file must have a row for each"
    )


def run_validate(chosen: argparse.Namespace) -> int:
    """Check schema and completeness of result files."""
    from rag_harness.data.queries import read_queries
    from rag_harness.records.validation import check_results

    cases = read_queries(chosen.queries) if chosen.queries else []
    wanted = [case.query.query_id for case in cases if case.scenario is None]
    played = [case.query.query_id for case in cases if case.scenario is not None]
    checks = check_results(chosen.path, wanted, played)
    for check in checks:
        say(check.line(), *(f"  {problem}" for problem in check.problems))
    return FOUND if any(check.problems for check in checks) else 0


# ``rag-harness results export``: hands the scores of a run to other tools.


def export_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``results export``."""
    from rag_harness.page.exports.targets import TARGETS

    parser.add_argument(
        "output", type=Path, nargs="?", default=Path("output"), help="output folder of a run; default: output"
    )
    parser.add_argument("--to", required=True, type=_target, choices=TARGETS, help="tool that gets the scores")
    where = "folder or file of targets that are files; default: exported"
    parser.add_argument("-o", dest="place", type=Path, default=Path("exported"), metavar="PLACE", help=where)
    parser.add_argument("--url", default="", help="address of the tool's server; default: as its own client finds it")
    project = "name under which the tool keeps them; default: rag-harness"
    parser.add_argument("--project", default="rag-harness", metavar="NAME", help=project)


def _target(name: str) -> str:
    from rag_harness.page.exports.targets import REMOVED

    if name in REMOVED:
        raise argparse.ArgumentTypeError(REMOVED[name])
    return name


def run_export(chosen: argparse.Namespace) -> int:
    """Export the scores, and say what was written where."""
    from rag_harness.core.settings.roles import check_address
    from rag_harness.page.exports.scored_run import Destination, read_scored_run
    from rag_harness.page.exports.targets import TARGETS

    check_address("--url", chosen.url, "Put it into the variables of the tool.")
    run = read_scored_run(chosen.output)
    say(*TARGETS[chosen.to](run, Destination(chosen.output, chosen.place, chosen.url, chosen.project)))
    return 0


# ``rag-harness report``: writes the results of one run or several into a file that can be sent.


def report_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``report``."""
    from rag_harness.page import FORMATS

    outputs = "output folder of a run; of several the last is now, and those named first are before; default: output"
    parser.add_argument("outputs", type=Path, nargs="*", default=[Path("output")], metavar="OUTPUT", help=outputs)
    parser.add_argument(
        "-o", dest="file", type=Path, metavar="FILE", help="file to write; default: report with the format's ending"
    )
    wanted = (
        "html: one page that opens offline; md: for a pull request; csv, parquet: a line a trial; badge: for shields.io"
    )
    parser.add_argument("--format", choices=FORMATS, help=f"{wanted}; default: as FILE ends, or html")
    link = "address at which the page will be, e.g. https://…/report.html: the Markdown then links trials to it"
    parser.add_argument("--link", default="", metavar="URL", help=link)
    plain = "keep the page's trials as plain JSON, for browsers that cannot unpack gzip: some three times the size"
    parser.add_argument("--plain", action="store_true", help=plain)


def run_report(chosen: argparse.Namespace) -> int:
    """Write the report, and print its place."""
    from rag_harness.page import check_place, format_of, usual_name

    if chosen.file and not chosen.format:
        check_place(chosen.file)
    wanted = chosen.format or (format_of(chosen.file) if chosen.file else "html")
    if chosen.link:
        from rag_harness.page.content import check_address

        check_address(chosen.link)
    file = chosen.file or Path(usual_name(wanted))
    with uncollected():  # imports also make objects that stay
        from rag_harness.page.report import size_said, write_report
        from rag_harness.tables.answer_warnings import said_of_last_run

        now, *before = reversed(chosen.outputs)
        write_report([now, *before], file, wanted, chosen.plain, link=chosen.link)
    say(*(said for output in chosen.outputs for said in said_of_last_run(output)))
    say(f"{file}: {size_said(file)}", *([f"before: {', '.join(map(str, before))}; now: {now}"] if before else []))
    return 0


# ``rag-harness schema``: the JSON Schema of a file, for editors and other tools.

_MADE: Mapping[str, str] = {
    "queries": "rag_harness.data.queries:query_schema",
    "endpoint": "rag_harness.core.settings.endpoints:endpoint_schema",
    "space": "rag_harness.diagnosis.tuning.space:space_schema",
    "result": "rag_harness.records.row:row_schema",
}
"""What makes the schema of each kind of file. Its module is imported when it is named."""


def schema_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``schema``."""
    about = "queries: a line of queries.jsonl; endpoint: a service; space: what races; result: a row of results"
    parser.add_argument("kind", choices=[*_MADE], help=about)
    parser.add_argument("-o", dest="file", type=Path, metavar="FILE", help="write it there; default: print it")


def run_schema(chosen: argparse.Namespace) -> int:
    """Print or write a schema."""
    text = schema_text(chosen.kind)
    if chosen.file is None:
        say_json(text)
        return 0
    from rag_harness.core.files import write_atomically

    chosen.file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(chosen.file, text.encode())
    say(f"{chosen.file}: the schema of {chosen.kind}")
    return 0


def schema_text(kind: str) -> str:
    """Return a schema as the text of its file."""
    module, _, name = _MADE[kind].partition(":")
    made: Callable[[], dict[str, Any]] = getattr(import_module(module), name)
    return json.dumps(made(), indent=2, ensure_ascii=False) + "\n"


# ``rag-harness ci``: what a job says on its host, GitHub or GitLab.

_NAME = "what tells it from that of another suite in the same repository; default: ."


def comment_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``ci comment``."""
    parser.add_argument("file", type=Path, metavar="FILE", help="Markdown, as rag-harness report writes it")
    parser.add_argument("--name", default=".", help=_NAME)
    numbered = "of the pull request; default: the job's merge request (GitLab)"
    parser.add_argument("--number", default="", metavar="N", help=numbered)
    parser.add_argument("--head", default="", metavar="OWNER:BRANCH", help="GitHub: where the pull request comes from")
    parser.add_argument("--sha", default="", metavar="COMMIT", help="with --head: its last commit")


def run_comment(chosen: argparse.Namespace) -> int:
    """Keep one comment up to date."""
    from rag_harness.page.exports.github_gitlab import keep_comment

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
    from rag_harness.page.exports.github_gitlab import GitHubRepository
    from rag_harness.page.report import read_runs
    from rag_harness.page.run import status_by_gates

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
    """Return the place of the comment; None without a pull request."""
    number = chosen.number or environment.get("CI_MERGE_REQUEST_IID", "")
    if number and not number.isdecimal():
        raise SettingsError(f"--number {number!r} is not a number of a pull request.")
    if environment.get("GITLAB_CI"):
        from rag_harness.page.exports.github_gitlab import GitLabNotes

        return GitLabNotes(environment, int(number)) if number else None
    if not environment.get("GITHUB_REPOSITORY"):
        raise SettingsError("This is not a job of GitHub or GitLab: neither GITHUB_REPOSITORY nor GITLAB_CI is set.")
    from rag_harness.page.exports.github_gitlab import GitHubRepository

    repository = GitHubRepository(environment)
    found = int(number) if number else repository.pull_request(chosen.head, chosen.sha) if chosen.head else None
    return repository.comments(found) if found is not None else None
