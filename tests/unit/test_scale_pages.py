"""The pages about clusters, report and terminal: their commands can be typed, their files read, tables are whole."""

from __future__ import annotations

import re
import shlex
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from rag_harness.__main__ import parser_of
from rag_harness.retrieval.indexes.server.server_options import ClusterOptions, GraphOptions, cluster_options
from rag_harness.settings.table import Settings

DOCS = Path(__file__).parents[2] / "docs"
HOW_TO = ["scale", "start-ray", "ray-on-kubernetes", "ray-on-slurm", "qdrant", "qdrant-on-kubernetes"]
HOW_TO += ["report", "read-a-report", "report-on-a-pull-request", "terminal"]
PAGES = {name: (DOCS / "how-to" / f"{name}.md").read_text(encoding="utf-8") for name in HOW_TO}
REFERENCE = (DOCS / "reference" / "qdrant.md").read_text(encoding="utf-8")
OPTIONS = set(re.findall(r"--rag-[\w-]+", (DOCS / "reference" / "options.md").read_text(encoding="utf-8")))
COMMANDS = re.findall(r"^ {4}(?:until )?(rag-harness .*?)(?:;.*)?$", "\n".join(PAGES.values()), re.MULTILINE)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_short_and_its_options_are_there(name: str) -> None:
    assert len(PAGES[name].split()) <= 600
    assert set(re.findall(r"--rag-[\w-]+", PAGES[name])) <= OPTIONS


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_can_be_typed(command: str) -> None:
    words = shlex.split(command)[1:]
    assert callable(parser_of(words).parse_args(words).run)


def test_files_are_yaml() -> None:
    cluster, chart, workflow = (
        yaml.safe_load(re.findall(r"```yaml\n(.*?)```", PAGES[name], re.DOTALL)[0])
        for name in ("ray-on-kubernetes", "qdrant-on-kubernetes", "report-on-a-pull-request")
    )
    assert cluster["kind"] == "RayCluster"
    assert chart["replicaCount"] == 3
    named = shlex.split(workflow[2]["run"])
    assert callable(parser_of(named[1 : named.index("&&")]).parse_args(named[1 : named.index("&&")]).run)


def test_the_cluster_that_is_shown_can_be_read() -> None:
    (shown,) = re.findall(r'--rag-qdrant-cluster="(.*?)"', PAGES["qdrant"])
    made = cluster_options(Settings(qdrant_cluster=tuple(shown.split())))
    assert (made.shards, made.replicas, made.write_consistency) == (6, 2, 2)


def test_tables_of_qdrant_have_every_option() -> None:
    cells = re.findall(r"^\| (`.*?) \|", REFERENCE, re.MULTILINE)
    named = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert set(named) >= {each.name for made in (ClusterOptions, GraphOptions) for each in fields(made)}
