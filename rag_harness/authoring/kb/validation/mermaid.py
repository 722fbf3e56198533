"""Checks that diagrams are valid Mermaid: with the real parser if there is one, else by their structure."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rag_harness.authoring.kb.page import At
from rag_harness.authoring.kb.validation.material import Material
from rag_harness.authoring.kb.validation.mermaid_shape import shape_problem
from rag_harness.authoring.kb.validation.report import CheckResult

MODULES = "RAG_MERMAID_MODULES"
_SCRIPT = Path(__file__).with_name("mermaid_parser.mjs")
_LINE = re.compile(r"error on line (\d+)", re.IGNORECASE)
_PLACE = re.compile(r"Parse error on line \d+: (?:\.\.\.)?")
_EXPECTING = re.compile(r"Expecting .{0,500}, got")
_COMMENT = re.compile(r"^[ \t]*%%(?!\{).*$", re.MULTILINE)


class NoParserError(Exception):
    """The real parser cannot be used; the message says why and how to get it."""


@dataclass(frozen=True)
class Parsed:
    """The result for each diagram (None is valid), and the parser that gave it."""

    problems: list[At | None]
    how: str


def checks(material: Material) -> list[CheckResult]:
    """Return the check of all diagrams."""
    placed = [(page.doc_id, diagram) for page in material.pages.values() for diagram in page.diagrams]
    if not placed:
        return [CheckResult("mermaid", "0 diagrams")]
    parsed = parse([diagram.text for _, diagram in placed], material.folder)
    check = CheckResult("mermaid", f"{len(placed)} diagrams", how=parsed.how)
    for (name, diagram), problem in zip(placed, parsed.problems, strict=True):
        if problem is not None:
            check.error(material.at(name, diagram.line + problem.line), f"{problem.text} Mend the diagram.")
    return [check]


def parse(diagrams: Sequence[str], folder: Path) -> Parsed:
    """Parse ``diagrams`` with npm's mermaid if it is found from ``folder``; else check their structure."""
    try:
        return _really_parsed(diagrams, find_mermaid(folder))
    except NoParserError as error:
        return Parsed([shape_problem(text) for text in diagrams], f"structural check only: {error}")


def find_mermaid(folder: Path) -> Path:
    """Return the folder of the npm package: from RAG_MERMAID_MODULES, the current folder or that of the pages, and up.

    Raises:
        NoParserError: the package is not found; the message names the places. A package among the pages is never run.
    """
    named = os.environ.get(MODULES)
    starts = (Path.cwd(), folder.resolve().parent)
    above = [place / "node_modules" for start in starts for place in (start, *start.parents)]
    for place in [Path(named)] if named else dict.fromkeys(above):
        if (place / "mermaid" / "package.json").is_file():
            return place / "mermaid"
    where = named or f"node_modules of {starts[0]}, {starts[1]} or above"
    raise NoParserError(f"no npm package mermaid in {where}; npm install mermaid, or set {MODULES}")


def _really_parsed(diagrams: Sequence[str], package: Path) -> Parsed:
    # The parser drops comments together with their lines, and then counts lines wrongly.
    answer = _ask_node([_COMMENT.sub("", text) for text in diagrams], package)
    problems = [_problem(text, message) for text, message in zip(diagrams, answer["results"], strict=True)]
    return Parsed(problems, f"parsed by npm mermaid {answer['version']}")


def _ask_node(diagrams: Sequence[str], package: Path) -> dict[str, list[str | None]]:
    node = shutil.which("node")
    if node is None:
        raise NoParserError("node is not on the PATH")
    command = [node, str(_SCRIPT), str(package.resolve())]
    limit = 60 + len(diagrams) / 10
    try:
        ran = subprocess.run(
            command, input=json.dumps(diagrams).encode(), capture_output=True, timeout=limit, check=True
        )
        answer: dict[str, list[str | None]] = json.loads(ran.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        raise NoParserError(f"npm mermaid in {package} did not answer in {limit:.0f} s") from None
    except (subprocess.CalledProcessError, OSError, ValueError, IndexError) as error:
        said = (getattr(error, "stderr", None) or b"").decode("utf-8", "replace").strip().split("\n")
        why = next((line for line in said if "Error" in line), said[-1]) or str(error)
        raise NoParserError(f"npm mermaid in {package} did not run: {why}") from None
    return answer


def _problem(text: str, message: str | None) -> At | None:
    if message is None:
        return None
    found = _LINE.search(message)
    # The parser counts one line too many if the error is at the end of the text.
    line = min(int(found[1]), max(1, text.count("\n"))) if found else 1
    said = " ".join(part.strip() for part in message.splitlines() if part.strip(" -^"))
    said = _EXPECTING.sub("is unexpected:", _PLACE.sub("", said))
    return At(line, f"the parser says: {said[:200].rstrip('.')}.")
