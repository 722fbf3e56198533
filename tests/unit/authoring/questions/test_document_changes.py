"""Changed documents: what becomes of the gold, and which questions a change affects."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rag_harness.__main__ import CANNOT_RUN, main
from rag_harness.authoring.questions.document_changes import (
    DataChange,
    DatedQuestion,
    affected,
    holds_quote,
    otherwise_marked,
    retrieved_before,
    reworded,
    with_other_figures,
)
from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.review.rows import ReviewFile, accepted
from rag_harness.data.queries import read_queries
from rag_harness.frontends.cli import FOUND
from tests.unit.authoring.questions.review.drafts import showing
from tests.unit.authoring.questions.shop import CLUB, DELIVERY, PAGES, RETURNS, documents, folder
from tests.unit.rows import make_chunk, make_row

# ``rag-harness queries check``: documents are changed in one way each, and what became of the gold is said.

SEAL = "If the parcel seal is broken, we refund half of the price."
HELD = "Island parcels are held for 9 days at the harbour office."
FEE = "Members pay a yearly fee of €12."


def row(name: str, query: str, *quotes: tuple[str, str], kind: str = "direct", **more: Any) -> dict[str, Any]:
    pages = list(dict.fromkeys(page for page, _ in quotes))
    evidence = [{"filename": page, "quote": quote} for page, quote in quotes]
    return {
        "query_id": name,
        "query_type": kind,
        "query": query,
        "context_reference": pages,
        "evidence": evidence,
        **more,
    }


ROWS = [
    row("q_seal", "What do I get back for a broken seal?", ("returns.md", SEAL), ground_truth="Half of the price."),
    row("q_held", "How long is a parcel kept on the island?", ("delivery.md", HELD), ground_truth="9 days."),
    row("q_both", "Refund and fee?", ("returns.md", SEAL), ("club.md", FEE), kind="multi_hop"),
    row("q_fish", "Do you sell live fish?", kind="negative", ground_truth="Nothing is said of fish."),
]

Changed = Callable[[dict[str, str]], None]


@pytest.fixture
def kb(tmp_path: Path) -> Path:
    made = folder(tmp_path)
    write(made / "queries.jsonl", ROWS)
    return made


def write(file: Path, rows: list[dict[str, Any]]) -> None:
    file.write_text("".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in rows), encoding="utf-8")


def put(kb: Path, **pages: str) -> None:
    for name, text in pages.items():
        (kb / f"{name}.md").write_text(text, encoding="utf-8")


def checked(kb: Path, capsys: pytest.CaptureFixture[str], *more: str, status: int = FOUND) -> dict[str, Any]:
    assert main(["queries", "check", str(kb), "--json", *more]) == status
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def kinds(report: dict[str, Any]) -> dict[str, list[str]]:
    return {name: [each["what"] for each in findings] for name, findings in report["found"].items()}


def test_a_misspelt_type_is_told_with_its_line(
    kb: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(kb)
    write(kb / "queries.jsonl", [*ROWS, row("q_birds", "Do you sell birds?", kind="negtive")])
    assert main(["queries", "check", str(kb)]) == CANNOT_RUN
    assert "queries.jsonl:5: q_birds: query_type 'negtive' is not known. Did you mean 'negative'?" in (
        capsys.readouterr().err
    )
    monkeypatch.setenv("RAG_QUERY_TYPES", "negtive")
    assert main(["queries", "check", str(kb)]) == 0


def test_gold_that_holds_is_no_finding(kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["queries", "check", str(kb)]) == 0
    assert capsys.readouterr().out == "4 questions with 4 quotes, 3 pages: 0 affected\n"


def test_other_white_space_harms_nothing_and_is_mended(kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(kb, delivery=DELIVERY.replace("for 9 days", "for\n9  days"))
    file = kb / "mended.jsonl"
    report = checked(kb, capsys, "-o", str(file), status=0)
    assert kinds(report) == {"q_held": ["white space"]}
    assert report["affected"] == []
    before, after = (kb / "queries.jsonl").read_text().splitlines(), file.read_text().splitlines()
    assert json.loads(after[1])["evidence"][0]["quote"] == HELD.replace("for 9 days", "for\n9  days")
    assert [after[0], *after[2:]] == [before[0], *before[2:]]


def test_other_marks_are_affected_and_mended(kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(kb, delivery=DELIVERY.replace("held for 9 days", "held for **9 days**"))
    file = kb / "queries.jsonl"
    report = checked(kb, capsys, "-o", str(file))
    assert kinds(report) == {"q_held": ["markup"]}
    assert report["need_a_person"] == []
    assert read_queries(file)[1].evidence[0].quote == HELD.replace("9 days", "**9 days**")
    assert checked(kb, capsys, status=0)["found"] == {}


def test_another_figure_is_named_and_that_the_answer_has_the_old_one(
    kb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(kb, delivery=DELIVERY.replace("for 9 days", "for 14 days"))
    assert main(["queries", "check", str(kb), "-o", str(kb / "mended.jsonl")]) == FOUND
    assert capsys.readouterr().out.splitlines() == [
        "q_held: quote with other figures (delivery.md): 9 -> 14",
        f"    old: {HELD}",
        f"    new: {HELD.replace('9', '14')}",
        "q_held: answer probably changed (delivery.md): the ground truth says 9",
        "4 questions with 4 quotes, 3 pages: 1 affected, 0 of them safe to mend with -o",
    ]
    mended = read_queries(kb / "mended.jsonl")[1]
    assert mended.evidence[0].quote == HELD
    assert mended.metadata["reviewed"] == "no"
    assert "9 -> 14" in mended.metadata["affected"]


def test_other_words_are_shown_old_and_new(kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(kb, returns=RETURNS.replace("we refund half of the price", "we give back half of the price"))
    found = checked(kb, capsys)["found"]
    assert [each["what"] for each in found["q_seal"]] == ["reworded"]
    assert found["q_seal"][0]["new"] == "If the parcel seal is broken, we give back half of the price."


def test_a_quote_that_is_gone_has_the_nearest_passages_with_scores(
    kb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(kb, delivery="# Delivery\n\nWe deliver.\n", news="# News\n\nThe harbour office keeps a parcel for two weeks.\n")
    found = checked(kb, capsys)["found"]["q_held"]
    assert [each["what"] for each in found] == ["gone"]
    nearest = found[0]["proposals"][0]
    assert nearest["filename"] == "news.md"
    assert nearest["quote"] == "The harbour office keeps a parcel for two weeks."
    assert nearest["score"] > 0
    assert 0 < nearest["share"] <= 1


def test_a_renamed_page_is_known_by_its_quotes_and_mended_everywhere(
    kb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = {**row("q_bare", "What is in the club letter?", kind="direct"), "context_reference": "club.md"}
    write(kb / "queries.jsonl", [*ROWS, {**bare, "qrels": {"club.md": 2}}])
    (kb / "club.md").rename(kb / "members.md")
    report = checked(kb, capsys, "-o", str(kb / "queries.jsonl"))
    assert kinds(report) == {"q_both": ["moved", "page renamed"], "q_bare": ["page renamed"]}
    assert report["need_a_person"] == []
    both, bare_now = (read_queries(kb / "queries.jsonl", kb)[place] for place in (2, 4))
    assert [each.filename for each in both.evidence] == ["returns.md", "members.md"]
    assert both.context_reference == ("returns.md", "members.md")
    assert bare_now.qrels == {"members.md": 2}
    assert checked(kb, capsys, status=0)["without_quotes"] == 1


def test_a_quote_that_went_to_another_page_takes_its_page_along(kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(kb, delivery=DELIVERY.replace(HELD, ""), club=f"{CLUB}\n{HELD}\n")
    report = checked(kb, capsys, "-o", str(kb / "queries.jsonl"))
    assert kinds(report) == {"q_held": ["moved"]}
    assert read_queries(kb / "queries.jsonl", kb)[1].context_reference == ("club.md",)


def test_a_quote_that_is_too_short_to_tell_its_page_is_left_to_a_person(
    kb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(kb / "queries.jsonl", [row("q_days", "How long are parcels held?", ("delivery.md", "for 9 days"))])
    (kb / "delivery.md").unlink()
    put(kb, news="# News\n\nThe quay is closed for 9 days.\n")
    report = checked(kb, capsys, "-o", str(kb / "queries.jsonl"))
    assert kinds(report) == {"q_days": ["moved"]}
    assert report["need_a_person"] == ["q_days"]
    assert read_queries(kb / "queries.jsonl")[0].evidence[0].filename == "delivery.md"


def test_a_quote_that_several_pages_have_now_is_left_to_a_person(kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(kb, delivery="# Delivery\n", club=f"{CLUB}\n{HELD}\n", news=f"# News\n\n{HELD}\n")
    report = checked(kb, capsys)
    assert report["found"]["q_held"][0]["why"] == "it is in club.md, news.md"
    assert report["need_a_person"] == ["q_held"]


def test_a_page_that_is_gone_with_its_words(kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (kb / "delivery.md").unlink()
    assert kinds(checked(kb, capsys)) == {"q_held": ["gone", "page gone"]}


def test_a_page_in_another_folder_is_proposed_by_its_name(kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(kb / "queries.jsonl", [{**row("q_bare", "What is a pass?"), "context_reference": ["delivery.md"]}])
    (kb / "guides").mkdir()
    (kb / "delivery.md").rename(kb / "guides" / "delivery.md")
    found = checked(kb, capsys)["found"]["q_bare"]
    assert [(each["what"], each["new_file"], each["mends"]) for each in found] == [
        ("page gone", "guides/delivery.md", False)
    ]


def test_a_question_that_nothing_answered_and_a_new_page_may(kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(kb, fish="# Fish\n\nWe do not sell cut flowers. Ask us about what we sell: live fish comes in October.\n")
    found = checked(kb, capsys)["found"]
    assert [each["what"] for each in found["q_fish"]] == ["may be answered"]
    assert found["q_fish"][0]["proposals"][0]["filename"] == "fish.md"
    write(kb / "queries.jsonl", [*ROWS[:3], {**ROWS[3], "metadata": {"not_answered_by": ["fish.md"]}}])
    assert checked(kb, capsys, status=0)["found"] == {}


def test_a_question_of_two_pages_that_one_answers_now(kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(kb, faq=f"# Asked often\n\n{SEAL}\n\n{FEE}\n")
    found = checked(kb, capsys)["found"]
    assert {name: [(each["what"], each["filename"]) for each in found[name]] for name in found} == {
        "q_both": [("one page holds all", "faq.md")]
    }


def test_an_earlier_mark_goes_when_nothing_is_wrong_any_more(kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(kb / "queries.jsonl", [{**ROWS[0], "metadata": {"affected": "quote gone", "topic": "seals"}}])
    checked(kb, capsys, "-o", str(kb / "queries.jsonl"), status=0)
    assert read_queries(kb / "queries.jsonl")[0].metadata == {"topic": "seals"}


def test_a_golden_set_is_checked_too(kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entries = [
        {"id": "g1", "query": "seal", "expected_document_id": "returns.md#windows", "justification": "j"},
        {"id": "g2", "query": "seal", "expected_document_id": "returns.md#openings", "justification": "j"},
        {
            "id": "g3",
            "query": "fee",
            "expected_document_id": "club.md",
            "justification": "j",
            "evidence": "A fee of €9",
        },
    ]
    for number, entry in enumerate(entries):
        entry["query"] += str(number)
    (kb.parent / "golden.json").write_text(json.dumps(entries), encoding="utf-8")
    named = ("--queries", str(kb.parent / "golden.json"))
    assert kinds(checked(kb, capsys, *named)) == {"g2": ["heading gone"], "g3": ["gone"]}
    assert main(["queries", "check", str(kb), *named, "-o", str(kb.parent / "mended.json")]) == CANNOT_RUN
    assert "is a golden set" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (lambda kb: (kb / "queries.jsonl").unlink(), "Name the questions of these documents: --queries FILE"),
        (lambda kb: (kb / "queries.jsonl").write_text("{}\n"), "query_id"),
        (lambda kb: [(kb / name).unlink() for name in PAGES], "No page with text"),
    ],
)
def test_bad_input_is_no_finding(
    kb: Path, capsys: pytest.CaptureFixture[str], broken: Callable[[Path], None], said: str
) -> None:
    broken(kb)
    assert main(["queries", "check", str(kb)]) == CANNOT_RUN
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("target", "said"), [("", "is a folder. Name the file"), ("no/such.jsonl", "No folder")])
def test_a_place_that_nothing_can_be_written_to_is_named_and_not_made(
    kb: Path, capsys: pytest.CaptureFixture[str], target: str, said: str
) -> None:
    assert main(["queries", "check", str(kb), "-o", str(kb / target)]) == CANNOT_RUN
    assert said in capsys.readouterr().err
    assert not (kb / "no").exists()


def test_a_marked_row_names_nobody_as_its_reviewer(kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    about = {"reviewed": "yes", "reviewed_by": "Ada"}
    write(kb / "queries.jsonl", [{**each, "metadata": about} for each in ROWS])
    put(kb, delivery=DELIVERY.replace("for 9 days", "for 14 days"))
    checked(kb, capsys, "-o", str(kb / "queries.jsonl"))
    seal, held, *_ = read_queries(kb / "queries.jsonl")
    assert seal.metadata == about
    assert held.metadata.keys() == {"reviewed", "affected"}


def test_a_negative_question_that_somebody_accepts_again_is_not_found_again(
    kb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(kb, fish="# Fish\n\nWhether to sell live fish is often asked.\n")
    file = kb / "queries.jsonl"
    checked(kb, capsys, "-o", str(file))
    review = ReviewFile(file)
    assert "affected" in review.rows[3]["metadata"]
    review.put({3: accepted(review.rows[3], "Ada", showing(file).not_answered_by(review.rows[3]))})
    assert read_queries(file)[3].metadata == {
        "reviewed": "yes",
        "reviewed_by": "Ada",
        "not_answered_by": ["fish.md"],
    }
    checked(kb, capsys, status=0)


def test_a_page_that_cannot_be_read_is_not_gone(kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (kb / "delivery.md").write_bytes(b"\xff\xfe\xfa")
    assert kinds(checked(kb, capsys)) == {"q_held": ["page unread"]}


def test_a_figure_that_goes_on_is_another() -> None:
    assert holds_quote("It costs €10, or €9.", "costs €10")
    assert holds_quote("€10", "€10")
    assert not holds_quote("It costs €100.", "costs €10")
    assert not holds_quote("It costs €10.50.", "costs €10")
    assert not holds_quote("version 12.5", "2.5")


@pytest.mark.parametrize(
    ("page", "found"),
    [
        ("The *fee* is `€5`–9 a year", "fee* is `€5`–9"),
        ("The fee is €5-9, see", "fee is €5-9"),
        ("The [fee](fees.md) is €5-9", "[fee](fees.md) is €5-9"),
        ("The fee is €5-[9](fees.md)", "fee is €5-[9](fees.md)"),
        ("The **fee is €5-9** a year", "**fee is €5-9**"),
        ("The fees are €5-9", None),
        ("The fee is €5-90", None),
        ("Coffee is €5-9", None),
    ],
)
def test_marks_are_told_from_words(page: str, found: str | None) -> None:
    passage = otherwise_marked(page, "fee is €5-9")
    assert (passage.text if passage else None) == found
    assert otherwise_marked("Every *fee* is yearly", "fee is year") is None


def test_of_several_rows_the_one_with_fewest_other_figures() -> None:
    page = "Oak crate holds 3 kg for €20\nOak crate holds 4 kg for €19\n"
    found = with_other_figures(page, "Oak crate holds 4 kg for €21")
    assert found is not None
    assert found.figures == (("21", "19"),)
    assert with_other_figures("It is €20", "€21") is None


def test_a_passage_of_two_sentences_is_found_as_two() -> None:
    page = "We are open. Parcels are kept for a week. Then they are sent back to you. Bye."
    found = reworded(page, "Parcels are kept for a month. Then they go back to you.")
    assert found is not None
    assert found.text == "Parcels are kept for a week. Then they are sent back to you."
    assert reworded(page, "Lanterns are red and green.") is None


def test_expectations_that_cannot_be_read_are_told_with_their_line(
    kb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(kb / "queries.jsonl", [ROWS[0], {**ROWS[1], "expect": [{"contians": "9 days"}, {"weight": 0, "number": 9}]}])
    assert main(["queries", "check", str(kb)]) == CANNOT_RUN
    said = capsys.readouterr().err
    assert (
        "queries.jsonl:2: q_held: expect: 0: Unknown kind of expectation 'contians'. Did you mean 'contains'?" in said
    )
    assert "queries.jsonl:2: q_held: expect: 1: weight is 0. Write a number above 0" in said


def test_an_expectation_against_its_own_gold_or_the_documents_is_found(
    kb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = {**ROWS[1], "expect": [{"number": 9, "unit": "days"}, {"contains": "10 days"}, {"cites": "gone.md"}]}
    write(kb / "queries.jsonl", [held, {**ROWS[3], "expect": [{"answers": True}]}])
    assert main(["queries", "check", str(kb)]) == FOUND
    assert capsys.readouterr().out.splitlines()[:3] == [
        "q_held: expectation: contains “10 days”: the ground truth does not keep to it: the nearest is “9 days.”. Mend "
        "one of the two.",
        "q_held: expectation: cites “gone.md”: no document is called 'gone.md'. Mend the name.",
        "q_fish: expectation: answers: no document answers the question, so a right answer declines. Mend one of the "
        "two.",
    ]


def test_an_expectation_that_the_documents_contradict_by_now_is_found_and_kept(
    kb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expect = [
        {"number": 9, "unit": "days", "must": True},
        {"contains": "9 days"},
        {"not": {"contains": "9 hours"}},
        {"max_words": 9},
        {"contains": "days"},
    ]
    write(kb / "queries.jsonl", [{**ROWS[1], "expect": expect}])
    put(kb, delivery=DELIVERY.replace("9 days", "12 days"))
    mended = kb / "mended.jsonl"
    assert main(["queries", "check", str(kb), "-o", str(mended)]) == FOUND
    assert [line for line in capsys.readouterr().out.splitlines() if "expectation" in line] == [
        "q_held: expectation (delivery.md): number 9, unit “days”: the page no longer says so. Mend it.",
        "q_held: expectation (delivery.md): contains “9 days”: the page no longer says so. Mend it.",
    ]
    after = json.loads(mended.read_text())
    assert after["expect"] == expect
    assert after["metadata"]["reviewed"] == "no"
    assert "contains “9 days”: the page no longer says so" in after["metadata"]["affected"]


PLAYED = {
    "conversation": "sim_1",
    "scenario": {"opening": "the seal is broken", "reached": [{"contains": "half"}], "max_turns": 3},
    "context_reference": ["returns.md"],
    "evidence": [{"filename": "returns.md", "quote": SEAL}],
    "ground_truth": "Half of the price.",
}


def test_the_gold_of_a_scenario_is_checked_once_and_mended(kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(kb / "queries.jsonl", [PLAYED])
    assert main(["queries", "check", str(kb)]) == 0
    assert "1 question" in capsys.readouterr().out
    text = (kb / "returns.md").read_text(encoding="utf-8")
    put(kb, returns=text.replace(SEAL, "Broken seals are of no concern to us."))
    assert main(["queries", "check", str(kb), "-o", str(kb / "mended.jsonl")]) == FOUND
    assert "sim_1#1" in capsys.readouterr().out
    (mended,) = map(json.loads, (kb / "mended.jsonl").read_text(encoding="utf-8").splitlines())
    assert mended["scenario"] == PLAYED["scenario"]
    assert mended["metadata"]["reviewed"] == "no"


def turn(query: str, *quotes: tuple[str, str], **more: Any) -> dict[str, Any]:
    whole = row("", query, *quotes, **more)
    return {key: value for key, value in whole.items() if key != "query_id"}


TALK: dict[str, Any] = {
    "conversation": "c1",
    "metadata": {"part": "fit", "reviewed": "yes", "reviewed_by": "Ada"},
    "turns": [
        turn("How long is a parcel kept on the island?", ("delivery.md", HELD), ground_truth="9 days."),
        turn("And the fee?", ("club.md", FEE), ground_truth="€12.", standalone="What do members pay?"),
        turn("And those?", kind="negative", standalone="Do you sell live fish?"),
        turn("The price?", kind="negative"),
    ],
}


def test_an_affected_turn_names_those_that_stand_on_it(kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(kb / "queries.jsonl", [TALK, ROWS[0]])
    put(kb, delivery=DELIVERY.replace("9 days", "14 days"))
    report = checked(kb, capsys)
    assert report["affected"] == ["c1#1"]
    assert report["stand_on_affected"] == {"c1#1": ["c1#2", "c1#3", "c1#4"]}
    assert main(["queries", "check", str(kb)]) == FOUND
    said = capsys.readouterr().out
    assert "c1#2, c1#3, c1#4 stand on it: what was said before may be wrong there" in said
    assert "1 turns that nothing should answer have no standalone question" in said


@pytest.mark.parametrize("is_whole", [True, False])
def test_of_a_conversation_the_affected_turn_is_marked_alone(
    kb: Path, capsys: pytest.CaptureFixture[str], is_whole: bool
) -> None:
    turns = [{"conversation": "c1", "turn": n, **each} for n, each in enumerate(TALK["turns"], 1)]
    lines = [TALK] if is_whole else [{**each, "metadata": TALK["metadata"]} for each in turns]
    write(kb / "queries.jsonl", [*lines, ROWS[0]])
    before = (kb / "queries.jsonl").read_text().splitlines()
    put(kb, delivery=DELIVERY.replace("9 days", "14 days"), club=CLUB.replace("yearly fee", "yearly  fee"))
    checked(kb, capsys, "-o", str(kb / "queries.jsonl"))
    cases = read_queries(kb / "queries.jsonl", kb)
    assert [case.metadata.get("reviewed") for case in cases] == ["no", "yes", "yes", "yes", None]
    assert [case.metadata.get("reviewed_by") for case in cases] == [None, "Ada", "Ada", "Ada", None]
    assert "quote with other figures" in cases[0].metadata["affected"]
    assert cases[1].evidence[0].quote == FEE.replace("yearly fee", "yearly  fee")
    assert cases[1].standalone == "What do members pay?"
    after = (kb / "queries.jsonl").read_text().splitlines()
    assert after[-1] == before[-1]
    assert len(after) == len(before)


def test_a_follow_up_is_searched_by_its_question_that_stands_alone(
    kb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(kb / "queries.jsonl", [TALK])
    put(kb, prices="# Prices\n\nThe price of a wick is €2.\n")
    assert checked(kb, capsys, status=0)["not_searched_for"] == 1
    put(kb, market="# Market\n\nWe sell live fish on Fridays, and you may ask for it.\n")
    assert kinds(checked(kb, capsys)) == {"c1#3": ["may be answered"]}


# Which questions a change affects, and why; what earlier runs retrieved for them.

ASKED = [
    DatedQuestion("q_seal", "What happens if the seal is broken?", frozenset({"returns.md"})),
    DatedQuestion("q_fish", "Is there live fish on the quay?", frozenset()),
]


@pytest.mark.parametrize(
    ("pages", "rows", "retrieved", "found"),
    [
        ((), (), {}, {}),
        ((), ("q_seal",), {}, {"q_seal": "own row"}),
        (("returns.md",), (), {}, {"q_seal": "gold"}),
        (("returns.md",), ("q_seal",), {}, {"q_seal": "own row"}),
        (("gone.md",), (), {"q_fish": {"gone.md", "club.md"}}, {"q_fish": "retrieved"}),
        (("gone.md",), (), {"q_fish": {"club.md"}}, {}),
        (("delivery.md",), (), {}, {"q_seal": "near", "q_fish": "near"}),
        (("club.md",), (), {}, {}),
    ],
)
def test_a_question_is_affected_for_one_reason(
    pages: tuple[str, ...], rows: tuple[str, ...], retrieved: dict[str, set[str]], found: dict[str, str]
) -> None:
    change = DataChange(frozenset(pages), frozenset(rows))
    assert affected(ASKED, change, retrieved, DocumentCollection(documents()), 3) == found


TURNS = [
    DatedQuestion("c1#1", "How long are island parcels held?", frozenset({"delivery.md"})),
    DatedQuestion("c1#2", "Do members pay a fee?", frozenset({"club.md"}), "c1#1"),
    DatedQuestion("c1#3", "When do club evenings end?", frozenset({"club.md"}), "c1#2"),
    DatedQuestion("c2#1", "When do club evenings end?", frozenset({"club.md"})),
]


def test_turns_behind_an_affected_one_stand_on_it() -> None:
    change = DataChange(frozenset({"delivery.md"}), frozenset())
    found = affected(TURNS, change, {}, DocumentCollection(documents()), 1)
    assert found == {"c1#1": "gold", "c1#2": "turns", "c1#3": "turns"}
    later = affected(TURNS, DataChange(frozenset(), frozenset({"c1#2"})), {}, None, 1)
    assert later == {"c1#2": "own row", "c1#3": "turns"}


def write_changed(file: Path, *rows: dict[str, Any]) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(make_row(**row).line() for row in rows), encoding="utf-8")


def test_the_prompt_and_the_first_candidates_of_each_query_are_what_was_retrieved(tmp_path: Path) -> None:
    candidates = [{"chunk_id": f"{name}.md#0", "score": 1.0} for name in "abc"]
    write_changed(
        tmp_path / "e3_filtered_rag.jsonl",
        {"retrieved_chunks": [make_chunk("p.md#chunk_0")], "candidates": candidates},
        {"query_id": "q2", "ranking": ("x.md", "y.md", "z.md"), "candidates": [], "retrieved_chunks": []},
    )
    found = retrieved_before(tmp_path, 2, lambda _: True)
    assert found == {"q1": {"a.md", "b.md", "p.md"}, "q2": {"x.md", "y.md"}}


def test_the_newest_row_of_each_experiment_counts_also_one_that_was_set_aside(tmp_path: Path) -> None:
    def row(name: str, day: int, **more: Any) -> dict[str, Any]:
        candidates = [{"chunk_id": f"{name}.md#0", "score": 1.0}]
        return {"candidates": candidates, "retrieved_chunks": [], "finished_at": f"2026-01-{day:02}", **more}

    write_changed(tmp_path / "previous" / "e3-old.jsonl", row("old", 1), row("kept", 3, query_id="q2"))
    write_changed(tmp_path / "e3.jsonl", row("new", 2), row("new", 2, query_id="q2"))
    write_changed(tmp_path / "e2.jsonl", row("other", 1, experiment="e2"))
    with (tmp_path / "e2.jsonl").open("a") as stream:
        stream.write('{"torn\n[]\n')
    assert retrieved_before(tmp_path, 5, lambda _: True) == {"q1": {"new.md", "other.md"}, "q2": {"kept.md"}}
    assert retrieved_before(tmp_path, 5, lambda name: name == "e2") == {"q1": {"other.md"}}
    assert retrieved_before(tmp_path / "nothing", 5, lambda _: True) == {}
