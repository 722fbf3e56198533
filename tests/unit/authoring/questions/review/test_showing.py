"""What a reviewer sees of a question, and why one may not be accepted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rag_harness.authoring.questions.review.page import AROUND
from rag_harness.authoring.questions.review.rows import QueryRow
from rag_harness.core.types import NEGATIVE
from tests.unit.authoring.questions.review.drafts import BROKEN, HELD, ROWS, drafted, row, showing
from tests.unit.authoring.questions.shop import PAGES

RIVAL = "# Islands\n\nHow long are island parcels held? For two weeks.\n"
OLD = "# Delivery 2020\n\nStatus: outdated, replaced by [delivery](delivery.md).\n\nParcels wait 3 days.\n"


def test_evidence_is_shown_where_it_stands(tmp_path: Path) -> None:
    (place,) = showing(drafted(tmp_path)).of(ROWS[0]).places
    assert place.section == ("Delivery",)
    assert place.before == "# Delivery\n\n"
    assert place.after.startswith(" If the ferry is cancelled, we call the recipient first.")
    assert f"{place.before}{place.quote}{place.after}" in PAGES["delivery.md"]


def test_evidence_that_is_gone_is_shown_with_what_is_nearest_to_it(tmp_path: Path) -> None:
    made = showing(drafted(tmp_path))
    (place,) = made.of(ROWS[3]).places
    assert HELD in place.nearest
    evidence = [{"filename": "delivery.md", "quote": "xylophone"}]
    (place,) = made.of(row(1, evidence=evidence)).places
    assert place.nearest.startswith("# Delivery")


def test_each_hop_has_its_place(tmp_path: Path) -> None:
    shown = showing(drafted(tmp_path)).of(ROWS[1])
    assert [(place.filename, place.section[-1]) for place in shown.places] == [
        ("delivery.md", "Delivery"),
        ("returns.md", "Windows"),
    ]


def test_a_long_page_is_cut_at_its_lines(tmp_path: Path) -> None:
    line = "The quay is swept each day.\n\n"
    file = drafted(tmp_path, pages={"delivery.md": f"# Quay\n\n{line * 500}{HELD}\n\n{line * 500}"})
    (place,) = showing(file).of(ROWS[0]).places
    assert AROUND / 2 < len(place.before) <= AROUND
    assert place.before.lstrip().startswith("The quay")
    assert place.after.rstrip().endswith("each day.")


def test_a_page_of_one_line(tmp_path: Path) -> None:
    file = drafted(tmp_path, pages={"delivery.md": f"{'quay ' * 5_000}{HELD}{' quay' * 5_000}"})
    (place,) = showing(file).of(ROWS[0]).places
    assert (len(place.before), len(place.after)) == (AROUND, AROUND)


def test_passages_of_other_pages_that_have_its_words_are_shown(tmp_path: Path) -> None:
    file = drafted(tmp_path, pages={**PAGES, "islands.md": RIVAL})
    near = showing(file).of(ROWS[0]).near
    assert [each.filename for each in near] == ["islands.md"]
    assert not showing(file).of(row(1, context_reference=["delivery.md", "islands.md"])).near


def test_nearest_passages_of_a_question_that_nothing_answers(tmp_path: Path) -> None:
    near = showing(drafted(tmp_path)).of(ROWS[2]).near
    assert near[0].filename == "delivery.md"
    assert 0 < near[0].share < 1


def test_evidence_of_a_superseded_page_says_so(tmp_path: Path) -> None:
    structure = '{"pages": [{"filename": "old.md", "status": "outdated"}]}'
    file = drafted(tmp_path, pages={**PAGES, "old.md": OLD})
    (file.parent / "structure.json").write_text(structure)
    evidence = [{"filename": "old.md", "quote": "Parcels wait 3 days."}]
    (place,) = showing(file).of(row(1, evidence=evidence, context_reference=["old.md"])).places
    assert place.replaced_by


FAULTS: tuple[tuple[QueryRow, str], ...] = (
    (row(1, evidence=[{"filename": "delivery.md", "quote": HELD.upper()}]), "word for word"),
    (row(1, evidence=[{"filename": "delivery.md", "quote": HELD.replace(" ", "  ")}]), "with other white space"),
    (
        row(1, evidence=[{"filename": "delivry.md", "quote": HELD}]),
        "'delivry.md' is no page of the documents. Did you mean",
    ),
    (row(1, context_reference=["gone.md"], evidence=[]), "'gone.md' is no page of the documents. Edit"),
    (row(1, evidence=[{"filename": "returns.md", "quote": BROKEN}]), "which its pages do not name"),
    (row(1, ground_truth=" "), "It has no answer"),
    (row(1, query=""), "query: "),
    (row(1, query_type="unlabelled"), "Its kind is not said"),
    (row(1, query_type="multi_hop"), "names one page"),
    (row(1, query_type=NEGATIVE), "names evidence or pages that answer it"),
)


@pytest.mark.parametrize(("faulty", "why"), FAULTS, ids=lambda each: each if isinstance(each, str) else "")
def test_what_speaks_against_accepting(tmp_path: Path, faulty: QueryRow, why: str) -> None:
    shown = showing(drafted(tmp_path)).of(faulty)
    assert any(why in fault for fault in shown.faults), shown.faults


@pytest.mark.parametrize(
    "fields",
    [{}, {"context_reference": "delivery.md"}, {"context_reference": None}, {"evidence": []}, {"metadata": {}}],
)
def test_what_somebody_wrote_by_hand_may_be_accepted(tmp_path: Path, fields: dict[str, Any]) -> None:
    made = showing(drafted(tmp_path))
    assert made.faults(row(1, **fields)) == []
    made.of(row(1, **fields))


def test_a_follow_up_is_held_against_other_pages_by_its_question_that_stands_alone(tmp_path: Path) -> None:
    made = showing(drafted(tmp_path, pages={**PAGES, "islands.md": RIVAL}))
    bare = row(1, query="And for how long?", conversation="c1", turn=2, query_id="c1#2")
    assert made.of(bare).near == ()
    alone = {**bare, "standalone": "How long are island parcels held?"}
    assert [near.filename for near in made.of(alone).near] == ["islands.md"]
    negative = {**bare, "query_type": NEGATIVE, "evidence": [], "context_reference": []}
    assert made.of(negative).near == ()
    assert made.not_answered_by(negative) == []
    assert made.of({**negative, "standalone": alone["standalone"]}).near
