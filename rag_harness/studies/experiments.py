"""The experiments of all studies, in one table: what builds each, the stem of its result file, and its data.

It imports no study, so names are known before anything is built. A new experiment is a function and a line here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ShippedExperiment:
    """An experiment of a study.

    Args:
        build: the function that builds it, ``module:name``.
        file: the stem of its result file.
        data: the name of its data in pyproject.toml; empty if it asks the run's own.
        values: what its ``build`` takes by name, if it is another experiment with a value changed.
    """

    build: str
    file: str
    data: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)


_T1 = "rag_harness.studies.textbook.t1_headings:build"
_R1 = "rag_harness.studies.reliability.r1_reliable:build"

EXPERIMENTS: Mapping[str, ShippedExperiment] = {
    "e1": ShippedExperiment("rag_harness.studies.retail.e1_baseline:build", "e1_baseline"),
    "e2": ShippedExperiment("rag_harness.studies.retail.e2_standard_rag:build", "e2_standard_rag"),
    "e3": ShippedExperiment("rag_harness.studies.retail.e3_filtered_rag:build", "e3_filtered_rag"),
    "e3-plain": ShippedExperiment("rag_harness.studies.retail.e3__plain:build", "e3__plain"),
    "e3-tuned": ShippedExperiment("rag_harness.studies.retail.e3__tuned:build", "e3__tuned"),
    "e4": ShippedExperiment("rag_harness.studies.retail.e4_reasoning_rag:build", "e4_reasoning_rag"),
    "e4-plan": ShippedExperiment("rag_harness.studies.retail.e4__plan:build", "e4__plan"),
    "a1": ShippedExperiment("rag_harness.studies.agents.a1_agent:build", "a1_agent", "agents"),
    "a1-once": ShippedExperiment("rag_harness.studies.agents.a1__once:build", "a1__once", "agents"),
    "c1": ShippedExperiment("rag_harness.studies.conversations.c1_standalone:build", "c1_standalone", "conversations"),
    "c1-full": ShippedExperiment("rag_harness.studies.conversations.c1__full:build", "c1__full", "conversations"),
    "c1-lastturn": ShippedExperiment(
        "rag_harness.studies.conversations.c1__lastturn:build", "c1__lastturn", "conversations"
    ),
    "t1": ShippedExperiment(_T1, "t1_headings", "textbook"),
    # adaptive top-k: 3 to 8 sources, as many as have a score near the first one's
    "t1-adaptive": ShippedExperiment(_T1, "t1__adaptive", "textbook", {"adaptive": True}),
    # the student's selection does not change the order, or by other factors than 2
    "t1-boost0": ShippedExperiment(_T1, "t1__boost0", "textbook", {"boost": 1.0}),
    "t1-boost12": ShippedExperiment(_T1, "t1__boost12", "textbook", {"boost": 1.2}),
    "t1-boost15": ShippedExperiment(_T1, "t1__boost15", "textbook", {"boost": 1.5}),
    # searches for the question and the selected text together
    "t1-both": ShippedExperiment(_T1, "t1__both", "textbook", {"search_selection": True}),
    # the floor of the decision record, 0.7 for any embedding model
    "t1-floor07": ShippedExperiment(_T1, "t1__floor07", "textbook", {"floor": "record"}),
    # only the question finds candidates, whatever is selected
    "t1-nopassage": ShippedExperiment(_T1, "t1__nopassage", "textbook", {"passage": False}),
    "t2": ShippedExperiment("rag_harness.studies.textbook.t2_fixed:build", "t2_fixed", "textbook"),
    "t3": ShippedExperiment("rag_harness.studies.textbook.t3_hybrid:build", "t3_hybrid", "textbook"),
    "t3-rrf": ShippedExperiment("rag_harness.studies.textbook.t3__rrf:build", "t3__rrf", "textbook"),
    "t4": ShippedExperiment("rag_harness.studies.textbook.t4_sliding:build", "t4_sliding", "textbook"),
    "t5": ShippedExperiment("rag_harness.studies.textbook.t5_summaries:build", "t5_summaries", "textbook"),
    "r1": ShippedExperiment(_R1, "r1_reliable"),
    # retrieval is rated as in the first design; docs/dev/results/reliability.md says which questions that stops
    "r1-original": ShippedExperiment(_R1, "r1__original", values={"original": True}),
    "r2": ShippedExperiment(_R1, "r2_no_gate", values={"gate": False}),
    "r3": ShippedExperiment(_R1, "r3_no_verification", values={"verify": False}),
    # searches for the whole question
    "r4": ShippedExperiment(_R1, "r4_no_decomposition", values={"decompose": False}),
    # searches only by meaning
    "r5": ShippedExperiment(_R1, "r5_dense_only", values={"hybrid": False}),
    # every threshold is raised
    "r6": ShippedExperiment(_R1, "r6_strict", values={"mode": "strict"}),
}
