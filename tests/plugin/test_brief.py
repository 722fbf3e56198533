"""The end of a run as a person sees it: short, with what to know first, and more where it is asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from rag_harness.frontends.pytest_plugin.end_of_run import SECTIONS, SHORT_SUMMARY
from tests.plugin.conftest import QUERIES, TEST, Suite
from tests.plugin.study import ROOT

HEAD = "rag in brief"
TWO = """
import pytest

@pytest.mark.e2
@pytest.mark.e3
def test_answers(rag_result):
    assert rag_result.ok, rag_result.why
"""


@pytest.fixture
def usual(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """Print what a person sees who asks for nothing."""
    monkeypatch.delenv("RAG_SECTIONS")
    return suite


def section(lines: Sequence[str], head: str = HEAD) -> list[str]:
    """Return the lines below a head, up to the next one or an empty line."""
    (start,) = [n for n, line in enumerate(lines) if re.fullmatch(f"=+ {head} =+", line)]
    rest = list(lines[start + 1 :])
    return rest[: next((n for n, line in enumerate(rest) if re.match(r"$|=|\d+ passed", line)), len(rest))]


def heads(lines: Sequence[str]) -> list[str]:
    return [found[1] for line in lines if (found := re.fullmatch("=+ (rag .*?|rag) =+", line))]


def test_without_a_wish_a_run_ends_with_what_to_know_first(usual: Suite) -> None:
    lines = usual.run("--rag-gate=e3: recall@5 >= 0.1", "--rag-attribute").outlines
    assert heads(lines) == [HEAD, "rag causes in brief"]
    found = section(lines)
    assert len(found) <= 14
    assert max(map(len, found)) <= 80
    assert found[0].startswith("rag      4 of 4 answered")
    assert any(line.startswith("gates    PASS   1 passed, 0 failed") for line in found)
    assert lines[-1] == "         rag-harness report output -o report.html"


def test_a_failed_gate_is_first_with_the_trial_that_counts_most(usual: Suite) -> None:
    lines = usual.run("--rag-gate=e3: token_f1 >= 0.99", "--rag-gate=e3: recall@5 >= 0.1").outlines
    found = section(lines)
    assert found[0].startswith("FAILED   e3: token_f1 >= 0.99")
    assert re.fullmatch(r" +worst: e3-q_direct_001", found[1])


def test_quiet_is_where_answers_come_from_the_gates_and_the_next_command(usual: Suite) -> None:
    usual.run()
    lines = [line for line in usual.run("-q", "--rag-gate=e3: recall@5 >= 0.1").outlines if line]
    assert heads(lines) == []
    assert re.fullmatch(r"answers: 4 reused from the run of .* UTC; 0 new", lines[-5])
    assert [line.split()[0] for line in lines[-4:-1]] == ["gates", "rag", "next"]
    assert not any(line.startswith("note") or "nearest to failing" in line for line in lines)


def test_quiet_keeps_the_notes_that_touch_a_verdict(usual: Suite) -> None:
    usual.write_queries([*QUERIES, {**QUERIES[0], "query_id": "q_again", "metadata": {"reviewed": "no"}}])
    gates = ("--rag-gate=e3: recall@5 >= 0", "--rag-gate=e3: hit@5 >= baseline")
    quiet = usual.run("-q", *gates, "-k", "answers")
    said = " ".join(quiet.stdout.str().split())
    assert "note cannot fail: e3: recall@5 >= 0, which every value meets" in said
    assert "note 1 gate not judged: no baseline is named: --rag-compare NAME" in said
    assert "note 1 of 5 questions asks what another asks" in said
    assert "and gates leave them out" in said
    assert "no page in context_reference" not in said


def test_verbose_prints_all_sections_and_a_choice_those_that_are_named(usual: Suite) -> None:
    usual.pytester.makepyfile(TWO)
    assert {"rag", "rag gates", HEAD} <= {*heads(usual.run("-v", "--rag-gate=e3: recall@5 >= 0.1").outlines)}
    assert heads(usual.run("--rag-sections=trials").outlines) == ["rag"]
    assert heads(usual.run("-q", "--rag-sections=trials, brief").outlines) == ["rag", HEAD]


def test_an_unknown_section_is_refused_before_anything_runs(usual: Suite) -> None:
    result = usual.run("--rag-sections=trails")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *'trails'*trials*"])
    assert usual.rows() == []


def test_equal_experiments_are_said_to_be_equal(usual: Suite) -> None:
    usual.pytester.makepyfile(TWO)
    found = " ".join(" ".join(section(usual.run("--rag-attribute", "--rag-top-k=1").outlines)).split())
    assert "e2 = e3" in found or "e2 and e3 are equal" in found or "NOT SURE" in found


def test_experiments_that_this_run_did_not_look_at_are_named(usual: Suite) -> None:
    for file in usual.path.glob("test_*.py"):
        file.unlink()
    source = "import pytest\n\n@pytest.mark.{0}\ndef test_{0}(rag_result):\n    assert rag_result.ok\n"
    usual.pytester.makepyfile(**{f"test_{name}": source.format(name) for name in ("e2", "e3")})
    gate = "--rag-gate=e3: recall@5 >= e2"  # for which the rows of e2 are looked up
    assert "earlier run" not in usual.run("-m", "e2", gate).stdout.str()
    found = section(usual.run("-m", "e3", gate).outlines)
    assert "note     e2 is of an earlier run; this one did not look at it" in found
    quiet = usual.run("-q", "-m", "e3", gate)
    quiet.stdout.fnmatch_lines(["rag      8 of 8 answered, * wrong (MOCK) (e2 in an earlier run); *"])


def test_a_run_that_ends_early_does_not_say_that_no_gate_is_set(usual: Suite) -> None:
    usual.pytester.makepyfile(f"{TEST}\n\ndef test_stops():\n    raise KeyboardInterrupt\n")
    found = usual.run("--rag-gate=e3: recall@5 >= 0.1").outlines
    assert not any("nothing stops a release" in line for line in found)


def test_other_tests_print_nothing(usual: Suite) -> None:
    usual.pytester.makepyfile("def test_other():\n    pass\n")
    assert heads(usual.run().outlines) == []


def test_the_study_takes_26_lines_of_80_columns_and_the_docs_show_them(study: Path) -> None:
    found = section((study / "said.txt").read_text().splitlines())
    assert len(found) <= 25
    shown = re.findall(r"```\n(.*?)```", (ROOT / "docs" / "how-to" / "terminal.md").read_text(), re.DOTALL)[
        0
    ].splitlines()
    # The folder of the results is the only thing that may differ, and commands alone may be wider.
    assert [line.replace(str(study / "out"), "output") for line in found] == shown
    assert [line for line in shown if len(line) > 80] == []


def test_the_docs_name_every_section() -> None:
    text = (ROOT / "docs" / "reference" / "terminal.md").read_text()
    named = {name for cell in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE) for name in re.findall(r"`(\w+)`", cell)}
    assert {each.name for each in SECTIONS if each is not SHORT_SUMMARY} <= named
