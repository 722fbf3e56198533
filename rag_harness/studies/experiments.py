"""The table of the experiments of all studies, with those that are another one with a value changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# It imports no study, so names are known before anything is built. A new experiment is a function and a line here.


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


_T1 = "rag_harness.studies.textbook:build_t1"
_R1 = "rag_harness.studies.reliability:build_r1"

EXPERIMENTS: Mapping[str, ShippedExperiment] = {
    "e1": ShippedExperiment("rag_harness.studies.retail:build_e1", "e1_baseline"),
    "e2": ShippedExperiment("rag_harness.studies.retail:build_e2", "e2_standard_rag"),
    "e3": ShippedExperiment("rag_harness.studies.retail:build_e3", "e3_filtered_rag"),
    "e3-plain": ShippedExperiment("rag_harness.studies.retail:build_e3_plain", "e3__plain"),
    "e3-tuned": ShippedExperiment("rag_harness.studies.retail:build_e3_tuned", "e3__tuned"),
    "e4": ShippedExperiment("rag_harness.studies.retail:build_e4", "e4_reasoning_rag"),
    "e4-plan": ShippedExperiment("rag_harness.studies.retail:build_e4_plan", "e4__plan"),
    "a1": ShippedExperiment("rag_harness.studies.agents:build_a1", "a1_agent", "agents"),
    "a1-once": ShippedExperiment("rag_harness.studies.agents:build_a1_once", "a1__once", "agents"),
    "c1": ShippedExperiment("rag_harness.studies.conversations:build_c1", "c1_standalone", "conversations"),
    "c1-full": ShippedExperiment("rag_harness.studies.conversations:build_c1_full", "c1__full", "conversations"),
    "c1-lastturn": ShippedExperiment(
        "rag_harness.studies.conversations:build_c1_lastturn", "c1__lastturn", "conversations"
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
    "t2": ShippedExperiment("rag_harness.studies.textbook:build_t2", "t2_fixed", "textbook"),
    "t3": ShippedExperiment("rag_harness.studies.textbook:build_t3", "t3_hybrid", "textbook"),
    "t3-rrf": ShippedExperiment("rag_harness.studies.textbook:build_t3_rrf", "t3__rrf", "textbook"),
    "t4": ShippedExperiment("rag_harness.studies.textbook:build_t4", "t4_sliding", "textbook"),
    "t5": ShippedExperiment("rag_harness.studies.textbook:build_t5", "t5_summaries", "textbook"),
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
