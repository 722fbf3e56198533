"""What the pages about the service say of traces, metrics and settings and containers is what the code does."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from rag_harness.__main__ import parser_of
from rag_harness.frontends.cli.serve import serve_arguments, settings_of
from rag_harness.service import observations
from rag_harness.service.monitoring import Metrics
from rag_harness.service.observations import spans_of
from rag_harness.service.schemas import Answered, Asked, Doc, Health
from tests.unit.service.observing.seen import seen
from tests.unit.service.observing.test_observations import told

DOCS = Path(__file__).parents[4] / "docs"


def _page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


REFERENCE = _page("reference/service.md")
TRACES = _page("how-to/service-traces.md")


def _section(title: str) -> str:
    return REFERENCE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def _blocks(section: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


def test_every_metric_of_the_page_is_there() -> None:
    metrics = Metrics()
    metrics.request("GET", "/x", 200)
    metrics.answered(seen(first_token_ms=1.0))
    metrics.rated(1)
    metrics.ingested(1.0, ok=False)
    there = " ".join(told(metrics))
    table = [line for line in _section("Metrics").splitlines() if line.startswith("| `")]
    said = [name for line in table for name in re.findall(r"`(\w+?)(?:\{[^}]*\})?`", line.split("|")[1])]
    full = [name if name.startswith("rag_harness") else f"rag_harness{name}" for name in said if name != "process_"]
    assert len(full) == 15
    assert [name for name in full if name not in there] == []


def test_every_attribute_of_the_page_is_one_of_ours() -> None:
    known = {value for name, value in vars(observations).items() if name.isupper()}
    example = re.findall(r'"((?:gen_ai|rag_harness)\.[\w.]+)"', TRACES)
    assert len(example) >= 5
    assert [name for name in example if name not in known] == []
    for said in (TRACES, _section("Traces")):
        assert observations.SCHEMA_URL.rpartition("/")[2] in said


def test_the_example_of_a_trace_has_the_fields_of_one() -> None:
    (example,) = _blocks(TRACES, "json")
    own = spans_of(seen())[0].json()
    for name in own:
        assert f'"{name}"' in example
    read = json.loads(re.sub(r",? …", "", example.replace('"name": "retrieval default"', '"name": "r"')))
    assert set(read) >= {"trace_id", "began", "spans", "thumb", "comment", "continues", "mode"}


def _workflow() -> dict[str, Any]:
    (text,) = [block for block in _blocks(_page("how-to/service-container.md"), "yaml") if "jobs:" in block]
    read: dict[str, Any] = yaml.safe_load(text)
    return read


def test_the_workflow_starts_the_image_as_it_can_be_started() -> None:
    steps = _workflow()["jobs"]["evaluate-build-ask"]["steps"]
    lines = "\n".join(step.get("run", "") for step in steps).replace("\\\n", " ").splitlines()
    serving = next(line for line in lines if "rag-harness serve" in line)
    parser = argparse.ArgumentParser(exit_on_error=False, allow_abbrev=False)
    serve_arguments(parser)
    chosen = parser.parse_args(shlex.split(serving.partition("rag-harness serve ")[2]))
    assert (chosen.profile, chosen.host) == ("mock", "0.0.0.0")
    making = next(line for line in lines if "keys create" in line)
    words = shlex.split(making.partition(" rag-harness ")[2].partition(" > ")[0])
    assert parser_of(words).parse_args(words).scopes == ["query"]


def test_the_command_for_labels_is_one_that_there_is() -> None:
    line = next(line for line in _page("how-to/service-cases.md").splitlines() if "from-traces" in line)
    words = shlex.split(line)[1:]
    chosen = parser_of(words).parse_args(words)
    assert (chosen.since, chosen.sample, chosen.queries) == ("7d", 50, Path("asked.jsonl"))


def test_the_settings_of_the_page_have_their_defaults() -> None:
    parser = argparse.ArgumentParser()
    serve_arguments(parser)
    rows = re.findall(r"^\| (`--[^|]*) \| ([^|]*) \|", _section("Settings"), re.MULTILINE)
    told = [(re.findall(r"`--([a-z-]+)`", flags), shown.replace("`", "").split(", ")) for flags, shown in rows]
    said = {flag: value for flags, shown in told for flag, value in zip(flags, shown, strict=True)}
    chosen = vars(parser.parse_args(["--experiment", "e2"]))
    same = ("state", "host", "port", "concurrency", "upload-limit", "rate", "trace-days", "log-format", "log-level")
    assert {name: said[name] for name in same} == {name: str(chosen[name.replace("-", "_")]) for name in same}
    assert float(said["seconds"]) == chosen["seconds"]
    assert {name.replace("-", "_") for name in said} == set(chosen) - {"experiment"}, "which must be named"


def test_a_reranker_is_named_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    parser = argparse.ArgumentParser()
    serve_arguments(parser)
    chosen = parser.parse_args(["--experiment", "r1", "--rerank-model", "embedded/late-interaction"])
    assert settings_of(chosen).rerank_model == "embedded/late-interaction"


def test_the_fields_of_the_page_are_those_of_the_routes() -> None:
    for section, model in (("A question", Asked), ("An answer", Answered), ("A document", Doc), ("Health", Health)):
        first = _section(section).split("\n\n| field of a citation")[0]
        named = " ".join(line.split("|")[1] for line in first.splitlines() if line.startswith("| `"))
        assert set(re.findall(r"`(\w+)`", named)) == set(model.model_fields), section
