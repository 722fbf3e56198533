"""What a row says of its review means the same to gates, to a review, its page, and a file that is written over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rag_harness.__main__ import CANNOT_RUN, main
from rag_harness.authoring.questions.review.page import html_of
from rag_harness.authoring.questions.review.rows import state_of
from rag_harness.core.types import is_in
from rag_harness.data.queries import read_queries
from tests.unit.authoring.questions.review.drafts import drafted, row, showing
from tests.unit.authoring.questions.review.test_page import data_of

SAID = [
    ("yes", "accepted"),
    (True, "accepted"),
    ("Yes ", "accepted"),
    ("Ada, in May", "accepted"),
    ("no", "unreviewed"),
    (False, "unreviewed"),
    ("", "unreviewed"),
    (0, "unreviewed"),
    ("rejected", "rejected"),
    ("Rejected", "rejected"),
]


@pytest.mark.parametrize(("said", "state"), SAID)
def test_a_review_is_read_the_same_everywhere(said: Any, state: str, tmp_path: Path) -> None:
    one = row(1, metadata={"reviewed": said})
    file = drafted(tmp_path, one)
    (case,) = read_queries(file)
    assert state_of(one) == state
    assert is_in(case.labels, {"reviewed": "yes" if state == "accepted" else "no"})
    assert data_of(html_of("queries.jsonl", [one], showing(file)))["notes"]["q_001"]["state"] == state
    status = main(["kb", "queries", str(file.parent), "--direct", "1"])
    assert (status == CANNOT_RUN) is (state != "unreviewed")
    assert (json.loads(file.read_text())["metadata"].get("reviewed") == said) is (state != "unreviewed" or said == "no")


@pytest.mark.parametrize("metadata", [{}, {"reviewed": None}])
def test_what_nobody_marked_was_written_by_somebody_and_can_still_be_reviewed(
    metadata: dict[str, Any], tmp_path: Path
) -> None:
    file = drafted(tmp_path, one := row(1, metadata=metadata))
    (case,) = read_queries(file)
    assert state_of(one) == "unreviewed"
    assert is_in(case.labels, {"reviewed": "yes"})
    assert main(["kb", "queries", str(file.parent)]) == CANNOT_RUN
