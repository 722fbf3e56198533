from __future__ import annotations

import re

import pytest

from rag_harness.service.observations import trace_ids
from tests.unit.service.observing.seen import TRACEPARENT


def test_an_id_is_drawn_for_each_question() -> None:
    drawn = {trace_ids().trace_id for _ in range(100)}
    assert len(drawn) == 100
    assert all(re.fullmatch("[0-9a-f]{32}", each) for each in drawn)


def test_a_traceparent_is_continued_where_spans_go_and_never_names_what_is_kept_here() -> None:
    one, other = trace_ids(TRACEPARENT), trace_ids(TRACEPARENT)
    assert (one.exported, one.parent, one.sampled) == ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", True)
    assert len({one.trace_id, other.trace_id, one.exported}) == 3


def test_a_client_may_ask_that_nothing_is_exported() -> None:
    assert not trace_ids(f"{TRACEPARENT[:-2]}00").sampled
    assert not trace_ids(f"{TRACEPARENT[:-2]}02").sampled


def test_a_newer_version_of_the_header_is_read_as_far_as_it_is_known() -> None:
    assert trace_ids(f"cc{TRACEPARENT[2:]}-what-comes").parent == "b7ad6b7169203331"


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "nonsense",
        TRACEPARENT.upper(),
        f"ff{TRACEPARENT[2:]}",
        f"{TRACEPARENT}-more",
        f"00-{'0' * 32}-b7ad6b7169203331-01",
        f"00-0af7651916cd43dd8448eb211c80319c-{'0' * 16}-01",
        TRACEPARENT[:-1],
    ],
)
def test_what_is_malformed_counts_as_absent(header: str | None) -> None:
    ids = trace_ids(header)
    assert ids.exported == ids.trace_id
    assert (ids.parent, ids.sampled) == ("", True)
