"""A misspelt command, option or choice is told with what was meant, and with the usage of the command it is for."""

from __future__ import annotations

import pytest

from rag_harness.__main__ import CANNOT_RUN, main


@pytest.mark.parametrize(
    ("command", "usage", "said"),
    [
        (["raport"], "rag-harness [-h]", "Did you mean 'report'?"),
        (["queries", "reviwe", "x"], "rag-harness queries [-h]", "Did you mean 'review'?"),
        (["init", "--exmaple"], "rag-harness init [-h]", "arguments: --exmaple. Did you mean '--example'?"),
        (["report", "x", "--formt=md"], "rag-harness report [-h]", "--formt=md. Did you mean '--format'?"),
        (["kb", "graph", "x", "y", "--zzz"], "rag-harness kb graph [-h]", "unrecognized arguments: y --zzz."),
        (["report", "--format", "htlm"], "rag-harness report [-h]", "Did you mean 'html'?"),
    ],
)
def test_what_was_meant_is_said(command: list[str], usage: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(command)
    told = capsys.readouterr().err.strip()
    assert ended.value.code == CANNOT_RUN
    assert told.startswith(f"usage: {usage}")
    assert told.endswith(said)
