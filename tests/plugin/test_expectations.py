"""What cases demand of their answers, from the line of the question to gate, explanation and report. Runs the page."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from rag_harness.__main__ import main
from rag_harness.core.settings.endpoints import read_endpoints
from rag_harness.core.settings.profiles import parsed_toml
from rag_harness.records.expectations import expectations_of, known_kinds
from tests.plugin.conftest import QUERIES, Suite

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGE = (DOCS / "how-to" / "expectations.md").read_text(encoding="utf-8")
OF_ONE = (DOCS / "how-to" / "expectations-of-an-experiment.md").read_text(encoding="utf-8")
OWN = (DOCS / "how-to" / "own-expectation.md").read_text(encoding="utf-8")
SNAPSHOTS = (DOCS / "how-to" / "snapshots.md").read_text(encoding="utf-8")
PIPELINE = """
import pytest
from rag_harness import Answer, Chunk, Hit, PipelineOutput

class Fixed:
    def answer(self, query):
        text = "You can return a lamp within 45 days."
        hit = Hit(Chunk("returns.md#1", "returns.md", text, 0, len(text)), 1.0, 1)
        return PipelineOutput(Answer(text + " [Source 1]", citations=(1,)), context=(hit,))

@pytest.fixture(scope="session")
def rag_pipeline():
    return Fixed()

@pytest.mark.rag_experiment("mine")
def test_it(rag_result):
    assert rag_result.ok
"""


def blocks(kind: str, page: str = PAGE) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", page, re.DOTALL)


@pytest.fixture
def fixed(suite: Suite) -> Suite:
    suite.pytester.makepyfile(PIPELINE)
    return suite


def expecting(suite: Suite, *expect: object) -> None:
    suite.write_queries([{"query_id": f"q{n}", "query": "lamp?", "expect": each} for n, each in enumerate(expect)])


def test_the_questions_of_the_page_run_and_its_gates_name_what_is_not_kept(fixed: Suite) -> None:
    lines = [json.loads(line) for line in blocks("json")[0].splitlines()]
    fixed.write_queries(lines)
    gates = ("--rag-gate=mine: expectations >= 0.9", "--rag-gate=mine: expect_cites >= 0.9")
    text = fixed.run(*gates).stdout.str()
    assert re.search(r"failed +\S+: expectations >= 0\.9 +0\.667 ", text), text
    assert re.search(r"passed +\S+: expect_cites >= 0\.9 +1\.000 ", text), text


def test_the_table_of_the_page_names_every_kind() -> None:
    reference = (DOCS / "reference" / "expectations.md").read_text(encoding="utf-8")
    table = reference.partition("## Kinds")[2].partition("A kind of your own")[0]
    named = {
        word for row in re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE) for word in re.findall(r"`(\w+)`", row)
    }
    assert named >= {*known_kinds()}
    assert named - {*known_kinds()} == {"at_least", "within", "unit"}


def test_a_kind_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, object] = {}
    exec(blocks("python", OWN)[0], names)
    made = names["Polite"]()  # type: ignore[operator]
    from rag_harness.records import expectations as looking
    from rag_harness.records import expectations as reading
    from rag_harness.records.expectations import AnswerSeen

    monkeypatch.setattr(reading, "registered", lambda _: {"polite": None})
    monkeypatch.setattr(reading, "kind_of", lambda _: made)
    monkeypatch.setattr(looking, "kind_of", lambda _: made)
    found, problems = expectations_of([{"polite": True}])
    assert problems == []
    assert looking.looked_at(found, AnswerSeen("Hello there"))[0].kept
    assert expectations_of([{"polite": 3}])[1] == ["0: polite: write true"]


def test_a_kind_of_ones_own_is_installed_as_the_page_says(fixed: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    ((group, points),) = parsed_toml(blocks("toml", OWN)[0])["project"]["entry-points"].items()
    about = fixed.path / "site" / "polite-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: polite\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()))
    (fixed.path / "site" / "my_package").mkdir()
    (fixed.path / "site" / "my_package" / "polite.py").write_text(blocks("python", OWN)[0])
    monkeypatch.setenv("PYTHONPATH", str(fixed.path / "site"))
    expecting(fixed, [{"polite": True}], [{"not": {"polite": True}}])
    text = fixed.run("--rag-gate=mine: expect_polite >= 0.5").stdout.str()
    assert re.search(r"passed +mine: expect_polite >= 0\.5 +0\.500 ", text), text


def test_the_mark_of_the_page_and_the_table_of_a_service(suite: Suite) -> None:
    (file,) = suite.path.glob("test_*.py")
    file.write_text(blocks("python", OF_ONE)[0])
    found = suite.run("--rag-gate=e3: expect_max_words >= 1", "--rag-gate=e3: expect_contains >= 1")
    found.assert_outcomes(passed=4)
    assert len(re.findall(r"passed +e3: expect_(?:max_words|contains) >= 1 +1\.000 ", found.stdout.str())) == 2
    (suite.path / "pyproject.toml").write_text(blocks("toml", OF_ONE)[0])
    (spec,) = read_endpoints(suite.path, ())
    said = [json.loads(each) for each in spec.expect]
    assert said == [{"max_words": 80}, {"not": {"contains": "as an AI"}}]
    assert expectations_of(said)[1] == []


def test_each_command_of_the_page_runs(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest")
    lines = [json.loads(line) for line in blocks("json")[0].splitlines()]
    lines[0]["expect"] += [{"snapshot": True}]
    suite.write_queries(lines)
    shutil.copytree(suite.path / "kb", suite.path / "docs")
    for command in re.findall(r"^    ((?:pytest|rag-harness|pip)\b.*?)(?:  .*)?$", PAGE + SNAPSHOTS, re.MULTILINE):
        program, *words = shlex.split(command)
        if program == "pip":
            extra = words[-1].partition("[")[2].removesuffix("]")
            assert extra in parsed_toml((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        elif program == "pytest":
            found = suite.run(*words)
            gates = [word for word in words if ">=" in word]
            assert found.ret == (1 if gates else 0), found.stdout.str()
            assert len(re.findall(r"^(?:passed|failed|undecided) +e3: ", found.stdout.str(), re.MULTILINE)) >= len(
                gates
            )
        else:
            assert main(words) == 0
            assert "expected" in capsys.readouterr().out
    assert "# name: e3-q1\n" in (suite.path / "snapshots" / "e3.ambr").read_text()


def test_what_is_wrong_is_named_with_file_and_line_before_anything_is_asked(fixed: Suite) -> None:
    expecting(fixed, [{"contains": "45 days"}], [{"contain": "45 days"}, {"regex": "(?=a)"}])
    stopped = fixed.run()
    stopped.stdout.fnmatch_lines(
        [
            "*queries.jsonl:2: q1: expect: 0: Unknown kind of expectation 'contain'. Did you mean 'contains'?*",
            "*queries.jsonl:2: q1: expect: 1: regex: *look-around*",
        ]
    )
    assert not list(fixed.pytester.path.glob("output/*.jsonl"))
    kept = fixed.run("--rag-bad-queries=skip")
    kept.assert_outcomes(passed=1)
    assert "answers that break what" not in kept.stdout.str()


def test_what_every_answer_owes_stands_in_the_ini_file(fixed: Suite) -> None:
    ini = fixed.path / "tox.ini"
    ini.write_text(ini.read_text() + "\n" + blocks("ini")[0].partition("[pytest]\n")[2])
    expecting(fixed, [{"contains": "54 days"}], [{"contains": "45 days"}])
    found = fixed.run("--rag-gate=mine: expectations >= 0.9", "--rag-gate=mine: expect_links >= 1")
    text = found.stdout.str()
    assert re.search(r"failed +mine: expectations >= 0\.9 +0\.833", text)
    assert re.search(r"passed +mine: expect_links >= 1 +1\.000", text)
    wrong = fixed.run('--rag-expect={"max_word": 120}')
    wrong.stdout.fnmatch_lines(["*rag_expect: 0: Unknown kind of expectation 'max_word'. Did you mean 'max_words'?*"])


def test_a_failed_gate_names_what_its_worst_trial_does_not_keep_and_what_stands_there(
    fixed: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAG_SECTIONS", raising=False)
    expecting(fixed, [{"contains": "45 days"}], [{"max_words": 3}, {"contains": "54 days", "must": True}])
    text = fixed.run("--rag-gate=mine: expectations >= 0.9").stdout.str()
    assert "worst: mine-q1: contains “54 days”: the nearest is “45 days.”" in text
    others = ("--rag-gate=mine: token_f1 >= 0.9", "--rag-gate=mine: recall@5 >= 0.9")
    other = fixed.run(*others, "--rag-report=report.html").stdout.str()
    assert "contains" not in other
    # Without a gate the figure stands in the end of a run and in the report.
    assert "expectations 0.500" in other.replace("\u00a0", " ")
    page = (fixed.path / "report.html").read_text(encoding="utf-8")
    assert re.search(r"<th[^>]*>(<[^>]+>)*expectations", page)


def test_explain_says_what_is_not_kept(fixed: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    expecting(fixed, [{"contains": "54 days", "must": True}, {"cites": "returns.md"}, {"decides": "pass"}])
    fixed.run()
    assert main(["explain", "output", "mine-q0", "--rows-only"]) == 0
    said = capsys.readouterr().out
    assert "contains “54 days”: the nearest is “45 days.”" in said
    assert "decides “pass”: the pipeline decides nothing" in said


@pytest.mark.long
def test_a_run_whose_cases_expect_nothing_says_nothing_of_it(suite: Suite) -> None:
    suite.write_queries(QUERIES)
    text = suite.run("-v").stdout.str()
    assert "expectations" not in text
    assert "expected" not in text


def test_broken_expectations_that_no_gate_looks_at_are_noted(fixed: Suite) -> None:
    expecting(fixed, [{"contains": "45 days"}], [{"contains": "46 days", "must": True}])
    noted = "note     answers that break what their questions expect: 1 of 2 of mine. No gate"
    result = fixed.run("-k", "test_it", "--rag-gate=mine: error_rate <= 0")
    result.stdout.fnmatch_lines([noted, "*looks at it; set one, e.g. mine: expectations >= 0.9"])
    assert noted not in fixed.run("-k", "test_it", "--rag-gate=mine: expect_contains >= 0.1").stdout.str()


def test_answers_without_a_word_are_noted_where_something_is_expected(fixed: Suite) -> None:
    fixed.pytester.makepyfile(PIPELINE.replace('text + " [Source 1]", citations=(1,))', '""), retrieval_only=True'))
    expecting(fixed, [{"contains": "45 days"}], [])
    result = fixed.run("-k", "test_it", "--rag-gate=mine: error_rate <= 0")
    result.stdout.fnmatch_lines(["note     mine: none of 2 answers has a word, so nothing is measured of answers"])
