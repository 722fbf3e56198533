"""A review of questions: its file, its page, what it shows, and what its rows mean."""

from __future__ import annotations

import base64
import gzip
import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from rag_harness.__main__ import CANNOT_RUN, main
from rag_harness.authoring.questions.review import page as of_page
from rag_harness.authoring.questions.review.page import AROUND, html_of
from rag_harness.authoring.questions.review.rows import (
    QueryRow,
    ReviewFile,
    accepted,
    alone_with,
    edited,
    rejected,
    reopened,
    state_of,
)
from rag_harness.core.errors import DataError, SettingsError
from rag_harness.core.files import write_atomically
from rag_harness.core.types import NEGATIVE, is_in
from rag_harness.data.queries import read_queries
from tests.unit.authoring.questions.review.drafts import BROKEN, HELD, ROWS, drafted, read, row, showing, write
from tests.unit.authoring.questions.shop import PAGES

# The file under review: whole at every moment.


def test_two_reviews_of_one_file_are_refused(tmp_path: Path) -> None:
    file = drafted(tmp_path)
    with alone_with(file), pytest.raises(SettingsError, match="open in another review"), alone_with(file):
        pass
    with alone_with(file):
        pass
    assert not list(file.parent.glob(".*"))


@pytest.mark.parametrize("first_write", [0, 1])
def test_a_kill_between_the_two_files_loses_no_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first_write: int
) -> None:
    file = drafted(tmp_path)
    opened = ReviewFile(file)
    if first_write:  # bring one back: the other direction
        opened.put({0: rejected(opened.rows[0], "Ada", "silly")})
    keep = write_atomically
    calls = 0

    def killed(where: Path, content: Any) -> None:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise KeyboardInterrupt
        keep(where, content)

    monkeypatch.setattr("rag_harness.authoring.questions.review.rows.write_atomically", killed)
    decided = accepted(opened.rows[0], "Ada") if first_write else rejected(opened.rows[0], "Ada", "silly")
    two = {0: decided, 1: rejected(opened.rows[1], "Ada", "too")}
    with pytest.raises(KeyboardInterrupt):
        opened.put(two)
    monkeypatch.undo()
    assert sorted(each["query_id"] for each in ReviewFile(file).rows) == ["q_001", "q_002", "q_003", "q_004"]


def test_what_is_not_reviewed_keeps_its_bytes(tmp_path: Path) -> None:
    file = drafted(tmp_path)
    odd = '{"query_id":"odd",   "query": "Caf\\u00e9?", "metadata": {"x": 1.50}}\n'
    file.write_text(odd + file.read_text())
    opened = ReviewFile(file)
    opened.put({1: accepted(opened.rows[1], "Ada")})
    assert file.read_text().startswith(odd)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    file = drafted(tmp_path)
    link = tmp_path / "link.jsonl"
    link.symlink_to(file)
    opened = ReviewFile(link)
    opened.put({0: accepted(opened.rows[0], "Ada")})
    assert link.is_symlink()
    assert read(file)[0]["metadata"]["reviewed"] == "yes"


def test_all_may_be_rejected(tmp_path: Path) -> None:
    file = drafted(tmp_path, row(1))
    opened = ReviewFile(file)
    opened.put({0: rejected(opened.rows[0], "Ada", "silly")})
    assert file.read_text() == ""
    assert len(ReviewFile(file).rows) == 1


def test_what_was_rejected_before_questions_were_written_anew_is_not_lost(tmp_path: Path) -> None:
    file = drafted(tmp_path, row(1))
    opened = ReviewFile(file)
    opened.put({0: rejected(opened.rows[0], "Ada", "silly")})
    write(file, row(1, query="Another question?"))
    opened = ReviewFile(file)
    assert len(opened.rows) == 1
    opened.put({0: rejected(opened.rows[0], "Ada", "silly too")})
    assert [each["query"] for each in read(file.with_name("queries.rejected.jsonl"))] == [
        row(1)["query"],
        "Another question?",
    ]
    assert len(ReviewFile(file).rows) == 1  # two of one id could not both be brought back


def test_half_a_letter_is_kept(tmp_path: Path) -> None:
    file = drafted(tmp_path, row(1))
    opened = ReviewFile(file)
    opened.put({0: accepted({**opened.rows[0], "ground_truth": "cut \ud83d", "query": "é?"}, "Ada")})
    assert '"cut \\ud83d"' in file.read_text()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "holds no query"),
        (b"# A page\n\nof text\n" * 20, "… and 35 more"),
        (b"\xff\xfe", "not UTF-8"),
        (b'{"query_id": "a", "query": ""}\n', "is not a file of questions"),
    ],
)
def test_what_is_no_file_of_questions(tmp_path: Path, content: bytes, why: str) -> None:
    file = tmp_path / "queries.jsonl"
    file.write_bytes(content)
    with pytest.raises(DataError) as error:
        ReviewFile(file)
    assert why in str(error.value)
    assert len(str(error.value).split("\n")) <= 8


def test_a_rejected_file_that_is_none(tmp_path: Path) -> None:
    file = drafted(tmp_path)
    write(file.with_name("queries.rejected.jsonl"), {"query": "no id"})
    with pytest.raises(DataError, match="not a rejected question"):
        ReviewFile(file)


TURNS: list[QueryRow] = [
    {"query": f"{n}?", "ground_truth": f"answer {n}", "metadata": {"kind": n}} for n in (1, 2, 3, 4)
]
WHOLE: QueryRow = {"conversation": "c1", "metadata": {"part": "fit", "reviewed": "no"}, "turns": TURNS}
ONE_A_LINE: list[QueryRow] = [
    {"conversation": "c1", "turn": n, **turn, "metadata": {"part": "fit", "reviewed": "no", **turn["metadata"]}}
    for n, turn in enumerate(TURNS, 1)
]
FORMS = pytest.mark.parametrize("lines", [[WHOLE], ONE_A_LINE], ids=["whole", "one a line"])


def states(opened: ReviewFile) -> list[str]:
    return [state_of(row) for row in opened.rows]


def conversation(folder: Path, *lines: QueryRow) -> ReviewFile:
    """Return a file with a conversation of four turns, and another question before and behind it."""
    file = folder / "queries.jsonl"
    write(file, {"query_id": "q1", "query": "Before?"}, *lines, {"query_id": "q2", "query": "Behind?"})
    return ReviewFile(file)


@FORMS
def test_turns_are_reviewed_by_their_names(tmp_path: Path, lines: list[QueryRow]) -> None:
    opened = conversation(tmp_path, *lines)
    assert [each["query_id"] for each in opened.rows] == ["q1", "c1#1", "c1#2", "c1#3", "c1#4", "q2"]
    before = opened.file.read_text().splitlines()
    opened.put({2: accepted(opened.rows[2], "Ada")})
    cases = read_queries(opened.file)
    assert [case.metadata.get("reviewed") for case in cases] == [None, "no", "yes", "no", "no", None]
    assert {case.metadata.get("part") for case in cases} == {None, "fit"}
    after = opened.file.read_text().splitlines()
    assert (after[0], after[-1], len(after)) == (before[0], before[-1], len(before))
    assert ReviewFile(opened.file).rows == opened.rows


@FORMS
def test_a_turn_that_is_rejected_takes_those_behind_it_along_and_brings_them_back(
    tmp_path: Path, lines: list[QueryRow]
) -> None:
    opened = conversation(tmp_path, *lines)
    before = opened.file.read_bytes()
    changed = opened.put({3: rejected(opened.rows[3], "Ada", "nobody would ask this")})
    assert list(changed) == [3, 4]
    assert [case.query.query_id for case in read_queries(opened.file)] == ["q1", "c1#1", "c1#2", "q2"]
    assert opened.rows[4]["metadata"]["rejected_because"] == "it stands on turn 3, which was rejected"
    again = ReviewFile(opened.file)
    assert again.rows == opened.rows
    again.put({3: reopened(again.rows[3])})
    assert [case.query.query_id for case in read_queries(again.file)] == [row["query_id"] for row in again.rows]
    assert states(again) == ["unreviewed"] * 6
    assert not again.file.with_name("queries.rejected.jsonl").exists()
    if len(lines) == 1:
        assert json.loads(again.file.read_bytes().split(b"\n")[1]) == json.loads(before.split(b"\n")[1])


@FORMS
def test_a_turn_that_comes_back_brings_what_it_stands_on(tmp_path: Path, lines: list[QueryRow]) -> None:
    opened = conversation(tmp_path, *lines)
    opened.put({3: rejected(opened.rows[3], "Ada", "nobody would ask this")})
    opened.put({1: rejected(opened.rows[1], "Ada", "the answer is wrong")})
    assert states(opened)[1:5] == ["rejected"] * 4
    assert [case.query.query_id for case in read_queries(opened.file)] == ["q1", "q2"]
    again = ReviewFile(opened.file)
    number = [row["query_id"] for row in again.rows].index("c1#3")
    again.put({number: accepted(again.rows[number], "Ada")})
    kept = {row["query_id"]: state_of(row) for row in again.rows}
    assert [kept[f"c1#{turn}"] for turn in (1, 2, 3, 4)] == ["unreviewed", "unreviewed", "accepted", "unreviewed"]
    assert {case.query.query_id for case in read_queries(again.file)} == {row["query_id"] for row in again.rows}


@FORMS
def test_other_words_of_a_turn_reopen_what_was_accepted_behind_it(tmp_path: Path, lines: list[QueryRow]) -> None:
    opened = conversation(tmp_path, *lines)
    opened.put({number: accepted(opened.rows[number], "Ada") for number in (1, 2, 4)})
    opened.put({2: edited(opened.rows[2], {"query_type": "comparison"}, "Ada")})
    assert states(opened)[1:5] == ["accepted", "unreviewed", "unreviewed", "accepted"]
    opened.put({2: edited(opened.rows[2], {"ground_truth": "another answer"}, "Ada")})
    assert states(opened)[1:5] == ["accepted", "unreviewed", "unreviewed", "unreviewed"]


def test_a_rejection_wins_over_what_is_decided_behind_it_at_once(tmp_path: Path) -> None:
    opened = conversation(tmp_path, WHOLE)
    one, two = opened.rows[1], opened.rows[2]
    opened.put({1: rejected(one, "Ada", "nobody would ask this"), 2: accepted(two, "Ada")})
    assert states(opened)[1:5] == ["rejected"] * 4


def test_what_turns_share_of_their_metadata_is_still_shared(tmp_path: Path) -> None:
    shared = {**WHOLE, "metadata": {"part": "fit", "reviewed": "yes", "reviewed_by": "Ada"}}
    opened = conversation(tmp_path, shared)
    opened.put({2: reopened(opened.rows[2])})
    assert json.loads(opened.file.read_text().splitlines()[1])["metadata"] == {"part": "fit", "reviewed": "yes"}
    assert "reviewed_by" not in ReviewFile(opened.file).rows[2]["metadata"]
    assert ReviewFile(opened.file).rows[3]["metadata"]["reviewed_by"] == "Ada"


def test_a_kill_between_the_writes_loses_no_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = conversation(tmp_path, WHOLE)

    def dies(file: Path, content: bytes) -> None:
        if "rejected" not in file.name:
            raise OSError(28, "No space left on device")
        write_atomically(file, content)

    monkeypatch.setattr("rag_harness.authoring.questions.review.rows.write_atomically", dies)
    with pytest.raises(DataError):
        opened.put({2: rejected(opened.rows[2], "Ada", "nobody would ask this")})
    monkeypatch.undo()
    assert states(ReviewFile(opened.file)) == ["unreviewed"] * 6


def test_a_conversation_that_nobody_decided_on_keeps_its_bytes(tmp_path: Path) -> None:
    file = tmp_path / "queries.jsonl"
    odd = json.dumps(WHOLE, indent=None, separators=(" , ", " :  "))
    file.write_text(f'{odd}\n{{"query_id": "q1", "query": "?"}}\n')
    opened = ReviewFile(file)
    opened.put({4: accepted(opened.rows[4], "Ada")})
    assert file.read_text().splitlines()[0] == odd


def test_a_scenario_is_not_reviewed(tmp_path: Path) -> None:
    file = tmp_path / "queries.jsonl"
    write(file, {"conversation": "s1", "scenario": {"opening": "hi", "asks": ["and?"]}})
    with pytest.raises(DataError, match=r"a line with a scenario, 's1'.*Keep scenarios in a file of their own"):
        ReviewFile(file)


# The page: one file, the same bytes for the same questions, and no code but the harness's own.


def data_of(html: str) -> Any:
    (packed,) = re.findall(r'id="data">([^<]*)</script>', html)
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def test_the_same_questions_give_the_same_bytes(tmp_path: Path) -> None:
    made = showing(drafted(tmp_path))
    first, second = (html_of("queries.jsonl", ROWS, made) for _ in range(2))
    assert first == second
    data = data_of(first)
    assert data["rows"] == json.loads(json.dumps(ROWS))
    assert data["notes"]["q_004"]["faults"]
    assert data["digest"] != data_of(html_of("queries.jsonl", ROWS[:3], made))["digest"]


def test_nothing_of_a_text_is_markup(tmp_path: Path) -> None:
    odd = "</script><script>alert(1)</script>"
    html = html_of(f"{odd}.jsonl", [row(1, query=odd)], showing(drafted(tmp_path)))
    assert html.count("<script") == 2
    assert "alert(1)</script>" not in html


def test_nothing_is_asked_of_anybody(tmp_path: Path) -> None:
    html = html_of("queries.jsonl", ROWS, showing(drafted(tmp_path)))
    assert "default-src 'none'" in unescape(html)
    assert not re.search(r"https?://|<link|<img|\ssrc=|@import|url\(", html)


def test_of_a_long_page_what_stands_around_its_quotes_is_carried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_page, "MOST_OF_A_PAGE", 3_000)
    line = "The quay is swept each day.\n"
    made = showing(drafted(tmp_path, pages={"delivery.md": f"{line * 200}{HELD}\n{line * 200}"}))
    carried = data_of(html_of("queries.jsonl", [ROWS[0]], made))["pages"]["delivery.md"]
    assert not carried["whole"]
    (part,) = carried["parts"]
    assert HELD in part
    assert len(part) <= 2 * AROUND + len(HELD)


def test_a_turn_carries_what_was_said_before_it(tmp_path: Path) -> None:
    talk: QueryRow = {"conversation": "c1", "turns": [{"query": f"{n}?", "reply": f"{n}."} for n in range(1, 9)]}
    file = drafted(tmp_path, talk)
    rows, made = ReviewFile(file).rows, showing(file)
    notes = data_of(html_of("queries.jsonl", rows[7:], made, rows))["notes"]
    assert notes["c1#8"]["before"][0] == ["2?", "2."]
    assert (len(notes["c1#8"]["before"]), notes["c1#8"]["earlier"]) == (6, 1)
    alone = data_of(html_of("queries.jsonl", rows[:1], made, rows))["notes"]
    assert "before" not in alone["c1#1"]


# What a reviewer sees of a question, and why one may not be accepted.

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
        "'delivry.md' is not a page of the documents. Did you mean",
    ),
    (row(1, context_reference=["gone.md"], evidence=[]), "'gone.md' is not a page of the documents. Edit"),
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


# What a row says of its review means the same to gates, to a review, its page, and a file that is written over.

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
