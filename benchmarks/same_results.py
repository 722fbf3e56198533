"""Keeps what a checkout gives, and compares it with what another gives: does a change of the code change a result?

    python -m benchmarks.same_results keep FOLDER [--checkout CHECKOUT] [--limit N] [--only NAME ...]
    python -m benchmarks.same_results compare BEFORE NOW

``keep`` replays the studies, the golden suite, the simulated model, an agent, a conversation, a recorded service, a
race and ``rag_harness.evaluate``. It keeps rows, scores, causes, verdicts, summaries, pages, comments and what was
printed. What differs between two runs of the same code, or follows from where code is, is taken out: times and
durations, fingerprints, module paths, file paths, line numbers, versions, dates of runs. ``--only`` replays some parts,
and ``--limit`` that many cases of each study.

``compare`` prints the first file that differs and how, at most 200 lines, and ends with 1.

All files are written below a temporary folder; of the checkout only what is in git is read. Its entry points are those
of the environment: after a change of them install it again.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.metadata import entry_points
from itertools import groupby, zip_longest
from operator import itemgetter
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import Any

import tomllib

sys.path.append(str(Path(__file__).parent))

from same_results_suites import service, write_suite

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 600
"""Seconds a command may take."""
AT_ONCE = 2
SHOWN = 200
"""Lines of a difference."""
AROUND = 2000
"""Lines after the first difference that are compared: more cannot be shown."""
NOT_KEPT = {"journal", "unfinished", "columns", "prompts"}
PYTEST = ("pytest", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:syrupy", "-q")
ALL = "--rag-sections=all"
NO_CAUSES = ("-o", "rag_attribute=false")
"""Two studies are replayed without causes, which would take half of the time, as ``.ci/run`` does."""


@dataclass(frozen=True)
class Command:
    """A module with its arguments, what it may end with, and whether the service answers meanwhile."""

    arguments: tuple[str, ...]
    ends_with: tuple[int, ...] = (0,)
    served: bool = False


@dataclass(frozen=True)
class Part:
    """Commands that leave one output folder, run in the checkout or in a suite of its own."""

    name: str
    commands: tuple[Command, ...]
    in_suite: bool = True


def study(name: str, *arguments: str, red: bool = False) -> Part:
    """Replay experiments of the checkout. In some studies gates are red, and their pages say so."""
    return Part(name, (Command((*PYTEST, "--rag-mode=replay", *arguments), (1,) if red else (0,)),), in_suite=False)


def suite(name: str, *commands: tuple[str, ...]) -> Part:
    """Run commands of a small suite, in which a gate may be red."""
    return Part(name, tuple(Command(each, (0, 1)) for each in commands))


def gates(*asked: str) -> tuple[str, ...]:
    """Return the options that ask for these gates."""
    return tuple(f"--rag-gate={gate}" for gate in asked)


TALK = (*PYTEST, "test_shop.py", "--rag-queries=conversations.jsonl", "--rag-history=both")
ENDPOINT = (*PYTEST, "test_service.py", "--rag-endpoint=service.toml", *gates("service: recall@5 >= 0.8 @95%"))
TUNED = ("rag_harness", "tune", "space.toml", "--kb", "{checkout}/data/kb", "--limit", "60")
REPLAYED = ("--profile", "embedded", "--mode", "replay")
PARTS = (
    study("shop", "-m", "e1 or e2 or e3 or e4 or c1 or a1", ALL),
    study("textbook", "-m", "t1 or t2 or t3 or t4 or t5", *NO_CAUSES, red=True),
    study("reliability", "-m", "r1 or r2 or r3 or r4 or r5 or r6", *NO_CAUSES),
    study("simulated", "-c", "simulated.ini", "-m", "e1 or e2 or e3 or e4", ALL),
    study("golden", "test_retrieval_golden", "--k=10", ALL),
    suite("agent", (*PYTEST, "test_agent.py", *gates("agent: recall_by_step@1 >= 0.5", "agent: searches <= 1"))),
    suite("conversation", (*TALK, *gates("shop: expectations >= 0.9", "shop: conversation(all(expectations)) >= 0.1"))),
    Part(
        "service",
        (
            Command((*ENDPOINT, "--rag-mode=record"), (0, 1), served=True),
            Command((*ENDPOINT, "--rag-mode=replay", "--rag-overwrite"), (0, 1)),
        ),
    ),
    suite("race", (*TUNED, *REPLAYED, "--output", "output", "-o", "output/tuned.toml")),
    suite("evaluate", ("evaluated",)),
)
READ = (
    ("report", "output", "-o", "report.html", "--plain"),
    ("report", "output", "-o", "comment.md"),
    ("explain", "output", "--rows-only"),
)
"""Commands of the harness that read what a run left."""

TIME, MADE_BY = "<time>", "<made by>"
TIMES = re.compile(r"_ms$|^ms$")
"""Keys of times, and of what is made of them."""
OF_THE_CODE = {"fingerprint", "fingerprints", "made_of", "commit", "packages"}
DIGEST = re.compile(r"[0-9a-f]{16,24}")
WITH_THE_CODE = {"gold", "today"}
"""Keys of digests that the digest of the package is part of: the gold of a judged score, the pipeline of a race."""
BESIDE = {"again", "contradict"}
"""Stages that the reliability engine runs at once."""
OF_A_TIME = ("value", "interval", "bounds", "reason")
"""Keys of a gate over times, which keeps its verdict."""
J = "\u2060?"
"""Joins parts of a word in Markdown, so that nothing makes a link of them."""
TAKEN_OUT = (
    (rf"\d{{4}}-\d\d-\d\d[T ]\d\d:{J}\d\d(?::{J}\d\d)?(?:[.,]\d+)?(?:\+00:{J}00|Z)?", "<date>"),
    (r"\.py:\d+", ".py:<line>"),
    (r"127\.0\.0\.1:\d+", "<host>"),
    (r"(?<![\w./-])[\w./-]*\brag_harness(?:/\w+)+\.py", "<file>"),
    (r"\brag_harness(?:\.\w+)+", "<module>"),
)
"""What is taken out of each text."""
PRINTED = (
    (rf"\b\d{{1,2}} [A-Z][a-z]{{2}} \d{{4}} \d\d:{J}\d\d UTC", "<date>"),
    (r"\([^()]{1,60}\sold\)", "(<age> old)"),
    (rf"at commit [0-9a-f{J[0]}]+", "at commit <commit>"),
    (r"\b(pytest-rag-harness|rag-harness|rag_harness)([ =]+)\d+\.\d+\.\d+", r"\1\2<version>"),
    # Which parts of a run are in the line hangs on what took long.
    (r"(?m)^[^\n]*\bharness \d[\d.,]* ?(?:ms|s)\b[^\n]*\n", ""),
    # Data of the page is packed with its times.
    (r"(\.html: )\d[\d.,]* [kM]B", r"\1<size>"),
    (r" *\b\d[\d.,]*(?: ?/ ?\d[\d.,]*){2}(?![\d/])", f" {TIME}"),
    (r" *\b\d[\d.,]* ?(?:ms|s)\b(?: \(\d+:\d\d:\d\d\))?", f" {TIME}"),
    (r" *\b\d[\d.,]* a second\b", f" {TIME}"),
    # A gate over times keeps its verdict: thresholds are far away.
    (r"(_ms\)? *[<>]=? *[^\n ]+(?: @\d+%)?) [^\n]*\d[^\n]*", rf"\1 {TIME}"),
    (r"(?<=\S) {2,}", "  "),
)
"""What is taken out of what people read; a wider time no longer moves the columns beside it."""
DRAWING = re.compile(r"<svg.*?</svg>", re.DOTALL)
OVER_TIME = re.compile(r"(<th[^<]*>[^<]*_ms\b.*?)(</tr>)", re.DOTALL)
"""A row of a page about a gate over times; its verdict is a word."""
TIME_CELL = re.compile(
    r'<td[^>]* data-head="[^"]*\bms"[^>]*>.*?</td>|<td[^>]*>(?:<bdi>)?[^<]*\d (?:ms|s)\b[^<]*(?:</bdi>)?</td>',
    re.DOTALL,
)
"""A cell of a table of times, with an interval or without."""
BLOCK = re.compile(r'(<script type="application/octet-stream"[^>]*>)(.*?)(</script>)', re.DOTALL)


class Normal:
    """Takes out what varies.

    Args:
        places: what a text has, and what is written instead: folders, fingerprints.
        prompts: name of each prompt -> another one, made of its normal text.
    """

    def __init__(self, places: Mapping[str, str], prompts: Mapping[str, str] = MappingProxyType({})) -> None:
        self._places, self._prompts = places, prompts

    def text(self, text: str) -> str:
        """Return text without dates of runs and places of code."""
        for place, name in self._places.items():
            text = text.replace(place, name)
        return _without(text, TAKEN_OUT)

    def printed(self, text: str) -> str:
        """Return what people read without times, too."""
        return _without(self.text(text), PRINTED)

    def json(self, value: Any) -> Any:
        """Return a value of JSON without fields of times, and without those that tell of the code."""
        if isinstance(value, dict):
            without = OF_A_TIME if "_ms" in str(value.get("gate", "")) else ()
            return {key: TIME if key in without else self._field(key, each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.json(each) for each in value]
        return value

    def _field(self, key: str, value: Any) -> Any:
        if value is None:
            return value
        if TIMES.search(key) or key in OF_THE_CODE:
            return TIME if TIMES.search(key) else MADE_BY
        if key in WITH_THE_CODE and isinstance(value, str) and DIGEST.fullmatch(value):
            return MADE_BY
        if key == "digests" and isinstance(value, dict):  # they come from a set
            return {name: value[name] for name in sorted(value)}
        if key == "prompt" and isinstance(value, str):
            return self._prompts.get(value, value)
        found = self.json(value)
        return _in_order([_timeless(each) for each in found]) if key == "stages" and isinstance(found, list) else found

    def lines(self, value: Any) -> str:
        """Return normal JSON with an element or a field a line."""
        value = self.json(value)
        each = value if isinstance(value, list) else [{key: one} for key, one in value.items()]
        return self.text("".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in each))

    def page(self, text: str) -> str:
        """Return a page, an element a line, with the data of its script unpacked."""
        parts = BLOCK.split(text)
        for n in range(0, len(parts), 4):
            parts[n] = self.printed(_page_of_people(parts[n]))
        for n in range(2, len(parts), 4):
            parts[n] = self.lines(json.loads(parts[n]))
        return "\n".join(parts)


def _without(text: str, rules: Iterable[tuple[str, str]]) -> str:
    for pattern, instead in rules:
        text = re.sub(pattern, instead, text)
    return text


def _in_order(stages: list[Any]) -> list[Any]:
    """Return stages with those that run at once by their names: which of them ends first varies."""
    named = [(str(stage["name"] if isinstance(stage, dict) else stage[0]), stage) for stage in stages]
    runs = groupby(named, key=lambda each: each[0] in BESIDE)
    return [stage for at_once, run in runs for _, stage in (sorted(run, key=itemgetter(0)) if at_once else run)]


def _timeless(stage: Any) -> Any:
    """Return a stage of the page's data, a list of name, time, calls and more, without its times and its calls'."""
    if not isinstance(stage, list):
        return stage
    name, _, *others = stage
    if others:
        others[0] = [[*call[:2], *(each and TIME for each in call[2:4]), *call[4:]] for call in others[0]]
    return [name, TIME, *others]


def _page_of_people(text: str) -> str:
    """Return what a page shows without drawings and gates of times, an element a line."""
    text = OVER_TIME.sub(lambda row: re.sub(r"(?<=>)[^<]*\d[^<]*", TIME, row[1]) + row[2], DRAWING.sub(_drawing, text))
    return TIME_CELL.sub(f"<td>{TIME}</td>", text).replace("><", ">\n<")


def _drawing(found: re.Match[str]) -> str:
    """Return a drawing, or that it is one of times."""
    return "<svg>of times</svg>" if re.search(r"\bms\b", found[0]) else found[0]


def keep(checkout: Path, folder: Path, only: Sequence[str], limit: int) -> None:
    """Run all parts, two at a time, and write what they gave into ``folder``."""
    check_installed(checkout)
    # The folder's name has the same length each time: lines break where they did.
    with tempfile.TemporaryDirectory(prefix="same_") as name, ThreadPoolExecutor(AT_ONCE) as pool:
        parts = [part for part in PARTS if not only or part.name in only]
        if limit:
            parts = [limited(part, limit) for part in parts]
        done = [pool.submit(keep_part, part, checkout, Path(name).resolve() / part.name, folder) for part in parts]
        for each in done:
            print(each.result(), flush=True)


def limited(part: Part, limit: int) -> Part:
    """Ask so many cases of a study. With few, gates may be red that are green with all."""
    if part.in_suite:
        return part
    commands = (
        replace(each, arguments=(*each.arguments, f"--rag-limit={limit}"), ends_with=(0, 1)) for each in part.commands
    )
    return replace(part, commands=tuple(commands))


def check_installed(checkout: Path) -> None:
    """Refuse a checkout whose entry points are not those of the environment."""
    declared = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    asked = {(group, name, value) for group, each in declared.items() for name, value in each.items()}
    found = {(each.group, each.name, each.value) for group in declared for each in entry_points(group=group)}
    if missing := sorted(asked - found):
        raise SystemExit(f"{missing[0]} of {checkout} is not installed: python -m pip install -e {checkout}")


def keep_part(part: Part, checkout: Path, below: Path, folder: Path) -> str:
    """Run a part with its files in ``below``, and keep what it gave."""
    began = perf_counter()
    write_suite(below)
    printed = [run(command, part, checkout, below) for command in part.commands]
    printed += [run(Command(("rag_harness", *arguments), (0, 1, 2)), READER, checkout, below) for arguments in READ]
    for name, text in kept_files(below, {str(below): "<folder>", str(checkout): "<checkout>"}, "\n".join(printed)):
        (folder / part.name / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / part.name / name).write_text(text, encoding="utf-8")
    return f"{part.name:12} {perf_counter() - began:4.0f} s"


READER = suite("read")


def run(command: Command, part: Part, checkout: Path, below: Path) -> str:
    """Run a command and return what it printed, on both ways, under the command."""
    arguments = [each.replace("{checkout}", str(checkout)) for each in command.arguments]
    if not part.in_suite:
        arguments += [f"--rag-{name}={below / name}" for name in ("output", "cache-dir", "logs")]
    with service(below) if command.served else nullcontext():
        done = subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=below if part.in_suite else checkout,
            env=environment(checkout),
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
    if done.returncode not in command.ends_with:
        raise RuntimeError(
            f"{' '.join(arguments)} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-3000:]}"
        )
    return f"$ {' '.join(arguments)}\nended with {done.returncode}\n{done.stdout}{done.stderr}"


def environment(checkout: Path) -> dict[str, str]:
    """Return the variables without any that steers a run; the package is that of ``checkout``."""
    steering = ("RAG_", "OPEN", "PYTEST_", "GITHUB_", "CI")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(steering)}
    return {**kept, "PYTHONPATH": str(checkout), "COLUMNS": "100", "NO_COLOR": "1"}


def kept_files(below: Path, places: Mapping[str, str], printed: str) -> Iterator[tuple[str, str]]:
    """Yield name and normal text of each file that a part has left, and of what it printed."""
    output = below / "output"
    normal = Normal({**places, **fingerprints(output)})
    prompts = {file.stem: _normal_file(file, normal) for file in output.glob("prompts/*.json")}
    yield "prompts.jsonl", "".join(sorted(prompts.values()))
    normal = Normal(
        {**places, **fingerprints(output)},
        {name: sha256(text.encode()).hexdigest()[: len(name)] for name, text in prompts.items()},
    )
    for file in sorted(output.rglob("*.json*")):
        name = file.relative_to(output)
        if not NOT_KEPT & set(name.parts):
            yield f"output/{name}", _normal_file(file, normal)
    yield "comment.md", normal.printed((below / "comment.md").read_text(encoding="utf-8"))
    yield "report.html", normal.page((below / "report.html").read_text(encoding="utf-8"))
    yield "terminal.txt", normal.printed(printed)


def fingerprints(output: Path) -> dict[str, str]:
    """Return commit and fingerprints of a run as they are printed, whole or shortened, and what is written instead."""
    if not (output / "run.json").is_file():
        return {}
    run = json.loads((output / "run.json").read_text(encoding="utf-8"))
    names = {run["commit"]: "<commit>"} if run["commit"] else {}
    for each in run["suites"].values():
        names |= dict.fromkeys((*each["fingerprints"], *each["made_of"]), "<fingerprint>")
    return {
        form: name for whole, name in names.items() for form in (whole, f"{whole[:6]}{J[0]}{whole[6:12]}", whole[:12])
    }


def _normal_file(file: Path, normal: Normal) -> str:
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".json":
        return normal.lines(json.loads(text))
    return "".join(normal.lines([json.loads(line)]) for line in text.splitlines())


def compare(before: Path, now: Path) -> Iterator[str]:
    """Yield nothing where both folders have the same texts, else which differ, and how the first one does."""
    names = sorted({str(file.relative_to(top)) for top in (before, now) for file in top.rglob("*") if file.is_file()})
    if not names:
        raise SystemExit(f"nothing is kept in {before} and {now}: keep it with the command keep")
    differ = [name for name in names if _text(before / name) != _text(now / name)]
    if differ:
        yield f"{len(differ)} of {len(names)} files differ: {', '.join(differ[:20])}"
        yield from difference(differ[0], _text(before / differ[0]), _text(now / differ[0]))


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def difference(name: str, before: str, now: str) -> Iterator[str]:
    """Yield the lines of a unified difference from the first line that differs; JSON has a field a line there."""
    one, other = (_expanded(lines) for lines in _from_first_difference(before.split("\n"), now.split("\n")))
    one, other = _from_first_difference(one, other)
    lines = [*difflib.unified_diff(one, other, f"before/{name}", f"now/{name}", lineterm="")]
    yield from lines[:SHOWN]
    if len(lines) > SHOWN:
        yield f"… and {len(lines) - SHOWN} more lines"


def _from_first_difference(before: list[str], now: list[str]) -> tuple[list[str], list[str]]:
    first = next(n for n, (one, other) in enumerate(zip_longest(before, now)) if one != other)
    part = slice(max(first - 3, 0), first + AROUND)
    return before[part], now[part]


def _expanded(lines: Iterable[str]) -> list[str]:
    return [part for line in lines for part in _fields(line)]


def _fields(line: str) -> list[str]:
    try:
        return json.dumps(json.loads(line), indent=1, ensure_ascii=False).split("\n")
    except ValueError:
        return [line]


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = asked.add_subparsers(dest="command", required=True)
    keeps = commands.add_parser("keep")
    keeps.add_argument("folder", type=Path)
    keeps.add_argument("--checkout", type=Path, default=ROOT)
    keeps.add_argument("--limit", type=int, default=0)
    keeps.add_argument("--only", nargs="+", default=[], choices=[part.name for part in PARTS])
    compares = commands.add_parser("compare")
    compares.add_argument("before", type=Path)
    compares.add_argument("now", type=Path)
    chosen = asked.parse_args()
    if chosen.command == "keep":
        keep(chosen.checkout.resolve(), chosen.folder, chosen.only, chosen.limit)
        return 0
    found = [*compare(chosen.before, chosen.now)]
    print("\n".join(found) or "equal")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
