"""A run without pytest's terminal prints nothing, and its gates and tests fail it as ever."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import Suite


@pytest.mark.parametrize(
    ("gate", "status"),
    [
        ("e3: recall@5 >= 0.5", pytest.ExitCode.OK),
        ("e3: recall@5 <= 0.5", pytest.ExitCode.TESTS_FAILED),
        ("e3: recall@05 <= 0.5", pytest.ExitCode.USAGE_ERROR),
    ],
)
def test_without_a_terminal_gates_decide(suite: Suite, gate: str, status: pytest.ExitCode) -> None:
    result = suite.run("-p", "no:terminal", f"--rag-gate={gate}")
    assert result.ret == status
    assert result.outlines == []
    assert "INTERNALERROR" not in result.stderr.str()
