"""Prints failures that say the same once, with their number. With ``-vv``, and for other formats, each stays.

Two failures of one test say the same if what they say differs by the question alone, or by chance: an address in
memory, an id of a request, a time.
"""

from __future__ import annotations

import copy
import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rag_harness.plugin.failed_trial import is_short
from rag_harness.plugin.items import trial_id_of, trial_of
from rag_harness.plugin.stash_keys import RETRIEVAL, SHIPPED
from rag_harness.shown.terminal import line
from rag_harness.words.chance import without_chance

if TYPE_CHECKING:
    import pytest

_QUOTED = 12
"""Characters of a question from which on a message is taken to quote it. It may quote only the beginning."""


def note(item: pytest.Item, report: pytest.TestReport) -> None:
    """Let the report of a failed trial carry what it says, so that those that say the same are found."""
    trial = trial_id_of(item)
    if trial is None or not report.failed or not is_short(item.config):
        return
    said = _without_question(_said(item, report), str(trial), trial.query_id, _question(item))
    test = f"{report.when} {report.nodeid.partition('[')[0]}"
    # xdist sends only plain types.
    vars(report).update(rag_equal=[hashlib.sha256(f"{test}\n{said}".encode()).hexdigest(), str(trial)])


@contextmanager
def printed_once(terminal: pytest.TerminalReporter) -> Iterator[None]:
    """Let pytest print failures that say the same once. What it counts stays."""
    names = [name for name in ("failed", "error") if name in terminal.stats]
    each: dict[str, list[Any]] = {name: terminal.stats[name] for name in names}
    terminal.stats.update((name, _first_of_each(reports)) for name, reports in each.items())
    try:
        yield
    finally:
        terminal.stats.update(each)


def _said(item: pytest.Item, report: pytest.TestReport) -> str:
    """Return why a test failed: the error of a trial without an answer, the error of a test and its place, or all."""
    shipped = item.stash.get(SHIPPED, None)
    if report.when == "call" and shipped is not None and not shipped.row.ok:
        return str(shipped.row.error_text)
    if report.when == "call" and RETRIEVAL in item.stash and item.stash[RETRIEVAL].error:
        return str(item.stash[RETRIEVAL].error)
    crash: Any = getattr(report.longrepr, "reprcrash", None)
    style = getattr(getattr(report.longrepr, "reprtraceback", None), "style", "native")
    is_whole = crash is None or style == "native"  # what failed_trial has shortened
    return str(report.longrepr) if is_whole else f"{crash.path}:{crash.lineno}: {crash.message}"


def _question(item: pytest.Item) -> str:
    trial = trial_of(item)
    if trial is not None:
        return str(trial.case.query.text)
    return str(item.stash[RETRIEVAL].query) if RETRIEVAL in item.stash else ""


def _without_question(said: str, trial: str, query_id: str, question: str) -> str:
    """Return what was said without the question, its id, and what differs by chance."""
    said, question = " ".join(said.split()), " ".join(question.split())
    found = said.find(question[:_QUOTED]) if question else -1
    while found >= 0:
        end = found + _shared(said[found:], question)
        said = f"{said[:found]}<question>{said[end:]}"
        found = said.find(question[:_QUOTED], found + len("<question>"))
    for name in (trial, query_id):
        said = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", "<id>", said)
    return without_chance(said)


def _shared(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _first_of_each(reports: Sequence[Any]) -> list[Any]:
    """Return the reports without those that say what an earlier one says, which has their number."""
    by_said: dict[str, list[Any]] = {}
    for number, report in enumerate(reports):
        by_said.setdefault(getattr(report, "rag_equal", (str(number),))[0], []).append(report)
    return [_with_number(group) if len(group) > 1 else group[0] for group in by_said.values()]


def _with_number(reports: Sequence[Any]) -> Any:
    """Return a copy of the first report that says how many are like it. Others still have the report itself."""
    from rag_harness.report.failed_message import others_alike

    first = copy.copy(reports[0])
    below = line(others_alike([report.rag_equal[1] for report in reports[1:]]))
    first.longrepr = _Numbered(first.longrepr, len(reports), below)
    return first


class _Crash:
    """What pytest's short summary reads of a failure."""

    def __init__(self, message: str) -> None:
        self.message = message


class _Numbered:
    """What pytest shows of a failure, and a line below it.

    Args:
        found: pytest's description, or a text.
        n: how many failures say this.
        below: the line.
    """

    def __init__(self, found: Any, n: int, below: str) -> None:
        self._found, self._below = found, below
        crash = getattr(found, "reprcrash", None)
        said = crash.message if crash is not None else found if isinstance(found, str) else "the same error"
        self.reprcrash = _Crash(f"{n:,} × {said}")

    def __str__(self) -> str:
        return f"{self._found}\n{self._below}"

    def toterminal(self, out: Any) -> None:
        """Write it as pytest does."""
        if hasattr(self._found, "toterminal"):
            self._found.toterminal(out)
        else:
            out.line(str(self._found))
        out.line(self._below)
