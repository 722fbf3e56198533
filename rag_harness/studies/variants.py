"""Experiments that are another one with a value changed: their names and values, in one table.

It imports no study, so names are known before anything is built.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Variant(NamedTuple):
    """An experiment that is another one but for ``values``, which its ``build`` takes by name.

    ``file`` is the stem of its result file.
    """

    of: str
    file: str
    values: Mapping[str, Any]


VARIANTS: Mapping[str, Variant] = {
    # adaptive top-k: 3 to 8 sources, as many as have a score near the first one's
    "t1-adaptive": Variant("t1", "t1__adaptive", {"adaptive": True}),
    # the student's selection does not change the order, or by other factors than 2
    "t1-boost0": Variant("t1", "t1__boost0", {"boost": 1.0}),
    "t1-boost12": Variant("t1", "t1__boost12", {"boost": 1.2}),
    "t1-boost15": Variant("t1", "t1__boost15", {"boost": 1.5}),
    # searches for the question and the selected text together
    "t1-both": Variant("t1", "t1__both", {"search_selection": True}),
    # the floor of the decision record, 0.7 for any embedding model
    "t1-floor07": Variant("t1", "t1__floor07", {"floor": "record"}),
    # only the question finds candidates, whatever is selected
    "t1-nopassage": Variant("t1", "t1__nopassage", {"passage": False}),
    # retrieval is rated as in the first design; docs/results/reliability.md says which questions that stops
    "r1-original": Variant("r1", "r1__original", {"original": True}),
    "r2": Variant("r1", "r2_no_gate", {"gate": False}),
    "r3": Variant("r1", "r3_no_verification", {"verify": False}),
    # searches for the whole question
    "r4": Variant("r1", "r4_no_decomposition", {"decompose": False}),
    # searches only by meaning
    "r5": Variant("r1", "r5_dense_only", {"hybrid": False}),
    # every threshold is raised
    "r6": Variant("r1", "r6_strict", {"mode": "strict"}),
}
