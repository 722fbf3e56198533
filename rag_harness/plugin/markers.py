"""What would end as a bare "no tests ran": ``-m e9`` selects nothing, a folder of documents has no test."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag_harness.errors import SettingsError, unknown
from rag_harness.plugin.options import command_line

if TYPE_CHECKING:
    import pytest

_NAME = re.compile(r"[A-Za-z_]\w*")
_WORDS = {"and", "or", "not", "True", "False", "None"}


def check_marker_expression(config: pytest.Config) -> None:
    """Make sure that every name in ``-m`` is a registered marker.

    Raises:
        SettingsError: one is not; lists the experiments.
    """
    names = set(_NAME.findall(config.getoption("markexpr", "") or "")) - _WORDS
    known = {re.split(r"[:(]", line)[0].strip() for line in config.getini("markers")}
    for name in sorted(names - known):
        raise SettingsError(f"-m: {unknown('marker', name, known)}")


def hint_without_tests(config: pytest.Config, items: Sequence[pytest.Item]) -> str | None:
    """Say what to do where options of ours were typed and there is no test at all; None anywhere else."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if items or not command_line(config) or (reporter and reporter.stats.get("deselected")):
        return None
    return (
        "rag: no test is here that asks an experiment. e1 to e4 are tests of the rag_harness repository: run this "
        "there, --rag-kb takes any folder; or have a suite of your own here: rag-harness init"
    )
