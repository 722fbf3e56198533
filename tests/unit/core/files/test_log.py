"""The log goes to its file, and nowhere else."""

from __future__ import annotations

import builtins
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_harness.core.errors import SettingsError
from rag_harness.core.log import close_log, log, log_name, name_log, open_log


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    close_log()


def lines(folder: Path) -> list[str]:
    return (folder / "mine.log").read_text(encoding="utf-8").splitlines()


def test_every_level_and_tracebacks_go_to_the_file_alone(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    open_log(tmp_path / "deep" / "logs", "mine")
    log.debug("e2-q1: ok")
    log.info("Indexed %d chunks", 512)
    try:
        raise ValueError("lost")
    except ValueError as error:
        log.error("e2-q2: failed", exc_info=error)
    written = lines(tmp_path / "deep" / "logs")
    assert [line.partition(",")[2].partition(" ")[2] for line in written[:3]] == [
        "main DEBUG e2-q1: ok",
        "main INFO Indexed 512 chunks",
        "main ERROR e2-q2: failed",
    ]
    assert written[3] == "    Traceback (most recent call last):"
    assert written[-1] == "    ValueError: lost"
    assert (caplog.records, capfd.readouterr()) == ([], ("", ""))


def test_a_traceback_is_written_without_parsing_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.11 must not parse in a thread while pytest does."""
    open_log(tmp_path, "mine")
    parsed: list[object] = []

    def fails() -> float:
        return 1 + (1 / 0)

    try:
        try:
            fails()
        except ZeroDivisionError as error:
            raise ValueError("lost") from error
    except ValueError as error:
        with monkeypatch.context() as noting:
            noting.setattr("ast.parse", lambda *given, **_: parsed.append(given))
            log.error("failed", exc_info=error)
    written = [line.strip() for line in lines(tmp_path)]
    assert [line for line in written if "Error: " in line] == [
        "ZeroDivisionError: division by zero",
        "ValueError: lost",
    ]
    assert written.count("return 1 + (1 / 0)") == 1
    assert not any(line.startswith(("^", "~")) for line in written)
    assert parsed == []


@pytest.mark.skipif(sys.version_info < (3, 11), reason="groups of errors came with Python 3.11")
def test_a_group_of_errors_is_written_with_its_errors(tmp_path: Path) -> None:
    open_log(tmp_path, "mine")
    kind = getattr(builtins, "ExceptionGroup", ValueError)
    try:
        raise kind("two", [ValueError("first"), KeyError("second")])
    except Exception as error:
        log.error("failed", exc_info=error)
    assert "\n".join(lines(tmp_path)).count("| ") >= 3
    assert {"first", "second"} <= {word.strip("'") for line in lines(tmp_path) for word in line.split()}


def test_a_lone_surrogate_is_logged_and_nothing_is_printed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    open_log(tmp_path, "mine")
    log.error("said \ud800")
    assert lines(tmp_path)[0].endswith("said \\ud800")
    assert capfd.readouterr() == ("", "")


def test_a_second_log_closes_the_first_and_appends(tmp_path: Path) -> None:
    for name in ("a", "b", "a"):
        open_log(tmp_path / name, "mine")
        log.info("to %s", name)
    close_log()
    log.info("to nobody")
    assert [line.rpartition(" ")[2] for line in lines(tmp_path / "a")] == ["a", "a"]
    assert len(lines(tmp_path / "b")) == 1


@pytest.mark.parametrize("blocked", ["logs", "logs/mine.log/x"])
def test_a_log_that_cannot_be_written_says_how_to_move_it(tmp_path: Path, blocked: str) -> None:
    (tmp_path / blocked).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / blocked).write_text("in the way")
    with pytest.raises(SettingsError, match=r"No log can be written to .*logs: .*--rag-logs DIR or RAG_LOGS\."):
        open_log(tmp_path / "logs", "mine")


def test_it_is_outside_loggings_tree() -> None:
    assert log.parent is None
    assert "rag_harness" not in logging.Logger.manager.loggerDict


def test_lines_wait_for_the_name_of_the_log_and_are_dropped_without_one(tmp_path: Path) -> None:
    open_log(tmp_path)
    log.info("first")
    assert list(tmp_path.iterdir()) == []
    name_log("mine")
    log.info("second")
    name_log("other")
    assert [line.rpartition(" ")[2] for line in lines(tmp_path)] == ["first", "second"]
    open_log(tmp_path / "dropped")
    log.info("third")
    close_log()
    assert list((tmp_path / "dropped").iterdir()) == []


@pytest.mark.parametrize(
    ("suites", "name"),
    [
        (["mine"], "mine"),
        (["mine", "a/b c"], "a_b_c_mine"),
        (["golden"], "golden"),
        (["e3", "golden"], "e2_to_e4"),
        (list("fedcba"), "a_b_c_and_3_more"),
    ],
)
def test_a_log_is_named_by_what_a_run_asks(suites: list[str], name: str) -> None:
    assert log_name(suites) == name
