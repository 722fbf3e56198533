"""The pages about gates do what they say: gates are read, the configuration is run, the reference is complete."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from textwrap import dedent
from typing import Any, get_args

import pytest
from iniconfig import IniConfig

from rag_harness.core.errors import SettingsError
from rag_harness.core.settings import options
from rag_harness.core.types import limit_of
from rag_harness.evaluation.measures import known_measures, measure_named
from rag_harness.runs.gates import Gate, grammar, judge, parse_gate, verdict_lines
from rag_harness.runs.gates.grammar import BASELINE, PromiseKind, Reference, TurnsKind
from tests.plugin.conftest import Suite
from tests.plugin.study import replay
from tests.unit.pages import found, place, read
from tests.unit.runs.gates.test_gates import of

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.rglob("*.md")), ROOT / "CONTRIBUTING.md", ROOT / "data" / "README.md"]
PAGE = read(DOCS / "how-to/gates.md")
FORMS = DOCS / "reference/gates.md"
MEASURES = read(DOCS / "reference/measures.md")
OWN_MEASURE = read(DOCS / "how-to/own-measure.md")
_BLOCK = re.compile(r"```gates\n(.*?)```", re.DOTALL)
_LINE = re.compile(r"^.*\S.*$", re.MULTILINE)
_OPTION = re.compile(r'--rag-gate[ =]"(.+?)"')
_FLAG = re.compile(r"--rag-[a-z-]*[a-z]")
_REMOVED = re.compile(r"^## Removed options$.*", re.MULTILINE | re.DOTALL)
TEST = "def test_finds_what_is_expected(rag_retrieval):\n    assert rag_retrieval.found\n"
ENTRIES = [
    {"query": "return a lamp", "expected_document_id": "returns.md", "justification": "j", "query_type": "plain"},
    {"query": "express costs", "expected_document_id": "shipping.md", "justification": "j", "query_type": "table"},
    {"query": "zone 1 delivery", "expected_document_id": "shipping.md", "justification": "j", "query_type": "table"},
]


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def _gates(page: Path) -> Iterator[tuple[str, str]]:
    """Yield the place and the text of each gate of a page."""
    text = read(page)
    for block in _BLOCK.finditer(text):
        for line in _LINE.finditer(block[1]):
            yield place(page, text, block.start(1) + line.start()), line[0]
    yield from found(_OPTION, page)


def _forms() -> list[Gate]:
    return [parse_gate(text, k=10) for _, text in _gates(FORMS)]


def test_the_reference_has_every_part_of_a_gate() -> None:
    """A part that the grammar gets is an attribute of the gate, and the page has to show it with a value."""
    plain = parse_gate("recall@5 >= 0.9", k=5)
    names = {each.name for each in fields(Gate)}
    assert {name for name in names for gate in _forms() if getattr(gate, name) != getattr(plain, name)} == names


def test_the_reference_has_every_form_of_each_part() -> None:
    gates = _forms()
    assert {gate.op for gate in gates} == set(grammar._OPERATORS)
    assert {gate.quantile for gate in gates} - {None} == {*map(int, re.findall(r"\d+", grammar._QUANTILE.pattern)[:3])}
    limits = [value for gate in gates for _, value in gate.slice]
    assert {limit[0] for value in limits if (limit := limit_of(value))} == set(grammar._OPERATORS)
    assert any(not limit_of(value) for value in limits)
    assert any(len(gate.slice) > 1 for gate in gates)
    right = [gate.right for gate in gates]
    others = [each for each in right if isinstance(each, Reference)]
    to = {(each.name == BASELINE, (each.offset > 0) - (each.offset < 0)) for each in others}
    assert to >= {(False, 0), (False, 1), (False, -1), (True, 0), (True, -1)}
    assert any(text.lstrip().startswith("recall@k") for _, text in _gates(FORMS)), "a gate without a name"


def test_the_reference_has_every_function_of_a_measure() -> None:
    gates = _forms()
    over = [gate.over for gate in gates if gate.over and not gate.turns]
    assert {each.kind for each in over} == set(get_args(PromiseKind))
    assert {each.limit[0] for each in over if each.limit} == set(grammar._LIMITS)
    assert {each.kind for each in over if not each.limit} == set(get_args(PromiseKind))
    assert {each.kind for each in over if each.limit} == set(get_args(PromiseKind)) - {"worst_of_"}
    turns = [gate.turns for gate in gates if gate.turns]
    assert {each.kind for each in turns} == set(get_args(TurnsKind))
    assert {bool(each.limit) for each in turns if each.kind == "all"} == {True, False}
    assert {gate.over.kind for gate in gates if gate.over and gate.turns} == set(get_args(PromiseKind))


def test_each_gate_of_a_page_is_read() -> None:
    faults = [f"{where}: {why}" for page in PAGES for where, text in _gates(page) if (why := _misread(text))]
    assert not faults, "\n".join(faults)


def _misread(text: str) -> str:
    try:
        gate = parse_gate(text, k=10)
        name, again = measure_named(gate.measure).name, parse_gate(str(gate), k=10)
    except SettingsError as error:
        return str(error)
    return "" if (name, again) == (gate.measure, gate) else f"{text} is read as {gate}, and that as {again} of {name}"


def test_what_the_reference_says_is_refused_is_refused() -> None:
    refused = blocks(read(FORMS), "gates-refused")[0].splitlines()
    assert len(refused) >= 20
    faults = [text for text in refused if not _is_refused(text)]
    assert not faults, "\n".join(["these are read:", *faults])


def _is_refused(text: str) -> bool:
    try:
        parse_gate(text, k=10)
    except SettingsError:
        return True
    return False


def test_what_to_do_is_shown_as_the_page_says() -> None:
    """18 of 60 questions found nothing; 55 of 60 answers cite a chunk."""
    section = read(DOCS / "how-to/gate-consequences.md")
    found, cited = (parse_gate(line, k=10) for line in blocks(section, "gates")[0].splitlines())
    verdicts = [judge(found, {"t1": of(*[1] * 18, *[0] * 42)}), judge(cited, {"t1": of(*[1] * 55, *[0] * 5)})]
    (shown,) = re.findall(r"\n\n((?:    .+\n)+)", section)
    assert dedent(shown).splitlines() == "\n".join(verdict_lines(verdicts)).splitlines()


def test_configuration(suite: Suite) -> None:
    """Every gate of the ini example is judged, and holds."""
    (config,) = blocks(PAGE, "ini")
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.pytester.makeini(config)
    suite.pytester.makepyfile(test_retrieval=TEST)
    (suite.path / "golden.json").write_text(json.dumps(ENTRIES))
    (command,) = re.findall(r"^    pytest (test_retrieval.* -v)$", PAGE, re.MULTILINE)
    result = suite.run("--rag-profile=mock", *shlex.split(command))
    assert result.ret == 0
    (shown,) = re.findall(r"\n\n((?:    passed.+\n(?:     +\S.+\n)?)+)", PAGE)
    assert dedent(shown) in result.stdout.str()
    wanted = [parse_gate(each, k=3) for each in IniConfig("", config)["pytest"]["rag_gate"].split("\n")]
    assert [line for line in dedent(shown).splitlines() if line.startswith("passed")] == [
        line for line in result.stdout.lines if line.startswith("passed") and any(str(gate) in line for gate in wanted)
    ]


def test_save_and_compare_as_the_page_says(suite: Suite) -> None:
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.pytester.makepyfile(test_retrieval=TEST)
    (suite.path / "golden.json").write_text(json.dumps(ENTRIES))
    section = read(DOCS / "how-to/gate-against-a-baseline.md")
    saves, compares = (shlex.split(line) for line in re.findall(r"^    pytest (.*)", section, re.MULTILINE))
    assert suite.run(*saves, "--rag-k=3").ret == 0
    result = suite.run(*compares, "--rag-k=3")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["passed *golden: ndcg@10 >= baseline - 0.02*"])


def test_scores_in_any_list_stop_early_as_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = blocks(read(DOCS / "how-to/stop-early.md"), "python")
    exec(code, {"query_ids": [f"q{n}" for n in range(200)], "score_of": lambda _: 1.0})
    assert capsys.readouterr().out.startswith("passed settled after ")


def test_every_measure_is_in_the_table_with_its_unit_and_direction() -> None:
    rows = re.findall(r"^\| `([\w@]+)` \| (\w+) \| (\w+) \|", MEASURES, re.MULTILINE)
    shown = {name.removesuffix("@k"): (name.endswith("@k"), unit, better) for name, unit, better in rows}
    assert set(shown) == set(known_measures())
    for name, (takes_cutoff, unit, better) in shown.items():
        measure = measure_named(f"{name}@5" if takes_cutoff else name)
        assert (measure.unit, measure.better) == (unit, better), name


def test_the_measure_on_the_page_measures(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    (code, judged), (toml,) = blocks(OWN_MEASURE, "python"), blocks(OWN_MEASURE, "toml")
    site = suite.path / "site"
    (site / "mine-1.0.dist-info").mkdir(parents=True)
    (site / "mine-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    points = toml.replace('[project.entry-points."rag_harness.measures"]', "[rag_harness.measures]").replace('"', "")
    points += "groundedness = my_package.groundedness:Groundedness\n"
    (site / "mine-1.0.dist-info" / "entry_points.txt").write_text(points)
    (site / "my_package").mkdir()
    (site / "my_package" / "brevity.py").write_text(code)
    (site / "my_package" / "groundedness.py").write_text(judged)
    monkeypatch.setenv("PYTHONPATH", str(site))
    result = suite.run("--rag-gate=e3: brevity <= 60", "--rag-gate=e3: groundedness >= 0")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["passed *e3: brevity <= 60 *n=3", "passed *e3: groundedness >= 0 *"])


def test_the_summary_on_the_page_is_what_the_shipped_suite_writes(suite: Suite) -> None:
    (example,) = map(json.loads, blocks(read(DOCS / "reference/verdicts.md"), "json"))
    # tests/plugin/test_shipped.py replays it in a Python that starts anew; here it may come from the warm one.
    result = replay(suite.path, "test_retrieval_golden")
    assert result.returncode == 0, result.stdout[-2000:]
    written = json.loads((suite.path / "out" / "summary.json").read_text())
    written["gates"] = [gate for gate in written["gates"] if gate["gate"].startswith("golden")]
    assert set(example["gates"][0]) == set(written["gates"][0])
    assert _shortened(written, example) == example


def _shortened(written: Any, example: Any) -> Any:
    """Return of what was written the keys and items that the example has, numbers to four digits."""
    if isinstance(example, dict):
        return {key: _shortened(written[key], value) for key, value in example.items()}
    if isinstance(example, list):
        return [_shortened(had, value) for had, value in zip(written, example, strict=False)]
    return round(written, 4) if isinstance(written, float) else written


def test_every_option_on_a_page_exists() -> None:
    known = {f"--rag-{each.name.replace('_', '-')}" for each in options()} | {"--rag-kb"}
    named = [(where, flag) for page in PAGES for where, flag in found(_FLAG, page, but=_REMOVED)]
    faults = [f"{where}: {flag}" for where, flag in named if flag not in known]
    assert not faults, "\n".join(faults)


def test_what_the_pages_of_judges_set_is_known() -> None:
    (measures,) = re.findall(r"^    rag_measures = (.+)", read(DOCS / "how-to/judge-answers.md"), re.M)
    assert set(measures.split(", ")) <= set(known_measures())
    (gate,) = re.findall(r"^ {8}(e3: .+)", read(DOCS / "how-to/calibrate-a-judge.md"), re.M)
    assert parse_gate(gate, k=5) != parse_gate(gate.replace("~calibrated", ""), k=5)
