"""The pages about clusters, report and terminal: their commands can be typed, their files read, tables are whole."""

from __future__ import annotations

import re
import shlex
from dataclasses import fields

import yaml

from rag_harness.core.settings.table import Settings
from rag_harness.retrieval.indexes.server_connection import ClusterOptions, GraphOptions, cluster_options
from tests.unit.pages import DOCS, found, read, refusal

HOW_TO = ["scale", "start-ray", "ray-on-kubernetes", "ray-on-slurm", "qdrant", "qdrant-on-kubernetes"]
HOW_TO += ["report", "read-a-report", "report-on-a-pull-request", "terminal"]
FILES = {name: DOCS / "how-to" / f"{name}.md" for name in HOW_TO}
PAGES = {name: read(file) for name, file in FILES.items()}
REFERENCE = read(DOCS / "reference" / "qdrant.md")
_FLAG = re.compile(r"--rag-[\w-]+")
_COMMAND = re.compile(r"^ {4}(?:until )?(rag-harness .*?)(?:;.*)?$", re.MULTILINE)


def test_a_page_is_short_and_its_options_are_there() -> None:
    assert {name: words for name, text in PAGES.items() if (words := len(text.split())) > 600} == {}
    options = set(_FLAG.findall(read(DOCS / "reference" / "options.md")))
    faults = [
        f"{where}: {flag}" for file in FILES.values() for where, flag in found(_FLAG, file) if flag not in options
    ]
    assert not faults, "\n".join(faults)


def test_a_command_can_be_typed() -> None:
    """Also one behind ``until``, which stands on no other page."""
    commands = [each for file in FILES.values() for each in found(_COMMAND, file)]
    faults = [f"{where}: {command}: {why}" for where, command in commands if (why := refusal(shlex.split(command)[1:]))]
    assert not faults, "\n".join(faults)
    assert len(commands) >= 10


def test_files_are_yaml() -> None:
    cluster, chart, workflow = (
        yaml.safe_load(re.findall(r"```yaml\n(.*?)```", PAGES[name], re.DOTALL)[0])
        for name in ("ray-on-kubernetes", "qdrant-on-kubernetes", "report-on-a-pull-request")
    )
    assert cluster["kind"] == "RayCluster"
    assert chart["replicaCount"] == 3
    named = shlex.split(workflow[2]["run"])
    assert refusal(named[1 : named.index("&&")]) == ""


def test_the_cluster_that_is_shown_can_be_read() -> None:
    (shown,) = re.findall(r'qdrant_cluster = \["(.*?)"\]', PAGES["qdrant"])
    made = cluster_options(Settings(qdrant_cluster=tuple(shown.split())))
    assert (made.shards, made.replicas, made.write_consistency) == (6, 2, 2)


def test_tables_of_qdrant_have_every_option() -> None:
    cells = re.findall(r"^\| (`.*?) \|", REFERENCE, re.MULTILINE)
    named = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert set(named) >= {each.name for made in (ClusterOptions, GraphOptions) for each in fields(made)}
