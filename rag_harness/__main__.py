"""``rag-harness``: the commands that need no pytest run. One function for each, and one table of them all."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from rag_harness.errors import RagHarnessError

if TYPE_CHECKING:
    from rag_harness.pipelines.parts import RunParts

T = TypeVar("T")

FOUND = 1
"""Exit status when something was found."""
CANNOT_RUN = 2
"""Exit status when the command could not do its work; argparse uses the same."""


class Command(NamedTuple):
    """One command: its help, its arguments, and what it does; ``run`` returns the exit status."""

    help: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that ``argv`` names and return its exit status."""
    chosen = _parser().parse_args(argv)
    try:
        return int(chosen.run(chosen))
    except RagHarnessError as error:
        print(error, file=sys.stderr)
        return CANNOT_RUN


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("rag-harness", description="Data and results of RAG evaluations.")
    groups = parser.add_subparsers(required=True, metavar="GROUP")
    for name, command in ALONE.items():
        _add(groups, name, command)
    for group, (about, commands) in COMMANDS.items():
        subparsers = groups.add_parser(group, help=about, description=about).add_subparsers(
            required=True, metavar="COMMAND"
        )
        for name, command in commands.items():
            _add(subparsers, name, command)
    return parser


def _add(subparsers: Any, name: str, command: Command) -> None:
    subparser = subparsers.add_parser(name, help=command.help, description=command.help)
    command.arguments(subparser)
    subparser.set_defaults(run=command.run)


def _folder_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", metavar="DIR", help="folder of Markdown pages; default: KB_DIR or data/kb")


def _validate_arguments(parser: argparse.ArgumentParser) -> None:
    _folder_argument(parser)
    parser.add_argument("--queries", type=Path, metavar="FILE", help="default: queries.jsonl in the folder")
    golden = "default: test_retrieval_golden/golden.json beside the folder's parent"
    parser.add_argument("--golden", type=Path, metavar="FILE", help=golden)
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def _kb_validate(chosen: argparse.Namespace) -> int:
    from rag_harness.kb.validation import validate

    folder = _folder(chosen)
    golden = folder.absolute().parent.parent / "test_retrieval_golden" / "golden.json"
    report = validate(
        folder,
        chosen.queries or _if_there(folder / "queries.jsonl"),
        chosen.golden or _if_there(golden),
    )
    print(report.json() if chosen.json else "\n".join(report.lines()))
    return 0 if report.ok else FOUND


def _kb_graph(chosen: argparse.Namespace) -> int:
    from rag_harness.kb.validation import graph

    print(graph(_folder(chosen)), end="")
    return 0


def _superseded_arguments(parser: argparse.ArgumentParser) -> None:
    _folder_argument(parser)
    parser.add_argument("--queries", type=Path, metavar="FILE", help="default: queries.jsonl in the folder")
    parser.add_argument("-o", dest="marked", type=Path, required=True, metavar="FILE", help="the queries, marked")


def _kb_superseded(chosen: argparse.Namespace) -> int:
    from rag_harness.files.atomic import write_atomically
    from rag_harness.kb.superseded import mark_superseded

    found = mark_superseded(_folder(chosen), chosen.queries)
    write_atomically(chosen.marked, "".join(f"{line}\n" for line in found.lines).encode())
    print(f"{found.marked} of {len(found.lines)} queries ask for a fact that a superseded page tells otherwise")
    return 0 if found.marked else FOUND


def _folder(chosen: argparse.Namespace) -> Path:
    from rag_harness.settings.loading import load_settings

    given: dict[str, Any] = {"kb_dir": chosen.folder} if chosen.folder else {}
    return Path(load_settings(given).kb_dir)


def _if_there(file: Path) -> Path | None:
    return file if file.is_file() else None


def _results_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "path", type=Path, nargs="?", default=Path("output"), help="result file or folder; default: output"
    )
    parser.add_argument("--queries", type=Path, metavar="FILE", help="each file must have a row for each of these")


def _results_validate(chosen: argparse.Namespace) -> int:
    from rag_harness.dataset.queries import read_queries
    from rag_harness.results.check import check_results

    wanted = [case.query.query_id for case in read_queries(chosen.queries)] if chosen.queries else []
    checks = check_results(chosen.path, wanted)
    for check in checks:
        print("\n".join([check.line(), *(f"  {problem}" for problem in check.problems)]))
    return FOUND if any(check.problems for check in checks) else 0


def _init_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, nargs="?", default=Path(), help="your repository; default: this folder")
    parser.add_argument("--kb", default="docs", metavar="DIR", help="your Markdown, below it; default: docs")


def _init(chosen: argparse.Namespace) -> int:
    from rag_harness.starter import start

    print("\n".join(start(chosen.folder, chosen.kb).lines()))
    return 0


_JUDGE_OPTIONS = ("judge", "judge_model", "judge_base_url", "profile", "mode")


def _judge_score_arguments(parser: argparse.ArgumentParser) -> None:
    lines = "a line an answer: id, question, contexts, answer; ground_truth, gold_pages, quotes where there are any"
    parser.add_argument("answers", type=Path, metavar="ANSWERS.jsonl", help=lines)
    parser.add_argument("-o", dest="scores", type=Path, required=True, metavar="SCORES.jsonl", help="a line an answer")
    usual = "faithfulness,answer_relevancy"
    parser.add_argument("--measures", default=usual, metavar="NAMES", help=f"commas between; default: {usual}")
    for name in _JUDGE_OPTIONS:
        flag = name.replace("_", "-")
        parser.add_argument(f"--{flag}", dest=name, help=f"as --rag-{flag} of a test run")


def _judge_score(chosen: argparse.Namespace) -> int:
    from rag_harness.judges.answers.judged import Asked
    from rag_harness.judges.answers.scored import score_file
    from rag_harness.judges.made import judge_of
    from rag_harness.models.keys import check_judge
    from rag_harness.pipelines.generation import abstains
    from rag_harness.pipelines.parts import RunParts
    from rag_harness.report.scorecard import judge_said
    from rag_harness.settings.loading import load_settings

    settings = load_settings({name: said for name in _JUDGE_OPTIONS if (said := getattr(chosen, name)) is not None})
    asked = Asked(chosen.measures.replace(",", " ").split())
    check_judge(settings)
    parts = RunParts(settings)
    judge = judge_of(parts)
    tally = _closing(score_file(chosen.answers, chosen.scores, asked, judge, settings, abstains), parts)
    print("\n".join([*tally.lines(), f"judged by {judge_said(judge.name, judge.model)}", f"scores: {chosen.scores}"]))
    return 0 if tally.measured else FOUND


def _closing(work: Coroutine[Any, Any, T], parts: RunParts) -> T:
    """Return what ``work`` returns; connections are closed on its loop, and what waits to be kept is written."""

    async def closed() -> T:
        try:
            return await work
        finally:
            await parts.endpoints.aclose()

    try:
        return asyncio.run(closed())
    finally:
        parts.flush()


def _calibrate_arguments(parser: argparse.ArgumentParser) -> None:
    from rag_harness.calibration.commands import calibrate_arguments

    calibrate_arguments(parser)


def _calibrate(chosen: argparse.Namespace) -> int:
    from rag_harness.calibration.commands import run_calibrate

    return run_calibrate(chosen)


def _sample_arguments(parser: argparse.ArgumentParser) -> None:
    from rag_harness.calibration.commands import sample_arguments

    sample_arguments(parser)


def _sample(chosen: argparse.Namespace) -> int:
    from rag_harness.calibration.commands import run_sample

    return run_sample(chosen)


def _compare_arguments(parser: argparse.ArgumentParser) -> None:
    from rag_harness.report.compared import compare_arguments

    compare_arguments(parser)


def _compare(chosen: argparse.Namespace) -> int:
    from rag_harness.report.compared import run_compare

    return run_compare(chosen)


def _power_arguments(parser: argparse.ArgumentParser) -> None:
    from rag_harness.report.power import power_arguments

    power_arguments(parser)


def _power(chosen: argparse.Namespace) -> int:
    from rag_harness.report.power import run_power

    return run_power(chosen)


def _explain_arguments(parser: argparse.ArgumentParser) -> None:
    from rag_harness.attribution.commands import explain_arguments

    explain_arguments(parser)


def _explain(chosen: argparse.Namespace) -> int:
    from rag_harness.attribution.commands import run_explain

    return run_explain(chosen)


ALONE: dict[str, Command] = {
    "compare": Command("set two runs against each other, case by case", _compare_arguments, _compare),
    "power": Command("which differences a run could see, and how many cases one needs", _power_arguments, _power),
    "explain": Command("say why trials of a run failed, and what to do", _explain_arguments, _explain),
    "init": Command("write the smallest working suite into your repository", _init_arguments, _init),
}

COMMANDS: dict[str, tuple[str, dict[str, Command]]] = {
    "kb": (
        "a knowledge base, its queries and its golden set",
        {
            "validate": Command("check pages, plan, queries and golden set", _validate_arguments, _kb_validate),
            "superseded": Command(
                "mark the queries whose answer a superseded page gives otherwise", _superseded_arguments, _kb_superseded
            ),
            "graph": Command("print the links between pages as Mermaid", _folder_argument, _kb_graph),
        },
    ),
    "judge": (
        "judges of answers, held against people",
        {
            "score": Command("judge answers from anywhere, a JSON line each", _judge_score_arguments, _judge_score),
            "sample": Command("pick answers of a run for people to label, as a sheet", _sample_arguments, _sample),
            "calibrate": Command("hold a judge against people's labels", _calibrate_arguments, _calibrate),
        },
    ),
    "results": (
        "result files",
        {"validate": Command("check schema and completeness of result files", _results_arguments, _results_validate)},
    ),
}

if __name__ == "__main__":
    sys.exit(main())
