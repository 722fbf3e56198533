"""What many searches and rerankers come to is what a plain rule says of them, in time that grows with them alone."""

from __future__ import annotations

import time
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.types import StepKind
from rag_harness.pipelines.otel.spans import SpanRecord
from rag_harness.pipelines.otel.steps import FoundDocument, SeenStep, outcome_of

Did = Sequence[tuple[StepKind, Sequence[int]]]


def steps(did: Did) -> list[SeenStep]:
    return [
        SeenStep(
            SpanRecord(kind, "t", str(at), end_ns=at), kind, kind, found=tuple(FoundDocument(id=str(n)) for n in found)
        )
        for at, (kind, found) in enumerate(did)
    ]


def plainly(did: Did) -> tuple[list[str], list[str]]:
    """Return first and left by lists that are looked through."""
    first: list[list[int]] = []
    left: list[list[int]] = []
    for kind, found in did:
        for lists, replaces, keeps in ((first, kind == "", True), (left, kind != "retrieve", False)):
            if lists is first and kind == "rerank":
                continue
            shared = [each for each in lists if set(each) & set(found)] or lists[-1:] if replaces else []
            lists[:] = [each for each in lists if not any(each is used for used in shared)]
            lists.append(list(dict.fromkeys([*found, *(n for each in shared for n in each if keeps)])))
    return tuple([*dict.fromkeys(str(n) for each in lists for n in each)] for lists in (first, left))  # type: ignore[return-value]


@given(st.lists(st.tuples(st.sampled_from(["retrieve", "rerank", ""]), st.lists(st.integers(0, 9), max_size=4))))
def test_searches_come_to_what_a_plain_rule_says(did: Did) -> None:
    outcome = outcome_of(steps(did))
    names = [document.id for document in outcome.documents]
    assert ([names[at] for at in outcome.first], [names[at] for at in outcome.left]) == plainly(did)


def test_the_work_is_linear_in_the_steps() -> None:
    def seconds(searches: int) -> float:
        did: list[tuple[StepKind, Sequence[int]]] = [
            ("retrieve", range(n, n + 10)) for n in range(0, searches * 10, 10)
        ]
        did += [(kind, range(n, n + 10)) for n in range(0, searches * 10, 10) for kind in ("rerank", "")]
        made = steps(did)
        began = time.process_time()
        outcome_of(made)
        return time.process_time() - began

    # Looking through all lists for each step takes fourteen times as long.
    assert min(seconds(1200) for _ in range(3)) < 10 * max(min(seconds(300) for _ in range(3)), 0.01)
