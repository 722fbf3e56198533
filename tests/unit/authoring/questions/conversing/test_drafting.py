"""Conversations that are drafted from documents: sound, the same for a seed, no more than the documents give."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from rag_harness.__main__ import CANNOT_RUN, main
from rag_harness.authoring.kb.validation import validate
from rag_harness.authoring.questions import (
    DocumentCollection,
    json_lines,
    make_questions,
    rejected_beside,
    rejected_ids,
)
from rag_harness.authoring.questions.conversing import GeneratedConversations, conversation_rows, make_conversations
from rag_harness.authoring.questions.conversing.drafting import NO_FIRST, NO_SECOND, NOT_ENGLISH
from rag_harness.authoring.questions.conversing.subject_free import is_subject_free
from rag_harness.authoring.questions.conversing.turn_draft import SUBJECT_CHANGE, TURN_KINDS, TurnDraft
from rag_harness.authoring.questions.review.file import ReviewFile
from rag_harness.authoring.questions.review.reviewed_rows import rejected
from rag_harness.commands import FOUND
from rag_harness.dataset.knowledge_base import read_folder
from rag_harness.dataset.queries import read_queries
from rag_harness.types import Document
from tests.unit.authoring.questions.shop import RETURNS, documents, folder

SHIPPED = Path(__file__).parents[5] / "data" / "kb"
GERMAN_PAGES = Path(__file__).parents[4] / "data/german"
LAMPS = """# Lamps

| Lamp | Weight | Price | Range |
|---|---|---|---|
| Pine Lantern | 1.2 kg | €39 | 12 m |
| Brass Lantern | 2.4 kg | €89 | 30 m |
"""
CRATES = """# Crates

| Crate | Weight | Price | Length |
|---|---|---|---|
| Oak Crate | 3.6 kg | €19 | 60 cm |
| Cedar Crate | 2.1 kg | €29 | 80 cm |
"""
ROPES = LAMPS.replace("Lamp", "Rope").replace("Pine Lantern", "Hemp Rope").replace("Brass Lantern", "Silk Rope")


SOME = ("products", "shipping", "stores")
"""Categories whose pages bear turns of every kind, one of them about a page that was superseded."""


@cache
def shipped() -> Sequence[Document]:
    return read_folder(SHIPPED).documents


def pages_of(*categories: str) -> DocumentCollection:
    return DocumentCollection([page for page in shipped() if page.metadata["category"] in categories])


@pytest.fixture(scope="module", params=["some", pytest.param("all", marks=pytest.mark.long)])
def retail(request: pytest.FixtureRequest) -> DocumentCollection:
    return pages_of(*SOME) if request.param == "some" else DocumentCollection(shipped())


@pytest.fixture(scope="module")
def of_retail(retail: DocumentCollection) -> GeneratedConversations:
    return make_conversations(retail, 1_000)


def turns_of(found: GeneratedConversations) -> list[TurnDraft]:
    return [turn for draft in found.drafts for turn in draft.turns]


def bytes_of(found: GeneratedConversations) -> str:
    return json_lines(conversation_rows(found.drafts))


def test_conversations_begin_alone_and_go_on(of_retail: GeneratedConversations) -> None:
    assert len(of_retail.drafts) >= 35
    for draft in of_retail.drafts:
        first, second, *others = draft.turns
        assert 3 <= len(draft.turns) <= 6
        assert first.kind == "first"
        assert first.text == first.alone.text
        assert second.needs_history
        assert "first" not in {turn.kind for turn in (second, *others)}


def test_every_kind_of_turn_is_drafted(of_retail: GeneratedConversations) -> None:
    assert {turn.kind for turn in turns_of(of_retail)} == set(TURN_KINDS)


def test_gold_stands_in_its_page_and_what_nothing_answers_has_none(
    retail: DocumentCollection, of_retail: GeneratedConversations
) -> None:
    for turn in turns_of(of_retail):
        assert all(each.quote in retail.by_id[each.filename].text for each in turn.alone.evidence)
        assert bool(turn.alone.evidence) == (turn.kind != "unanswerable")
        assert turn.alone.ground_truth


def test_bare_turns_do_not_lead_to_their_pages_and_their_questions_that_stand_alone_do(
    retail: DocumentCollection, of_retail: GeneratedConversations
) -> None:
    bare = [turn for turn in turns_of(of_retail) if turn.needs_history and turn.is_bare]
    assert len(bare) >= 40
    for turn in bare:
        assert is_subject_free(turn.text, turn.near_pages, retail)
        if turn.alone.pages:
            assert not is_subject_free(turn.alone.plain, turn.alone.pages, retail)
        assert not retail.terms(turn.left_out) & retail.terms(turn.text)


def test_no_fact_is_asked_for_twice(of_retail: GeneratedConversations) -> None:
    asked = Counter(
        (turn.alone.evidence, turn.alone.answer) for turn in turns_of(of_retail) if len(turn.alone.made_of) == 1
    )
    del asked[((), "")]
    told = Counter(turn.alone.ground_truth for turn in turns_of(of_retail) if turn.alone.evidence)
    assert max(told.values()) == 1
    assert max(asked.values()) == 1


def test_what_a_comparison_has_told_no_other_conversation_asks_for(of_retail: GeneratedConversations) -> None:
    told = [
        (number, turn.alone.ground_truth)
        for number, draft in enumerate(of_retail.drafts)
        for turn in draft.turns
        if turn.kind == "compare"
    ]
    assert told
    for number, truth in told:
        others = [turn for draft in of_retail.drafts[number + 1 :] for turn in draft.turns if turn.kind != "compare"]
        assert not [turn for turn in others if turn.alone.ground_truth in truth]


def test_what_had_to_be_asked_back_is_answered_next(of_retail: GeneratedConversations) -> None:
    behind = [
        after
        for draft in of_retail.drafts
        for before, after in pairwise(draft.turns)
        if before.kind == "underspecified"
    ]
    assert behind
    assert all(turn.kind == "follow_up" and not turn.text.endswith("?") for turn in behind)


def test_superseded_pages_are_spoken_of_beside_their_successors_alone(
    retail: DocumentCollection, of_retail: GeneratedConversations
) -> None:
    kinds = {turn.kind for turn in turns_of(of_retail) if set(turn.alone.pages) & retail.superseded.keys()}
    assert kinds <= {"compare"}
    # Of all pages, others bear enough.
    assert kinds or len(retail.documents) == len(shipped())


def test_the_same_seed_gives_the_same_bytes_and_another_one_others() -> None:
    one, same, other = (bytes_of(make_conversations(pages_of("stores"), 3, seed)) for seed in (1, 1, 2))
    assert one == same
    assert one != other


def test_as_many_as_are_wanted(retail: DocumentCollection) -> None:
    found = make_conversations(retail, 4)
    assert (len(found.drafts), found.short, found.ended) == (4, 0, Counter())


def test_a_page_that_states_one_thing_bears_none_and_that_is_said() -> None:
    one = "If the parcel seal is broken, we refund half of the price.\n"
    found = make_conversations(DocumentCollection(documents(a=f"# Seals\n\n{one}", b="# Nothing\n\nHello there.\n")), 5)
    assert (found.drafts, found.short) == ([], 5)
    assert found.ended == {NO_SECOND: 1, NO_FIRST: 1}


def test_copies_of_a_page_bear_none() -> None:
    copies = DocumentCollection(documents(a=LAMPS, b=LAMPS, c=CRATES.replace("Crate", "Box")))
    assert not {turn.alone.pages for turn in turns_of(make_conversations(copies, 9))} & {("a.md",), ("b.md",)}


def test_one_page_alone_has_no_other_to_lead_to() -> None:
    found = make_conversations(DocumentCollection(documents(lamps=LAMPS)), 9)
    assert found.drafts
    assert SUBJECT_CHANGE not in {turn.kind for turn in turns_of(found)}


def test_of_pages_in_several_languages_the_english_ones_are_spoken_of() -> None:
    german = read_folder(GERMAN_PAGES).documents
    found = make_conversations(DocumentCollection([*documents(lamps=LAMPS, crates=CRATES), *german]), 50)
    assert found.drafts
    assert found.ended[NOT_ENGLISH] == len(german)
    assert {page for turn in turns_of(found) for page in turn.alone.pages} <= {"lamps.md", "crates.md"}


def test_what_is_asked_beside_them_is_not_asked_again() -> None:
    collection = pages_of("products", "stores")
    single = make_questions(collection, {"direct": 60}).drafts
    found = make_conversations(collection, 10, asked=single)
    assert not {turn.alone.text for turn in turns_of(found)} & {draft.text for draft in single}
    evidence = {(draft.evidence, draft.answer) for draft in single}
    assert not {(turn.alone.evidence, turn.alone.answer) for turn in turns_of(found)} & evidence


def test_questions_that_stand_alone_may_be_held_to_share_few_words() -> None:
    found = make_conversations(pages_of("products"), 5, most_shared=0.75)
    assert found.dropped["shares too many words with its page"]


def test_the_command_writes_what_is_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = folder(tmp_path, {"lamps.md": LAMPS, "crates.md": CRATES, "ropes.md": ROPES, "returns.md": RETURNS})
    assert main(["kb", "queries", str(made), "--conversations", "50"]) == FOUND
    said = capsys.readouterr().out
    cases = read_queries(made / "queries.jsonl", made)
    assert {case.query.place["turn"] for case in cases} >= {"1", "2", "3"}
    assert all(case.standalone for case in cases if case.metadata["turn_kind"] == "follow_up")
    talks = len({case.query.place["conversation"] for case in cases})
    assert f"queries.jsonl: {talks} conversations of {len(cases)} turns, unreviewed" in said
    assert f"Asked for 50 conversations; the text bears {talks} whose turns pass the filters:" in said
    report = validate(made, made / "queries.jsonl")
    assert not [each for check in report.checks for each in check.findings if "queries.jsonl" in each.where]


def test_conversations_stand_behind_single_questions(tmp_path: Path) -> None:
    made = folder(tmp_path, {"lamps.md": LAMPS, "crates.md": CRATES, "returns.md": RETURNS})
    assert main(["kb", "queries", str(made), "--direct", "2", "--conversations", "1"]) == 0
    lines = [json.loads(line) for line in (made / "queries.jsonl").read_text().splitlines()]
    assert [sorted(line)[0] for line in lines] == ["context_reference", "context_reference", "conversation"]
    assert [case.query.query_id for case in read_queries(made / "queries.jsonl")][:3] == [
        "q_direct_001",
        "q_direct_002",
        "conv_001#1",
    ]


def test_rejected_turns_are_not_drafted_again_and_keep_their_ids(tmp_path: Path) -> None:
    made = folder(tmp_path, {"lamps.md": LAMPS, "crates.md": CRATES, "ropes.md": ROPES, "returns.md": RETURNS})
    file, asking = made / "queries.jsonl", ["kb", "queries", str(made), "--conversations", "2"]
    assert main(asking) == 0
    review = ReviewFile(file)
    gone = {row.get("standalone") or row["query"] for row in review.rows[1:3]}
    review.put({1: rejected(review.rows[1], "Ada", "nobody would ask this")})
    main(asking)
    cases = read_queries(file)
    assert not gone & {case.asked_alone for case in cases}
    assert not {"conv_001"} & {case.query.place["conversation"] for case in cases}


def test_a_rejected_follow_up_is_known_by_its_question_that_stands_alone(tmp_path: Path) -> None:
    apart = tmp_path / "queries.rejected.jsonl"
    turn = {
        "query_id": "c1#2",
        "conversation": "c1",
        "turn": 2,
        "query": "And the price?",
        "metadata": {"reviewed": "no"},
    }
    apart.write_text(json.dumps({**turn, "standalone": "What does the lamp cost?"}) + "\n" + json.dumps(turn))
    assert [draft.text for draft in rejected_beside(tmp_path / "queries.jsonl")] == ["What does the lamp cost?", ""]
    assert rejected_ids(tmp_path / "queries.jsonl") == {"c1#2", "c1"}


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--conversations", "0"], "No question and no conversation is asked for."),
        (["--conversations", "5", "-n", "3", "--direct", "9"], "are 9. Leave -n out, or make them agree."),
    ],
)
def test_what_cannot_be_asked_for(
    arguments: list[str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["kb", "queries", str(folder(tmp_path)), *arguments]) == CANNOT_RUN
    assert why in capsys.readouterr().err


@pytest.mark.parametrize("number", ["-1", "x", "1.5", "9999999999", "1_000", ""])
def test_bad_numbers_are_named(number: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["kb", "queries", str(folder(tmp_path)), f"--conversations={number}"])
    assert left.value.code == CANNOT_RUN
    assert f"argument --conversations: {number!r} is no whole number from 0 to 1,000,000" in capsys.readouterr().err


def test_where_none_can_be_drafted_that_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = folder(tmp_path, {file.name: file.read_text(encoding="utf-8") for file in GERMAN_PAGES.glob("*.md")})
    assert main(["kb", "queries", str(made), "--conversations", "5"]) == CANNOT_RUN
    assert f"No conversation can be drafted of {made}: {NOT_ENGLISH} (8)." in capsys.readouterr().err
    assert not (made / "queries.jsonl").exists()
