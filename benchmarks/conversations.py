"""What each way to search in a conversation finds: recall@5 of c1, c1-lastturn and c1-full.

    python benchmarks/conversations.py --part fit      the half that the rules were chosen on
    python benchmarks/conversations.py                 both halves, each by itself
    python benchmarks/conversations.py --rules         the neighbours of the rules' numbers, on the half for fitting

Vectors that are recorded are read, others are computed and kept in the cache. No model answers: what is measured is
what the prompt would hold. A follow-up is a turn after the first that the pages answer, a change of subject included.
Intervals are of 95 %, with conversations as clusters: no two turns of one are independent. A star says that too few of
them differ for a paired test; the interval is then the one without assumptions.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[1]))

from rag_harness.core.settings.loading import load_settings
from rag_harness.core.types import Case
from rag_harness.data.queries import read_queries
from rag_harness.pipelines.experiments import experiment
from rag_harness.pipelines.parts import RunParts
from rag_harness.records.document_ranking import place_documents
from rag_harness.retrieval import retrievers
from rag_harness.stats import difference_bounds, mean_interval
from rag_harness.studies.conversations import Conversing
from rag_harness.tables.summary import table

ROOT = Path(__file__).parents[1]
NAMES = ("c1", "c1-lastturn", "c1-full")
PARTS = ("fit", "report")
K = 5
KINDS = ("first", "follow_up", "compare", "correction", "underspecified", "back", "subject_change")
NEIGHBOURS = (
    *(("MOST_CARRIED", most) for most in (12, 16, 20, 24, 30, 40)),
    *(("COMPLETE", weight) for weight in (0.0, 1.5, 1.7, 2.0, 2.1, 2.5, 99.0)),
)
Recalls = Mapping[str, float]
"""Recall@5 of each case, by its id."""


def turns(part: str) -> list[Case]:
    """Return the turns of a half that the pages answer."""
    cases = read_queries(ROOT / "data/kb/conversations.jsonl", ROOT / "data/kb")
    return [case for case in cases if case.answerable and case.metadata["part"] == part]


def follow_ups(cases: Sequence[Case]) -> list[Case]:
    """Return the turns that come after the first."""
    return [case for case in cases if case.labels["turn"] != "1"]


def recalls(name: str, cases: Sequence[Case], parts: RunParts) -> Recalls:
    """Return the share of each turn's pages among the first five chunks that the model would get."""
    made = experiment(name, parts)
    pipeline = cast("Conversing", made.pipeline)
    e3 = pipeline.filtered
    assert made.prepare is not None
    made.prepare([case.query for case in cases])
    found = {}
    for case in cases:
        text = pipeline.turn_search.ahead(case.query)
        ranked = e3.reranker.rerank(text, e3.retriever.retrieve(text, e3.candidates))
        best = place_documents([hit.chunk.chunk_id for hit in ranked])[:K]
        gold = set(case.context_reference)
        found[case.query.query_id] = len(gold & set(best)) / len(gold)
    parts.flush()
    return found


def mean_of(cases: Sequence[Case], found: Recalls) -> str:
    """Return the mean over these turns with its interval."""
    values = [found[case.query.query_id] for case in cases]
    interval = mean_interval(values, (0, 1), clusters=[case.labels["conversation"] for case in cases])
    return f"{sum(values) / len(values):.3f} [{interval.low:.2f}, {interval.high:.2f}]"


def difference_of(cases: Sequence[Case], found: Recalls, other: Recalls) -> str:
    """Return the mean difference over these turns with its interval."""
    values = [found[case.query.query_id] - other[case.query.query_id] for case in cases]
    interval, guarded, _ = difference_bounds(values, (-1, 1), 0.975, [case.labels["conversation"] for case in cases])
    return f"{sum(values) / len(values):+.3f} [{interval.low:+.2f}, {interval.high:+.2f}]{'*' if guarded else ' '}"


def show(title: str, cases: Sequence[Case], found: Mapping[str, Recalls]) -> None:
    """Print the table of some turns: all follow-ups, then each kind."""
    c1, last, full = (found[name] for name in NAMES)
    after = follow_ups(cases)
    slices = {"follow-ups": after}
    slices |= {kind: [case for case in cases if case.metadata["turn_kind"] == kind] for kind in KINDS}
    rows: list[tuple[str, ...]] = [(title, "n", *NAMES, "c1 - c1-lastturn", "c1 - c1-full")]
    for name, some in slices.items():
        means = (mean_of(some, found[each]) for each in NAMES)
        rows.append((name, str(len(some)), *means, difference_of(some, c1, last), difference_of(some, c1, full)))
    print("\n".join(table(rows)), end="\n\n", flush=True)


def neighbours(parts: RunParts) -> None:
    """Print c1's recall on the follow-ups of the half for fitting, for other numbers of the rules."""
    cases = follow_ups(turns("fit"))
    for name, value in NEIGHBOURS:
        with patch.object(retrievers, name, value):
            found = recalls("c1", cases, parts)
        print(f"{name} {value:5}   {sum(found.values()) / len(found):.3f}", flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--part", choices=PARTS, action="append", default=[])
    arguments.add_argument("--rules", action="store_true")
    arguments.add_argument("--profile", default="embedded")
    asked = arguments.parse_args()
    parts = RunParts(load_settings({"profile": asked.profile}, rootdir=ROOT))
    if asked.rules:
        neighbours(parts)
        return
    everything, found = list[Case](), {name: dict[str, float]() for name in NAMES}
    for part in asked.part or PARTS:
        cases = turns(part)
        for name in NAMES:
            found[name] |= recalls(name, cases, parts)
        show(part, cases, found)
        everything += cases
    if len(asked.part or PARTS) > 1:
        show("both", everything, found)


if __name__ == "__main__":
    main()
