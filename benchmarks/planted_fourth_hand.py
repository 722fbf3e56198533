"""Faults planted by a fourth hand in answers and contexts alone, as a pipeline of anybody's own returns them.

    python benchmarks/planted_fourth_hand.py [FILE] [--kind NAME] [--brief]

Each line of FILE (by default those of ``planted_fourth_hand/``) is a trial over the shop's knowledge base: ``kind``,
``query_id``, ``answer``, ``contexts`` (each with ``text`` and ``source``), and, for whoever reads the output,
``accepted`` causes in plain words and ``wrong_remedies``.
The trials of a kind are one experiment, whose pipeline returns what the lines say: nobody knows its index or its
search, and no model judges. It is explained as ``rag-harness explain`` does, which sees neither kind nor ``accepted``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from planted import answered, explained

from rag_harness.core.settings.loading import load_settings
from rag_harness.core.types import PipelineOutput, Query
from rag_harness.pipelines.parts import RunParts
from rag_harness.pipelines.user_pipelines import declared, output_of
from rag_harness.records.scores import CauseLine

ROOT = Path(__file__).parents[1]
SHOP = {"mode": "auto", "kb_dir": str(ROOT / "data" / "kb")}
PLANTED = ROOT / "benchmarks" / "planted_fourth_hand" / "planted.jsonl"
NONE = "(no cause: the trial does not count as failed)"


@dataclass
class Stub:
    """Returns what the lines of a kind say."""

    said: Mapping[str, Mapping[str, Any]]

    async def answer(self, query: Query) -> PipelineOutput:
        line = self.said[query.query_id]
        return output_of({"answer": line["answer"], "contexts": list(line["contexts"])}, "the stub")


class Suite:
    """The shop's pages, and the questions of one kind."""

    def __init__(self, query_ids: Sequence[str]) -> None:
        self.parts = RunParts(load_settings(SHOP, rootdir=ROOT))
        self.data = self.parts.data("")
        known = {case.query.query_id: case for case in self.data.cases}
        self.cases = [known[query_id] for query_id in query_ids]


def causes(trials: Sequence[Mapping[str, Any]]) -> dict[str, CauseLine]:
    """Return the cause of each trial of a kind, by the id of its question."""
    said = {trial["query_id"]: trial for trial in trials}
    suite, experiment = Suite(list(said)), replace(declared("x1", Stub(said), ""), retrieves=True)
    with tempfile.TemporaryDirectory() as folder:
        rows = asyncio.run(answered(suite, experiment, Path(folder)))
        return {line.query_id: line for line in explained(suite, experiment, list(rows.values()), Path(folder))}


def name(line: CauseLine | None) -> str:
    return f"{line.cause}: {line.detail}" if line else NONE


def print_trial(trial: Mapping[str, Any], line: CauseLine | None) -> None:
    print(f"  {trial['query_id']}  {name(line)}")
    if line:
        print(f"      evidence  {line.evidence}\n      remedy    {line.remedy}")
    print(f"      accepted  {' | '.join(trial.get('accepted', ()))}")
    if wrong := trial.get("wrong_remedies"):
        print(f"      wrong     {' | '.join(wrong)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?", default=PLANTED)
    parser.add_argument("--kind", action="append", help="only these; default: all")
    parser.add_argument("--brief", action="store_true", help="print the table alone")
    chosen = parser.parse_args()
    by_kind: dict[str, list[Mapping[str, Any]]] = {}
    for trial in map(json.loads, filter(str.strip, chosen.file.read_text(encoding="utf-8").splitlines())):
        if not chosen.kind or trial["kind"] in chosen.kind:
            by_kind.setdefault(trial["kind"], []).append(trial)
    counted: dict[str, Counter[str]] = {}
    for kind, trials in by_kind.items():
        lines = causes(trials)
        counted[kind] = Counter(name(lines.get(trial["query_id"])) for trial in trials)
        if not chosen.brief:
            print(f"\n{kind}: {len(trials)} trials")
            for trial in trials:
                print_trial(trial, lines.get(trial["query_id"]))
    print()
    for kind, names in counted.items():
        print(f"{kind} ({names.total()})")
        for named, number in names.most_common():
            print(f"    {number:3}  {named}")


if __name__ == "__main__":
    main()
