"""Checks for runs that would end as a bare "no tests ran": ``-m e9`` selects nothing, a folder has no test."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from rag_harness.errors import SettingsError, unknown
from rag_harness.plugin.options import command_line

if TYPE_CHECKING:
    import pytest

_NAME = re.compile(r"[A-Za-z_]\w*")
_PLAIN = re.compile(r"[\w\s()]{1,500}")
_WORDS = {"and", "or", "not", "True", "False", "None"}


def check_marker_expression(config: pytest.Config) -> None:
    """Make sure that every name in ``-m`` is a registered marker.

    Raises:
        SettingsError: a name is not registered; the message lists the experiments.
    """
    names = markers_in(config)
    known = {re.split(r"[:(]", line)[0].strip() for line in config.getini("markers")}
    for name in sorted(names - known):
        raise SettingsError(f"-m: {unknown('marker', name, known)}")


def markers_in(config: pytest.Config) -> set[str]:
    """Return the names in ``-m``."""
    return set(_NAME.findall(config.getoption("markexpr", "") or "")) - _WORDS


def never_selected(config: pytest.Config, marks: Collection[str], experiments: Collection[str]) -> bool:
    """Return whether ``-m`` leaves out every test with these markers, so that no more than one need be made.

    Only where the expression names experiments and nothing else: a plugin may add any other marker to a test later.
    """
    names = markers_in(config)
    if not names or not names <= set(experiments):
        return False
    expression = config.getoption("markexpr")
    if not _PLAIN.fullmatch(expression):
        return False
    decided = _NAME.sub(lambda found: _decided(found[0], marks), expression)
    try:
        return not _value(ast.parse(decided.strip(), mode="eval").body)
    except SyntaxError:
        return False  # pytest says what is wrong with it


def _decided(name: str, marks: Collection[str]) -> str:
    return name if name in _WORDS else str(name in marks)


def _value(node: ast.expr) -> bool:
    if isinstance(node, ast.BoolOp):
        values = [_value(each) for each in node.values]
        return all(values) if isinstance(node.op, ast.And) else any(values)
    if isinstance(node, ast.UnaryOp):
        return not _value(node.operand)
    return bool(ast.literal_eval(node))


def hint_without_tests(config: pytest.Config, items: Sequence[pytest.Item]) -> str | None:
    """Say what to do if options of ours were typed and there is no test at all; else None."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    stats = reporter.stats if reporter else {}
    # If tests could not be collected, their error says why there are none.
    if items or not command_line(config) or stats.get("deselected") or stats.get("error"):
        return None
    return (
        "rag: no test is here that asks an experiment. --rag-run=e2,e3 asks two of ours about your documents; "
        "rag-harness init makes a suite of your own"
    )
