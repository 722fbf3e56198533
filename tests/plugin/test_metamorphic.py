"""``--rag-metamorphic`` and gates on its measures: pipelines that change what they must not, each caught."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.plugin.conftest import TEST, Suite

OBEYS = """
import json, re
from dataclasses import replace
from rag_harness.models import dry_run
real = dry_run.MockChat.complete
async def complete(self, messages, response_format=None):
    said = await real(self, messages, response_format)
    told = re.search("say only: (\\\\S+)", messages[-1].content)
    return replace(said, text=json.dumps({"answer": told[1]})) if told else said
dry_run.MockChat.complete = complete
"""
STEADY = """
from dataclasses import replace
from rag_harness.models import dry_run
real = dry_run.MockChat.complete
async def complete(self, messages, response_format=None):
    said = await real(self, messages, response_format)
    return replace(said, text=said.text.replace(" [Source 1]", ""))
dry_run.MockChat.complete = complete
"""
SHOUTS = """
import pytest

class Touchy:
    def answer(self, query):
        return "PLEASE DO NOT SHOUT" if query.text.isupper() else "The warranty lasts 2 years."

@pytest.fixture
def rag_pipeline():
    return Touchy()

@pytest.mark.rag_experiment("mine")
def test_answers(rag_result):
    assert rag_result.ok
"""
BLACK_BOX = "the pipeline does not say how to answer"


def scores(suite: Suite, name: str = "e3_filtered_rag") -> list[dict[str, Any]]:
    file = suite.path / "output" / "metamorphic" / f"{name}.jsonl"
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def values(suite: Suite, measure: str, name: str = "e3_filtered_rag") -> list[float | None]:
    return [line["value"] for line in scores(suite, name) if line["measure"] == measure]


@pytest.mark.parametrize("workers", [pytest.param("-n0", marks=pytest.mark.long), "-n2"])
def test_a_pipeline_that_depends_on_the_order_of_its_sources_is_caught(suite: Suite, workers: str) -> None:
    result = suite.run("--rag-gate=e3: metamorphic_order >= 0.95", workers)
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*= rag metamorphic =*",
            "order  *0/4",
            "  order (4) e3-q_*: cites *.md, not *.md",
            "    changed  * sources in reversed order",
            "all 4: output/metamorphic",
            "failed *e3: metamorphic_order >= 0.95 *0.000 *n=4",
        ]
    )
    assert {line["measure"] for line in scores(suite)} == {"metamorphic_order"}
    summary = json.loads((suite.path / "output" / "summary.json").read_text())
    assert summary["metamorphic"]["e3"]["metamorphic_order"]["rate"] == 0 == summary["e3"]["metamorphic_order"]


def test_a_pipeline_that_does_as_a_source_tells_it_is_caught(suite: Suite) -> None:
    gate = "--rag-gate=e3: injection_resisted >= 0.99"
    assert suite.run(gate).ret == 0
    suite.pytester.makeconftest(OBEYS)
    result = suite.run(gate, "--rag-overwrite")
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(
        [
            "injection *0/4",
            "  injection (4) e3-q_*: says OK-*",
            "    changed *say only: OK-*",
            "    before   Placeholder answer*",
            "    after    OK-*",
        ]
    )


def test_a_pipeline_of_ones_own_that_shouts_is_caught(suite: Suite) -> None:
    suite.pytester.makepyfile(SHOUTS)
    result = suite.run("--rag-metamorphic", "--rag-gate=mine: metamorphic_case >= 0.9")
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(
        [
            "case *0/4",
            "politeness *4/4",
            f"mine: without a score: order 4, distractor 4, injection 4: {BLACK_BOX}*",
            "left out: paraphrase: no model of role writer is named*",
            "    changed  RETURN A LAMP",
            "    before   The warranty lasts 2 years.",
            "    after    PLEASE DO NOT SHOUT",
        ]
    )
    assert "metamorphic_paraphrase" not in {line["measure"] for line in scores(suite, "mine")}


def test_a_pipeline_that_is_made_in_a_worker_is_not_asked_again(suite: Suite) -> None:
    suite.pytester.makepyfile(SHOUTS)
    result = suite.run("--rag-gate=mine: metamorphic_case >= 0.9", "-n2")
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(["mine: without a score: case 4: mine is not a registered*"])


def test_what_changes_nothing_passes_and_a_second_run_asks_nothing_again(suite: Suite) -> None:
    suite.pytester.makeconftest(STEADY)
    gates = [f"--rag-gate=e3: metamorphic_{name} >= 1" for name in ("case", "typos", "politeness", "order")]
    suite.run("--rag-metamorphic", *gates).assert_outcomes(passed=4)
    derived = suite.path / "output" / "derived"
    before, said = {file.name: file.read_bytes() for file in derived.iterdir()}, scores(suite)
    assert {"e3+capitals.jsonl", "e3+reversed.jsonl", "e3+injection.jsonl"} <= set(before)
    suite.run("--rag-metamorphic", *gates).assert_outcomes(passed=4)
    assert ({file.name: file.read_bytes() for file in derived.iterdir()}, scores(suite)) == (before, said)
    assert not list((suite.path / "output" / "journal").iterdir())


def test_what_cannot_be_changed_has_a_reason_and_no_score(suite: Suite) -> None:
    suite.write_queries([{"query_id": "q_one", "query": "12"}])
    suite.run("--rag-metamorphic")
    why = {line["measure"]: line["reason"] for line in scores(suite) if line["value"] is None}
    assert why["metamorphic_case"] == "no letter of the question has a capital"
    assert why["metamorphic_typos"].startswith("no word of 5 letters")
    assert why["metamorphic_enumeration"] == "the question lists nothing"
    assert why["metamorphic_distractor"] == "no page about something else is known"
    assert all(line["undefined"] for line in scores(suite) if line["value"] is None)


def test_a_sample_is_checked_and_a_measure_that_is_named_is_enough(suite: Suite) -> None:
    named = "--rag-measures=metamorphic_case"
    suite.run(named, "--rag-metamorphic-cases=2").stdout.fnmatch_lines(["case *2/2"])
    two = {line["query_id"] for line in scores(suite)}
    suite.run(named, "--rag-metamorphic-cases=2")
    assert {line["query_id"] for line in scores(suite)} == two
    suite.run(named, "--rag-metamorphic-cases=0").stdout.fnmatch_lines(["case *4/4"])
    refused = suite.run(named, "--rag-metamorphic-cases=-1")
    assert refused.ret != 0
    assert "metamorphic_cases" in refused.stdout.str() + refused.stderr.str()


def test_no_answer_is_nothing_to_check(suite: Suite) -> None:
    suite.pytester.makeconftest(
        "from rag_harness.models import dry_run\n"
        "async def complete(self, messages, response_format=None):\n"
        "    raise ValueError('no model')\n"
        "dry_run.MockChat.complete = complete\n"
    )
    result = suite.run("--rag-gate=e3: metamorphic_case >= 0.9")
    gate = ["failed *e3: metamorphic_case >= 0.9", "*no case has a value of metamorphic_case: 4 of 4 have no answer"]
    result.stdout.fnmatch_lines(["no trial with an answer: nothing to check", *gate])
    assert result.ret != 0


def test_a_variant_that_has_no_answer_has_no_score(suite: Suite) -> None:
    suite.pytester.makepyfile(SHOUTS.replace('"PLEASE DO NOT SHOUT"', "1 / 0"))
    result = suite.run("--rag-measures=metamorphic_case")
    result.stdout.fnmatch_lines(["mine: without a score: case 4: *ZeroDivisionError: division by zero"])
    assert values(suite, "metamorphic_case", "mine") == [None] * 4


def test_workers_that_shared_a_budget_leave_none(suite: Suite) -> None:
    result = suite.run("--rag-metamorphic", "--rag-budget=1", "-n2")
    result.stdout.fnmatch_lines(["e3: without a score: *the workers have shared"])
    assert values(suite, "metamorphic_case") == [None] * 4


@pytest.mark.parametrize(
    ("option", "broken", "said"),
    [
        (
            "--rag-metamorphic",
            "diagnosis.metamorphic.Checker.check",
            "cannot be checked: ZeroDivisionError: once",
        ),
        ("--rag-attribute", "diagnosis.explainer.Explainer.every", "cannot be told: ZeroDivisionError: once"),
    ],
)
def test_an_error_that_nobody_foresaw_costs_the_section_and_not_the_gates(
    suite: Suite, option: str, broken: str, said: str
) -> None:
    module, _, name = f"rag_harness.{broken}".rpartition(".")
    package, _, owner = module.rpartition(".")
    suite.pytester.makeconftest(
        f"from {package} import {owner}\n"
        f"def raises(*args):\n    raise ZeroDivisionError('once')\n"
        f"{owner}.{name} = raises\n"
    )
    result = suite.run(option, "--rag-gate=e3: recall@5 >= 0")
    result.stdout.fnmatch_lines([said])
    result.stdout.fnmatch_lines(["passed *e3: recall@5 >= 0*"])
    assert result.ret == 0


def test_suites_import_none_of_it_unless_asked(suite: Suite) -> None:
    # The warm Python that it is forked from has imported more than a run needs, and none of this either.
    suite.pytester.makepyfile(
        TEST + "\nimport sys\n\ndef test_not_there():\n"
        "    assert not {'rag_harness.diagnosis.metamorphic', 'rag_harness.diagnosis.interventions'} & {*sys.modules}\n"
    )
    result = suite.run()
    result.assert_outcomes(passed=5)
    result.stdout.no_fnmatch_line("*rag metamorphic*")
    assert not (suite.path / "output" / "metamorphic").exists()
