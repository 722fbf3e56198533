"""``rag-harness``: the commands that need no pytest run, in one table."""

from __future__ import annotations

import argparse
import atexit
import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

from rag_harness.core.errors import RagHarnessError
from rag_harness.core.escaping import say, say_block
from rag_harness.core.package import COMMAND, NAME, strangers, version
from rag_harness.frontends.cli import CommandParser

CANNOT_RUN = 2
"""Exit status when the command could not do its work; argparse uses the same."""
INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""


class Command(NamedTuple):
    """One command: its help, and its place, ``module:name`` of ``frontends/cli``.

    The module has ``<name>_arguments`` and ``run_<name>``. It is imported when the command is named.
    ``stopped`` says what is left of its work after Ctrl-C, where that can be said; it may name an argument in braces.
    """

    help: str
    place: str
    stopped: str = ""


class _Version(argparse.Action):
    """``--version``: the distribution is looked up when it is asked for, not at each start."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        say(f"{NAME} {version()}")
        parser.exit()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that ``argv`` names and return its exit status."""
    given = sys.argv[1:] if argv is None else argv
    # Python looks through everything for garbage before it ends, which takes a tenth of a command's time.
    atexit.register(gc.freeze)
    chosen = argparse.Namespace(stopped="")
    for line in strangers(by_entry_points=False):
        say(f"WARNING: {line}", to=sys.stderr)
    try:
        parser_of(given).parse_args(given, chosen)
        status = int(chosen.run(chosen))
        sys.stdout.flush()
    except KeyboardInterrupt:
        left = chosen.stopped.format_map(vars(chosen))
        say(f"stopped; {left}" if left else "stopped", to=sys.stderr)
        return INTERRUPTED
    except RagHarnessError as error:
        say_block(str(error), to=sys.stderr)
        return CANNOT_RUN
    except BrokenPipeError:
        # Whoever read has left, as `| head` does; what is still to be written goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CANNOT_RUN
    except OSError as error:
        if error.filename is None:
            raise
        # A place that may not be written, a disk that is full: the system says which file, and why.
        say(f"{error.filename}: {error.strerror}. Name another place, or make this one usable.", to=sys.stderr)
        return CANNOT_RUN
    return status


def parser_of(given: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser of all commands. The one that ``given`` names has its arguments, the others have their help."""
    parser = CommandParser(COMMAND, description="Data and results of RAG evaluations.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the installed version, and end")
    groups = _with_commands(parser, "GROUP")
    for name, command in ALONE.items():
        _add(groups, name, command, given[:1])
    for group, (about, commands) in COMMANDS.items():
        subparsers = _with_commands(groups.add_parser(group, help=about, description=about), "COMMAND")
        for name, command in commands.items():
            _add(subparsers, name, command, given[1:2] if given[:1] == [group] else ())
    return parser


def _with_commands(parser: argparse.ArgumentParser, metavar: str) -> Any:
    """Return the place of a parser's commands. Without one, it prints them."""

    def run(chosen: argparse.Namespace) -> int:  # noqa: ARG001
        parser.print_help(sys.stderr)
        return CANNOT_RUN

    parser.set_defaults(run=run)
    return parser.add_subparsers(metavar=metavar)


def _add(subparsers: Any, name: str, command: Command, named: Sequence[str]) -> None:
    subparser = subparsers.add_parser(name, help=command.help, description=command.help)
    if name in named:
        place, _, function = command.place.partition(":")
        module = import_module(f"rag_harness.frontends.cli.{place}")
        getattr(module, f"{function}_arguments")(subparser)
        subparser.set_defaults(run=getattr(module, f"run_{function}"), stopped=command.stopped)


_RECORDED = "; a model's answers that were recorded are not asked for again"
_GOES_ON = "what was written is in {folder}. The same command goes on from here"
ALONE: dict[str, Command] = {
    "ingest": Command(
        "read documents of any kind, cut, embed and index them, and report the result",
        "ingest:ingest",
        "the same command goes on from what was kept",
    ),
    "compare": Command("what changed from one run to another, case by case", "runs:compare"),
    "power": Command("which differences a run could see, and how many cases one needs", "runs:power"),
    "explain": Command(
        "say why trials of a run failed, and what to do",
        "runs:explain",
        "what was run or answered is kept",
    ),
    "report": Command("write what runs came to as one page, as Markdown or as a table", "results:report"),
    "serve": Command("serve an experiment over HTTP: the evaluated experiment is the deployed one", "serve:serve"),
    "tune": Command(
        "find the better pipeline: configurations race on your questions",
        "runs:tune",
        "the same command goes on from what was asked",
    ),
    "init": Command("write the smallest working suite into your repository", "init:init"),
    "schema": Command(
        "print the JSON Schema of a file, for editors: queries, endpoint, space, result",
        "results:schema",
    ),
    "doctor": Command(
        "say what is installed, set and there, for an issue report: no key is shown",
        "doctor:doctor",
    ),
}

COMMANDS: dict[str, tuple[str, dict[str, Command]]] = {
    "kb": (
        "a knowledge base, its queries and its golden set",
        {
            "plan": Command(
                "plan a knowledge base: its pages, their facts and links",
                "kb:plan",
                f"no plan was written{_RECORDED}",
            ),
            "generate": Command("write the pages of a plan, each compared with it", "kb:generate", _GOES_ON),
            "validate": Command("check pages, plan, queries and golden set", "kb:validate"),
            "superseded": Command("mark the queries whose answer a superseded page gives otherwise", "kb:superseded"),
            "queries": Command(
                "write questions for your documents, with ground truth",
                "kb:queries",
                f"no question was written{_RECORDED}",
            ),
            "graph": Command("print the links between pages as Mermaid", "kb:graph"),
        },
    ),
    "cache": (
        "vectors and indexes that were made on this machine",
        {
            "status": Command(
                "say what is there, how large it is, and when it was last used",
                "stores:cache_status",
            ),
            "prune": Command(
                "remove what was not used for long; it is made again when it is needed",
                "stores:prune",
            ),
        },
    ),
    "ci": (
        "what a job says on GitHub or GitLab",
        {
            "comment": Command(
                "keep one comment on a pull request, or note on a merge request, up to date",
                "results:comment",
            ),
            "status": Command("set the status of a commit on GitHub by the verdict of the gates", "results:status"),
        },
    ),
    "endpoint": (
        "services under test",
        {
            "try": Command(
                "ask a service once, and show what was sent, what came, what was read",
                "endpoint:try",
            )
        },
    ),
    "judge": (
        "judges of answers, compared with people",
        {
            "score": Command("judge answers from anywhere, a JSON line each", "judge:score"),
            "sample": Command("pick answers of a run for people to label, as a sheet", "judge:sample"),
            "calibrate": Command("compare a judge with people's labels", "judge:calibrate"),
        },
    ),
    "reliability": (
        "how sure pipelines are of their answers",
        {"calibrate": Command("fit the confidence of r1 to gold", "judge:reliability_calibrate")},
    ),
    "index": (
        "collections on a Qdrant server",
        {
            "status": Command("say what is there and how whole it is", "stores:index_status"),
            "drop": Command("remove a collection", "stores:drop"),
        },
    ),
    "keys": (
        "who may ask a service",
        {
            "create": Command("make a key, and show it for the only time", "serve:create"),
            "list": Command("print what each key may do, and what it was used for", "serve:list"),
            "revoke": Command("make a key good for nothing, at once", "serve:revoke"),
        },
    ),
    "queries": (
        "questions as cases",
        {
            "import": Command(
                "make cases of the files of other tools: ragas, deepeval, promptfoo, …",
                "queries:import",
            ),
            "from-traces": Command("make cases to label of what users asked a service", "queries:from_traces"),
            "review": Command(
                "read drafted questions with their evidence: accept, edit, reject",
                "queries:review",
                "decisions are kept",
            ),
            "check": Command("say which questions the documents have left behind", "queries:check"),
        },
    ),
    "traces": (
        "spans that were kept of a pipeline",
        {
            "score": Command(
                "judge what was answered, by a file of OTLP, Phoenix or Langfuse",
                "judge:traces_score",
            )
        },
    ),
    "results": (
        "result files",
        {
            "validate": Command("check schema and completeness of result files", "results:validate"),
            "export": Command(
                "hand the scores of a run to other tools: MLflow, Langfuse, Phoenix, …",
                "results:export",
            ),
        },
    ),
}

if __name__ == "__main__":
    sys.exit(main())
