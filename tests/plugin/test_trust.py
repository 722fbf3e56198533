"""A passed run is about the current data and code. Each case here once passed about something else, or silently."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from rag_harness.__main__ import main
from tests.plugin.conftest import PAGES, QUERIES, Suite, copy_data
from tests.plugin.study import ROOT
from tests.serving import running
from tests.unit.server import refusal, serving

FILE = "--rag-endpoint=shop.toml"
GATE = "--rag-gate=shop: recall@5 >= 0.9"


class Shop(ThreadingHTTPServer):
    """A service that finds the right page, or none while it is broken; ``version`` is what it says it is.

    After so many ``answers`` it answers nothing until it ``may_go_on``.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.reset()

    def reset(self) -> None:
        """Be as it was at its start."""
        self.is_broken = False
        self.version: Any = "r1"
        self.kind = "application/json"
        self.asked: list[str] = []
        self.told = 0
        self.answers, self.may_go_on = 1000, Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Shop

    def do_GET(self) -> None:
        self.server.told += 1
        said = self.server.version
        self._say(said if isinstance(said, str) else json.dumps({"version": f"r{self.server.told}"}), self.server.kind)

    def do_POST(self) -> None:
        query = json.loads(self.rfile.read(int(self.headers["content-length"])))["query"]
        self.server.asked.append(query)
        if len(self.server.asked) > self.server.answers:
            self.server.may_go_on.wait(60)
        gold = next((each.get("context_reference") for each in QUERIES if each["query"] == query), None)
        found = "nothing.md" if self.server.is_broken or not isinstance(gold, list) else gold[0]
        text = PAGES.get(found, "Of no page.")
        self._say(json.dumps({"answer": text, "contexts": [{"text": text, "document": found}]}))

    def _say(self, text: str, kind: str = "application/json") -> None:
        body = text.encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Keep the output of the tests quiet."""


@pytest.fixture(scope="module")
def open_shop() -> Iterator[Shop]:
    """One service for all tests: a recording is found again at its address."""
    with running(Shop()) as shop:
        yield shop


@pytest.fixture
def shop(open_shop: Shop) -> Shop:
    open_shop.reset()
    return open_shop


def only_service(suite: Suite, shop: Shop) -> Suite:
    """Make ``suite`` one of this service alone: its test is brought."""
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    say_where(suite, shop)
    return suite


@pytest.fixture
def tested(suite: Suite, shop: Shop) -> Suite:
    return only_service(suite, shop)


@pytest.fixture(scope="module")
def recording(shared_suite: Suite, open_shop: Shop) -> Path:
    """The folder of a run that has recorded all answers."""
    open_shop.reset()
    only_service(shared_suite, open_shop).run(FILE, "--rag-mode=record").assert_outcomes(passed=4)
    return shared_suite.path


@pytest.fixture
def recorded(recording: Path, tested: Suite) -> Suite:
    """A suite whose answers are recorded."""
    for name in ("cassettes", "output", ".rag_cache"):
        copy_data(recording / name, tested.path / name)
    return tested


def recordings(suite: Suite) -> dict[Path, str]:
    """Return the files of all recordings, with what they say."""
    found = {file: file.read_text() for file in (suite.path / "cassettes").rglob("*.yaml")}
    assert found
    return found


def record_long_ago(suite: Suite, when: str = "2020-01-01") -> None:
    """Date all recordings back."""
    for file, said in recordings(suite).items():
        file.write_text(re.sub(r"recorded_at: .*", f"recorded_at: '{when}T00:00:00+00:00'", said))


def say_where(suite: Suite, shop: Shop, more: str = "") -> None:
    read = '[read]\nanswer = "answer"\ncontexts = "contexts"\n'
    (suite.path / "shop.toml").write_text(f'url = "{shop.url}/query"\n{more}\n{read}')


# A broken service passes its gates (3).


def test_answers_that_were_recorded_are_said_to_be_and_how_to_renew_them(tested: Suite, shop: Shop) -> None:
    tested.run(FILE, GATE, "--rag-mode=record").assert_outcomes(passed=4)
    shop.is_broken = True
    for mode in ("--rag-mode=auto", "--rag-mode=record"):
        result = tested.run(FILE, GATE, mode)
        result.stdout.fnmatch_lines(
            ["answers: 4 * recorded * (less than a minute old)*", "*--rag-rerecord asks again *"]
        )
    assert len(shop.asked) == 4
    renewed = tested.run(FILE, GATE, "--rag-mode=record", "--rag-rerecord")
    assert renewed.ret == 1
    renewed.stdout.fnmatch_lines(["answers: 4 asked now", "failed *shop: recall@5 >= 0.9 *"])


def test_a_service_that_was_repaired_is_asked_and_one_that_is_down_is_an_error(suite: Suite) -> None:
    with running(Shop()) as shop:
        tested = only_service(suite, shop)
        shop.is_broken = True
        assert tested.run(FILE, GATE, "--rag-mode=live").ret == 1
        shop.is_broken = False
        result = tested.run(FILE, GATE, "--rag-mode=live")
        assert result.ret == 0
        result.stdout.fnmatch_lines(["answers: 4 asked now"])
    # It is tried three times in three seconds.
    waits = "from rag_harness.pipelines.endpoint import pipeline\npipeline._WAITS = (0.0, 0.01, 0.01)\n"
    (tested.path / "conftest.py").write_text(waits)
    down = tested.run(FILE, GATE, "--rag-mode=live")
    assert down.ret == pytest.ExitCode.USAGE_ERROR
    down.stderr.fnmatch_lines([f"ERROR: Nothing answers at {shop.url}/query*Start the service*"])
    assert "passed" not in down.stdout.str()


def test_answers_that_are_older_than_allowed_make_gates_stale(recorded: Suite) -> None:
    record_long_ago(recorded)
    result = recorded.run(FILE, GATE, "--rag-max-age=7d", "--rag-overwrite")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "answers: 4 replayed, recorded 1 Jan 2020 00:00 UTC (* days old); 0 asked now",
            "stale *shop: recall@5 >= 0.9 *",
        ]
    )
    result.stdout.fnmatch_lines(["*the oldest answer is * days old*"])
    summary = json.loads((recorded.path / "output" / "summary.json").read_text())
    assert summary["provenance"]["shop"]["replayed"] == 4
    assert [gate["state"] for gate in summary["gates"]] == ["stale"]
    renewed = recorded.run(FILE, GATE, "--rag-max-age=7d", "--rag-mode=record", "--rag-rerecord")
    assert renewed.ret == 0


def test_recordings_without_a_date_or_of_the_future_are_of_no_age(recorded: Suite) -> None:
    dated = recordings(recorded)
    for file, said in dated.items():
        file.write_text(re.sub(r"\n *recorded_at: .*", "", said))
    undated = recorded.run(FILE, GATE, "--rag-overwrite", "--rag-max-age=1000d")
    undated.stdout.fnmatch_lines(["answers: 4 replayed, recorded at an unknown time; 0 asked now", "stale *"])
    for file, said in dated.items():
        file.write_text(said)
    record_long_ago(recorded, "2999-01-01")
    ahead = recorded.run(FILE, GATE, "--rag-overwrite", "--rag-max-age=7d")
    assert ahead.ret == 1
    ahead.stdout.fnmatch_lines(["answers: 4 replayed, *later than this run by the clock*", "stale *"])
    assert recorded.run(FILE, GATE, "--rag-overwrite").ret == 0


@pytest.mark.parametrize("age", ["soon", "7", "-1d", "1e400d", "7d2", ""])
def test_an_age_that_is_no_duration_is_refused(tested: Suite, age: str) -> None:
    result = tested.run(FILE, f"--rag-max-age={age}")
    if age:
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines(["ERROR: *max*age*7d*"])
    else:
        assert "max_age" not in result.stderr.str()


# A version.


def test_a_version_is_asked_for_once_a_run_and_said(tested: Suite, shop: Shop) -> None:
    shop.version = None  # another one at each question
    say_where(tested, shop, f'version.url = "{shop.url}/version"\nversion.path = "version"')
    result = tested.run(FILE, "--rag-mode=live", "-n2")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["answers: 4 asked now, of version r1"])
    assert shop.told == 1
    assert {row["version"] for row in tested.rows("shop")} == {"r1"}


@pytest.mark.parametrize(
    ("said", "kind", "why", "workers"),
    [
        ("<html>Sign in</html>", "text/html", "*answered with a page*", "-n0"),
        ('{"build": 7}', "application/json", "*version.path*", "-n0"),
        ("", "application/json", "*", "-n0"),
        ("<html>Sign in</html>", "text/html", "*answered with a page*", "-n2"),
        pytest.param('{"build": 7}', "application/json", "*version.path*", "-n2", marks=pytest.mark.long),
        pytest.param("", "application/json", "*", "-n2", marks=pytest.mark.long),
    ],
)
def test_a_version_that_nobody_says_stops_the_run_before_a_question(
    tested: Suite, shop: Shop, workers: str, said: str, kind: str, why: str
) -> None:
    shop.version, shop.kind = said, kind
    say_where(tested, shop, f'version.url = "{shop.url}/version"')
    result = tested.run(FILE, "--rag-mode=live", workers)
    # Under xdist a worker's first test says it, and ends the run.
    assert result.ret == (pytest.ExitCode.USAGE_ERROR if workers == "-n0" else pytest.ExitCode.INTERRUPTED)
    (result.stderr if workers == "-n0" else result.stdout).fnmatch_lines([f"*{why}"])
    assert not shop.asked


def test_a_version_address_that_is_down_stops_the_run(tested: Suite, shop: Shop) -> None:
    say_where(tested, shop, 'version.url = "http://127.0.0.1:9/version"')
    result = tested.run(FILE, "--rag-mode=live")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *nothing answers at version.url http://127.0.0.1:9/version*"])


# No gate passes, and none is skipped, in silence (4, 5, 12).


def test_a_gate_whose_test_was_lost_fails_where_all_tests_were_asked_for(suite: Suite) -> None:
    gate = "--rag-gate=mine: recall@5 >= 0.99"
    whole = suite.run(gate)
    assert whole.ret == 1
    whole.stdout.fnmatch_lines(["failed *mine: recall@5 >= 0.99", " *mine has no trial, though all tests *"])
    part = suite.run(gate, "-m", "e3")
    assert part.ret == 0
    part.stdout.fnmatch_lines(["not judged *mine: recall@5 >= 0.99 *mine is not in this run: *"])


def test_gates_fail_where_no_test_is_left_at_all(suite: Suite) -> None:
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.pytester.makepyfile(test_other="def test_something_else(): pass")
    result = suite.run("--rag-gate=e3: recall@5 >= 0.99")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["failed *e3: recall@5 >= 0.99"])
    part = suite.run("--rag-gate=e3: recall@5 >= 0.99", "-k", "else")
    assert part.ret == 0
    part.stdout.fnmatch_lines(["rag: not judged, because nothing was selected of e3 (1 gate)"])


def test_gates_of_which_none_is_judged_fail_where_that_is_asked(suite: Suite) -> None:
    gates = [f"--rag-gate=e3: recall@{n} >= 0.1" for n in range(1, 6)]
    result = suite.run(*gates, "--rag-limit=1", "--rag-not-judged=fail")
    assert result.ret == 1
    assert result.stdout.str().count("1 of 4 cases selected") >= 5


def test_another_depth_than_the_gates_is_said(suite: Suite) -> None:
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.pytester.makepyfile(test_golden="def test_finds(rag_retrieval):\n    assert rag_retrieval.found\n")
    entries = [{"query": "a lamp", "expected_document_id": "returns.md", "justification": "it says so"}]
    (suite.path / "golden.json").write_text(json.dumps(entries))
    gates = "    golden: recall@10 >= 0.1\n    golden: recall@k >= 0.1\n"
    suite.pytester.makeini(
        f"[pytest]\nrag_kb_dir = kb\nrag_profile = mock\nrag_golden = golden.json\nrag_gate =\n{gates}"
    )
    result = suite.run("--rag-k=1", "--rag-not-judged=fail")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["not judged *golden: recall@10 >= 0.1*", "*this run looks at 1 (--k)*", "passed *golden: recall@1 >= 0.1 *"]
    )


def test_a_first_baseline_is_made_with_the_gate_already_there(suite: Suite) -> None:
    ini = "[pytest]\nrag_kb_dir = kb\nrag_profile = mock\nrag_gate = e3: recall@5 >= baseline - 0.02\n"
    suite.pytester.makeini(ini)
    first = suite.run("--rag-compare=main", "--rag-save=main", "--rag-not-judged=fail")
    assert first.ret == 0
    first.stdout.fnmatch_lines(
        ["not judged *e3: recall@5 >= baseline - 0.02 *no baseline yet: this run is saved as main"]
    )
    again = suite.run("--rag-compare=main", "--rag-save=main", "--rag-not-judged=fail")
    again.stdout.fnmatch_lines(["passed *e3: recall@5 >= baseline - 0.02*"])
    none = suite.run()
    none.stdout.fnmatch_lines(["not judged *e3: recall@5 >= baseline - 0.02*", "*no baseline is named: --rag-compare*"])
    gone = suite.run("--rag-compare=other")
    assert gone.ret == pytest.ExitCode.USAGE_ERROR


# A dry run needs no recordings of what computes (7).


def test_a_dry_run_of_the_mock_profile_works_from_nothing(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRY_RUN", "true")
    result = suite.run("--rag-gate=e3: recall@5 >= 0.5")
    result.assert_outcomes(passed=4)
    assert not (suite.path / "cassettes").exists()


# Runs of one output folder belong together (8).


def test_experiments_that_ran_one_after_another_are_one_report_while_data_and_settings_are_the_same(
    suite: Suite,
) -> None:
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    source = "import pytest\n\n@pytest.mark.{0}\ndef test_{0}(rag_result):\n    assert rag_result.ok, rag_result.why\n"
    suite.pytester.makepyfile(**{f"test_{name}": source.format(name) for name in ("e1", "e2", "e3")})
    for name in ("e1", "e2", "e3"):
        suite.run("-m", name).assert_outcomes(passed=4)
    assert main(["report", "output", "-o", "report.md"]) == 0
    report = (suite.path / "report.md").read_text()
    assert "| e1 |" in report
    assert "| e2 = e3 |" in report, "they answer alike"
    assert "e1 is of an earlier run" in report
    assert "with other code or settings" not in report
    cross = suite.run("-m", "e3", "--rag-gate=e3: recall@5 >= e2 - 0.5", "--rag-gate=e3: recall@5 >= e9")
    cross.stdout.fnmatch_lines(["passed *e3: recall@5 >= e2 - 0.5*", "not judged *e3: recall@5 >= e9 *"])
    # Of other settings, the older experiment is not compared with; about other documents, it is in no report.
    other = suite.run("-m", "e3", "--rag-gate=e3: recall@5 >= e2", "--rag-top-k=2")
    other.stdout.fnmatch_lines(["not judged *e3: recall@5 >= e2*"])
    (suite.path / "kb" / "warranty.md").write_text("# Warranty\n\nThe warranty lasts 5 years.\n")
    suite.run("-m", "e3")
    assert list(json.loads((suite.path / "output" / "run.json").read_text())["suites"]) == ["e3"]


# Rows of an older release.


def test_rows_of_an_older_release_are_read_and_count_as_older(recorded: Suite, shop: Shop) -> None:
    file = recorded.path / "output" / "shop.jsonl"
    new = {"recorded_at", "outdated", "version"}
    rows = map(json.loads, file.read_text().splitlines())
    older = [{key: value for key, value in row.items() if key not in new} for row in rows]
    written = "".join(f"{json.dumps(row)}\n" for row in older)
    file.write_text(written)
    assert main(["report", "output", "-o", "report.md"]) == 0
    assert file.read_text() == written
    assert not shop.asked


# The experiments are at hand everywhere (9).


@pytest.mark.parametrize("workers", [pytest.param("-n0", marks=pytest.mark.long), "-n2"])
def test_experiments_are_asked_where_no_test_asks_them(suite: Suite, workers: str) -> None:
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.pytester.makepyfile(test_other="def test_one(): pass\ndef test_two(): pass")
    result = suite.run("--rag-run=e2,e3", workers)
    result.assert_outcomes(passed=8, deselected=2 if workers == "-n0" else 0)
    result.stdout.fnmatch_lines(["rag: no test here asks e2, e3: rag_harness brings *"])
    assert {len(suite.rows("e2_standard_rag")), len(suite.rows())} == {4}
    marked = suite.run("-m", "e1", "--rag-limit=2")
    assert marked.parseoutcomes()["passed"] == 2
    assert len(suite.rows("e1_baseline")) == 2


def test_tests_of_the_folder_come_first_and_others_are_left_out(suite: Suite) -> None:
    result = suite.run("--rag-run", "e3 e2", "-v", "--rag-gate=e3: recall@5 >= 0.5", "--rag-gate=e4: recall@5 >= 0.5")
    result.assert_outcomes(passed=8)
    result.stdout.fnmatch_lines(["rag: no test here asks e2: rag_harness brings one"])
    assert result.ret == 0  # --rag-run chooses, so a gate on e4 is not judged
    lines = result.stdout.str()
    assert len(re.findall(r"test_tests_of_the_folder\S*\[e3-", lines)) == 4
    assert len(re.findall(r"^rag::test_answers\[e2-", lines, re.MULTILINE)) == 4
    alone = suite.run("--rag-run=e2")
    alone.assert_outcomes(passed=4, deselected=4)


def test_a_brought_test_that_fails_says_why_in_a_line(suite: Suite) -> None:
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write(
            "import pytest\nclass Broken:\n    async def answer(self, query): raise RuntimeError('no lamp')\n"
            "@pytest.fixture\ndef rag_pipeline(): return Broken()\n"
        )
    result = suite.run("--rag-run=e2")
    result.assert_outcomes(failed=4, deselected=4)
    result.stdout.fnmatch_lines(["*RuntimeError: no lamp"])
    assert "ExperimentResult(" not in result.stdout.str()


def test_an_experiment_that_is_not_there_is_named(suite: Suite) -> None:
    result = suite.run("--rag-run=e33")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --rag-run: Unknown experiment 'e33'. Did you mean 'e3'*"])


def test_a_suite_that_has_nothing_of_ours_is_left_alone(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import pytest\n\ndef test_one(): pass")
    pytester.makeini("[pytest]\nmarkers = e3: something else\n")
    result = pytester.runpytest("-m", "e3")
    result.assert_outcomes(deselected=1)
    assert "rag" not in result.stdout.str().partition("collected")[2]


# Errors of data are the first line, and alone (10).


@pytest.mark.parametrize("fault", [pytest.param("twice", marks=pytest.mark.long), "no file", "renamed page"])
def test_an_error_of_data_is_all_that_is_said(suite: Suite, fault: str) -> None:
    if fault == "twice":
        suite.write_queries([*QUERIES, QUERIES[0]])
    elif fault == "no file":
        (suite.path / "kb" / "queries.jsonl").unlink()
    else:
        (suite.path / "kb" / "returns.md").rename(suite.path / "kb" / "back.md")
    for file in suite.path.glob("test_*.py"):
        (suite.path / f"{file.stem}_too.py").write_text(file.read_text())
    result = suite.run("--rag-kb=kb")
    said = result.stdout.str()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.assert_outcomes(errors=1)
    first = said.partition("ERROR collecting")[0].splitlines()
    assert not [line for line in first if line.startswith("rag:")]
    assert "no test is here" not in said
    assert "has no trial" not in said


# Settings that cannot work stop a run once, before anything is asked (11).


def test_a_service_of_which_nothing_is_recorded_is_said_once(tested: Suite) -> None:
    result = tested.run(FILE)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = result.stderr.str()
    assert said.count("is recorded") == 1
    result.stderr.fnmatch_lines(["ERROR: No answer of 'shop' *Ask it now: --rag-mode=live.*--rag-mode=record"])
    assert len(result.outlines) < 15


@pytest.mark.parametrize("workers", [pytest.param("-n0", marks=pytest.mark.long), "-n2"])
def test_a_judge_that_cannot_be_asked_stops_the_run_at_the_first_answer(
    tested: Suite, shop: Shop, workers: str
) -> None:
    tested.write_queries([{"query_id": f"q{n}", "query": f"question {n}", "ground_truth": "x"} for n in range(12)])
    with serving(refusal(404, "no such model", "model_not_found")) as model:
        tested.set_table("profiles.mock.judge", model="nope", base_url=model.url)
        judge = ["--rag-judge=fused"]
        result = tested.run(FILE, "--rag-mode=live", "--rag-measures=faithfulness", *judge, workers)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*The judge cannot be asked: *no such model*"])
    assert len(shop.asked) <= 2


def test_a_missing_key_is_said_once_before_the_first_test(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    result = suite.run("--rag-profile=openrouter", "--rag-mode=live")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.stderr.str().count("OPENROUTER_API_KEY is not set") == 1


def test_no_gate_compares_with_what_a_service_said_in_an_earlier_run(suite: Suite, shop: Shop) -> None:
    read = '[read]\nanswer = "answer"\ncontexts = "contexts"\n'
    for name in ("shop", "twin"):
        (suite.path / f"{name}.toml").write_text(f'url = "{shop.url}/query"\n{read}')
    services = ("--rag-endpoint=shop.toml", "--rag-endpoint=twin.toml")
    suite.run(*services, "--rag-run=shop,twin", "--rag-mode=record")
    gate = "--rag-gate=shop: recall@5 >= twin"
    suite.run(*services, "--rag-run=shop", gate).stdout.fnmatch_lines(["gates * not judged (twin did not run)"])
    suite.run(*services, "--rag-run=shop,twin", gate).stdout.fnmatch_lines(["passed *shop: recall@5 >= twin *"])


# What a second reader found.


def test_a_pipeline_in_a_conftest_is_asked_in_each_run(suite: Suite) -> None:
    pipeline = (
        "import pytest\n\nclass Mine:\n    async def answer(self, query):\n        return 'one'\n\n"
        "@pytest.fixture\ndef rag_pipeline():\n    return Mine()\n"
    )
    conftest = suite.path / "conftest.py"
    conftest.write_text(pipeline)
    suite.run().assert_outcomes(passed=4)
    conftest.write_text(pipeline.replace("'one'", "'two'"))
    result = suite.run()
    result.stdout.fnmatch_lines(["answers: 4 asked now"])
    assert {row["llm_answer"] for row in suite.rows()} == {"two"}
    suite.run().stdout.fnmatch_lines(["answers: 4 asked now"])


def test_the_golden_suite_over_a_service_says_that_it_was_replayed(tested: Suite) -> None:
    tested.pytester.makepyfile(test_golden="def test_finds(rag_retrieval):\n    assert rag_retrieval.found\n")
    entries = [{"query": "return a lamp", "expected_document_id": "returns.md", "justification": "it says so"}]
    (tested.path / "golden.json").write_text(json.dumps(entries))
    asked = (FILE, "--rag-retriever=shop", "--rag-k=1", "--rag-gate=golden: recall@k >= 0.5")
    recorded = tested.run(*asked, "--rag-mode=record")
    recorded.stdout.fnmatch_lines(["answers: 1 looked up now"])
    record_long_ago(tested)
    result = tested.run(*asked, "--rag-max-age=7d", "--rag-overwrite")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["answers: 1 replayed, recorded 1 Jan 2020 *; 0 looked up now", "stale *golden: *"])


def test_rows_about_data_that_are_gone_stop_no_later_run(suite: Suite) -> None:
    suite.run()
    other = suite.path / "other"
    other.mkdir()
    for name, word in (("page", "lamp"), ("second", "tent"), ("third", "oar")):
        (other / f"{name}.md").write_text(f"# A {name}\n\nWith a {word}.\n")
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.pytester.makepyfile(test_golden="def test_finds(rag_retrieval):\n    assert rag_retrieval.found\n")
    entries = [{"query": "a lamp", "expected_document_id": "page.md", "justification": "it says so"}]
    (suite.path / "golden.json").write_text(json.dumps(entries))
    result = suite.run("--rag-kb=other", "--rag-k=1", "--rag-gate=golden: recall@k >= 0.5")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["passed *golden: recall@1 >= 0.5 *"])


def test_a_test_that_a_mark_skips_needs_no_service(tested: Suite) -> None:
    tested.pytester.makepyfile(
        test_shop="import pytest\n\n@pytest.mark.skipif(True, reason='no service here')\n"
        "@pytest.mark.rag_experiment('shop')\ndef test_it(rag_result):\n    pass\n\ndef test_other():\n    pass\n"
    )
    result = tested.run(FILE)
    result.assert_outcomes(passed=1, skipped=4)


@pytest.mark.parametrize(
    ("args", "is_whole"),
    [
        ((), True),
        ((".",), True),
        (("tests",), True),
        (("tests/unit",), False),
        (("--rootdir", ".", "tests/unit"), False),
        (("-m", "not slow"), False),
        (("-k", "unit"), False),
        (("--rag-limit=2",), False),
    ],
)
def test_what_counts_as_all_tests(suite: Suite, args: tuple[str, ...], is_whole: bool) -> None:
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    (suite.path / "tests" / "unit").mkdir(parents=True)
    (suite.path / "tests" / "unit" / "test_unit.py").write_text("def test_unit():\n    pass\n")
    keys = "rag_kb_dir = kb\nrag_profile = mock\nrag_gate = e3: recall@5 >= 0.5\n"
    suite.pytester.makeini(
        f"[pytest]\ntestpaths = tests\naddopts = -m 'not nothing'\nmarkers =\n    slow\n    nothing\n{keys}"
    )
    assert suite.run(*args).ret == (1 if is_whole else 0)


def test_a_selection_by_the_environment_is_one(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAG_RUN", "e3")
    result = suite.run("--rag-gate=e2: recall@5 >= 0.5")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["not judged *e2: recall@5 >= 0.5 *e2 is not in this run: -m e2"])


def test_what_was_replayed_is_renewed_by_asking_again(recorded: Suite) -> None:
    record_long_ago(recorded)
    result = recorded.run(FILE, GATE, "--rag-max-age=7d")
    result.stdout.fnmatch_lines(["answers: 4 replayed, *", "stale *"])
    assert "Ask again:" in result.stdout.str()
    assert "--rag-mode=record --rag-rerecord" in result.stdout.str().partition("Ask again:")[2]


def test_tests_that_a_conftest_leaves_out_are_not_lost(suite: Suite) -> None:
    (suite.path / "conftest.py").write_text(
        "def pytest_collection_modifyitems(config, items):\n"
        "    config.hook.pytest_deselected(items=list(items))\n    items.clear()\n"
    )
    suite.pytester.makepyfile(test_other="def test_other():\n    pass\n")
    result = suite.run("--rag-gate=e3: recall@5 >= 0.5")
    assert "has no trial" not in result.stdout.str()
    result.stdout.fnmatch_lines(["rag: not judged, because nothing was selected of e3 (1 gate)"])


def test_rows_are_replayed_again_when_their_recordings_were_renewed(recorded: Suite, shop: Shop) -> None:
    recorded.run(FILE).stdout.fnmatch_lines(["answers: 4 replayed, *"])
    recorded.run(FILE).stdout.fnmatch_lines(["answers: 4 replayed, *"])
    shop.is_broken = True
    recorded.run(FILE, "--rag-mode=record", "--rag-rerecord", "--rag-output=elsewhere")
    result = recorded.run(FILE, GATE)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["answers: 4 replayed, *"])


@pytest.mark.parametrize("quiet", [(), ("-q",)])
def test_auto_replays_the_version_that_the_service_states_now_and_no_other(
    tested: Suite, shop: Shop, quiet: tuple[str, ...]
) -> None:
    say_where(tested, shop, 'version.command = "cat version.txt"')
    version = tested.path / "version.txt"
    version.write_text("r1")
    tested.run(FILE, GATE, "--rag-mode=record").assert_outcomes(passed=4)
    tested.run(FILE, GATE, *quiet).stdout.fnmatch_lines(["answers: 4 replayed, recorded *, of version r1; 0 asked now"])
    shop.is_broken = True
    version.write_text("r2")
    other = tested.run(FILE, GATE, *quiet)
    assert other.ret == pytest.ExitCode.USAGE_ERROR
    other.stderr.fnmatch_lines(["ERROR: No answer of 'shop', version r2, to these 4 questions is recorded*"])
    assert tested.run(FILE, GATE, "--rag-mode=live").ret == 1
    version.unlink()
    gone = tested.run(FILE, GATE, *quiet)
    assert gone.ret == pytest.ExitCode.USAGE_ERROR
    gone.stderr.fnmatch_lines(["ERROR: *answer from recordings, whatever runs there: --rag-mode=replay."])
    version.write_text("r1")
    tested.run(FILE, GATE, "--rag-mode=record")
    version.unlink()
    tested.run(FILE, GATE, "--rag-mode=replay", *quiet).stdout.fnmatch_lines(["answers: 4 replayed, *of version r1*"])


def test_a_service_that_was_rolled_back_is_replayed_as_it_is(tested: Suite, shop: Shop) -> None:
    say_where(tested, shop, 'version.command = "cat version.txt"')
    for version in ("r1", "r2", "r1"):
        (tested.path / "version.txt").write_text(version)
        tested.run(FILE, "--rag-mode=record", "--rag-overwrite")
    assert len(shop.asked) == 8
    tested.run(FILE, "--rag-overwrite")
    assert {row["version"] for row in tested.rows("shop")} == {"r1"}


def test_a_baseline_that_is_there_excuses_no_gate(suite: Suite) -> None:
    asked = ("--rag-save=main", "--rag-not-judged=fail", "--rag-gate=e3: recall@5 >= baseline - 0.02")
    assert suite.run(*asked).ret == 0
    again = suite.run(*asked)
    assert again.ret == 1
    again.stdout.fnmatch_lines([" *no baseline is named, though main is there: --rag-compare main *"])


def test_a_part_leaves_the_rest_of_an_unfinished_run_to_the_next_one(tested: Suite, shop: Shop) -> None:
    questions, shop.answers = 16, 10
    tested.write_queries([{"query_id": f"q{n}", "query": f"question {n}"} for n in range(questions)])
    conftest = tested.path / "conftest.py"
    dies = "import os\nseen = []\ndef pytest_rag_result(result):\n    seen.append(result)\n"
    conftest.write_text(f"{dies}    len(seen) < 9 or os._exit(9)\n")
    tested.run(FILE, "--rag-mode=live", "--rag-concurrency=1")
    conftest.unlink()
    first, shop.answers = len(shop.asked), 1000
    shop.may_go_on.set()
    assert 9 <= first < questions
    tested.run(FILE, "--rag-mode=live", "--rag-resume", "--rag-limit=2")
    tested.run(FILE, "--rag-mode=live", "--rag-resume")
    assert len(shop.asked) <= questions + 1


@pytest.mark.parametrize("args", [("-m", "not e3"), ("-m", "e1 or not e3")])
def test_an_experiment_that_is_left_out_is_not_brought(suite: Suite, args: tuple[str, ...]) -> None:
    result = suite.run(*args)
    assert "rag_harness brings" not in result.stdout.str()


def test_a_service_is_not_brought_where_a_test_was_named(tested: Suite) -> None:
    tested.pytester.makepyfile(test_other="def test_other():\n    pass\n")
    tested.run(FILE, "test_other.py").assert_outcomes(passed=1)


# What ships says its age, and is of the reader as it is.


def test_the_shipped_recordings_are_dated_and_of_the_reader_as_it_is() -> None:
    from rag_harness.core.registry import REVISIONS
    from rag_harness.models.recording.cassette_file import ExperimentCassette

    files = sorted((ROOT / "cassettes" / "embedded").glob("*.yaml"))
    assert [file.stem for file in files] == ["e1", "e2", "e3", "e4"]
    cassettes = [ExperimentCassette(file) for file in files]
    found = [cassette.read(digest) for cassette in cassettes for digest in cassette.digests]
    assert len(found) == 800
    assert all(each.recorded_at.startswith("20") for each in found)
    assert {each.version for each in found} == {REVISIONS["reader"]}, "ask again: .ci/record answers"
