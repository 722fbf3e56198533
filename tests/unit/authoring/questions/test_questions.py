"""``rag-harness kb queries``, the filters of its questions, and lines that are written again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_harness.__main__ import CANNOT_RUN, main
from rag_harness.authoring.kb.validation import validate
from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.drafts import BY_LLM, Draft, TakenQuestions, draft_fault
from rag_harness.authoring.questions.review.page import html_of
from rag_harness.authoring.questions.review.rows import ReviewFile, accepted, edited, question_digest, rejected
from rag_harness.core.types import Document, Evidence
from rag_harness.data.queries import read_queries
from rag_harness.frontends.cli import FOUND
from tests.unit.authoring.questions.review.drafts import ROWS, drafted, read, row, showing, write
from tests.unit.authoring.questions.review.test_review import data_of
from tests.unit.authoring.questions.shop import DELIVERY, RETURNS, documents, folder

# ``rag-harness kb queries`` on folders of every kind.

JAPANESE = "# 返品\n\n商品は30日以内に返品できます。送料は500円です。\n\n| 品名 | 価格 |\n|---|---|\n| 灯籠 | 900円 |\n"
GERMAN_PAGES = Path(__file__).parents[3] / "data/german"
ARABIC = "# الإرجاع\n\nيمكنك إرجاع المنتج خلال 30 يومًا. رسوم الشحن 20 ريالاً.\n"


def test_the_questions_are_valid_and_say_what_was_dropped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = folder(tmp_path)
    assert main(["kb", "queries", str(made)]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"wrote {made / 'queries.jsonl'}: ")
    assert "dropped" in said
    queries = read_queries(made / "queries.jsonl", made)
    assert {query.query_type for query in queries} >= {"direct", "multi_hop"}
    report = validate(made, made / "queries.jsonl")
    found = [finding for check in report.checks for finding in check.findings if "queries.jsonl" in finding.where]
    assert not [finding for finding in found if finding.level == "error"]


def test_another_file_and_the_same_bytes(tmp_path: Path) -> None:
    made = folder(tmp_path)
    for name in ("one.jsonl", "two.jsonl"):
        assert main(["kb", "queries", str(made), "-o", str(tmp_path / name), "--direct", "5", "--seed", "7"]) == 0
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()
    assert len(read_queries(tmp_path / "one.jsonl")) == 5


def test_more_than_the_text_can_bear_is_said_with_how_many_it_can(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = folder(tmp_path)
    assert main(["kb", "queries", str(made), "--direct", "500"]) == FOUND
    found = len(read_queries(made / "queries.jsonl"))
    assert f"Asked for 500 direct questions; the text bears {found} that pass the filters." in capsys.readouterr().out


def test_what_somebody_reviewed_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = folder(tmp_path)
    assert main(["kb", "queries", str(made), "--direct", "4"]) == 0
    file = made / "queries.jsonl"
    assert main(["kb", "queries", str(made), "--direct", "3"]) == 0
    first, *others = file.read_text().splitlines()
    file.write_text("\n".join([first.replace('"reviewed": "no"', '"reviewed": "yes"'), *others]))
    assert main(["kb", "queries", str(made), "--direct", "2"]) == CANNOT_RUN
    assert "holds 1 questions that somebody wrote or reviewed" in capsys.readouterr().err
    assert main(["kb", "queries", str(made), "--direct", "2", "--force"]) == 0


def reject(file: Path, *numbers: int) -> list[str]:
    """Reject questions of a file as a review does; return them."""
    questions = ReviewFile(file)
    questions.put({number: rejected(questions.rows[number], "Ada", "nobody would ask this") for number in numbers})
    return [questions.rows[number]["query"] for number in numbers]


@pytest.mark.parametrize("more", ["queries.jsonl", "more.jsonl"])
def test_what_was_rejected_is_not_asked_again_and_others_take_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: str
) -> None:
    made = folder(tmp_path)
    asking = ["kb", "queries", str(made), "--direct", "5"]
    assert main(asking) == 0
    before = {query.query.text for query in read_queries(made / "queries.jsonl")}
    gone = reject(made / "queries.jsonl", 1, 4)
    capsys.readouterr()
    assert main([*asking, "-o", str(made / more)]) == 0
    assert "     2  somebody rejected it\n" in capsys.readouterr().out
    now = {query.query.text for query in read_queries(made / more)}
    assert len(now) == 5
    assert now & before == before - set(gone)


def test_what_was_rejected_can_be_brought_back_beside_what_took_its_place(tmp_path: Path) -> None:
    made = folder(tmp_path)
    file, asking = made / "queries.jsonl", ["kb", "queries", str(made), "--direct", "2"]
    assert main(asking) == 0
    reject(file, 0)
    assert main(asking) == 0
    reject(file, 0)
    questions = ReviewFile(file)
    questions.put({number: accepted(row, "Ada") for number, row in enumerate(questions.rows)})
    assert len(read_queries(file)) == 3


def test_where_all_were_rejected_others_are_asked(tmp_path: Path) -> None:
    made = folder(tmp_path)
    asking = ["kb", "queries", str(made), "--direct", "2"]
    assert main(asking) == 0
    gone = reject(made / "queries.jsonl", 0, 1)
    assert (made / "queries.jsonl").read_bytes() == b""
    assert main(asking) == 0
    assert not {query.query.text for query in read_queries(made / "queries.jsonl")} & set(gone)


@pytest.mark.parametrize(
    "line", ["{}", '{"query_id": "q", "query": "w", "metadata": {"reviewed": 1}, "evidence": [1]}']
)
def test_rejected_questions_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str) -> None:
    made = folder(tmp_path)
    (made / "queries.rejected.jsonl").write_text(line)
    assert main(["kb", "queries", str(made)]) == CANNOT_RUN
    assert "queries.rejected.jsonl holds a line that is not a rejected question. Mend" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["-n", "10", "--direct", "20"], "are 20. Leave -n out, or make them agree."),
        (["-o", "no/such/place.jsonl"], "No folder no/such to write place.jsonl into."),
        (["-o", "."], "is a folder. Name the file of the questions"),
        (["--writer", "llm"], "--writer llm asks a chat model"),
    ],
)
def test_what_cannot_be_asked_for(
    arguments: list[str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = folder(tmp_path)
    assert main(["kb", "queries", str(made), *arguments]) == CANNOT_RUN
    assert why in capsys.readouterr().err


def test_a_document_is_never_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = folder(tmp_path)
    assert main(["kb", "queries", str(made), "-o", str(made / "club.md")]) == CANNOT_RUN
    assert "is not a file of questions" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("pages", "why"),
    [
        ({}, "No page with text"),
        ({"empty.md": "\n"}, "No page with text"),
        ({"ja.md": JAPANESE, "ar.md": ARABIC}, "No sentence or table states a fact in English,"),
        ({"code.md": "```python\nprint(1)\n```\n"}, "No sentence or table states a fact in English,"),
    ],
)
def test_a_folder_that_bears_no_question(
    pages: dict[str, str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = folder(tmp_path, pages)
    assert main(["kb", "queries", str(made)]) == CANNOT_RUN
    assert why in capsys.readouterr().err
    assert not (made / "queries.jsonl").exists()


def test_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "queries", str(tmp_path / "gone")]) == CANNOT_RUN
    assert "No folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    "pages",
    [
        {"only.md": RETURNS},
        {"plain.txt": RETURNS.replace("#", "").replace("|", " ")},
        {"no headings.md": "\n".join(line for line in RETURNS.splitlines() if not line.startswith("#"))},
        {"both.md": RETURNS, "ja.md": JAPANESE},
        {"page.html": "<h1>Returns</h1><p>If the parcel seal is broken, we refund half of the price.</p>"},
    ],
)
def test_folders_that_bear_few(pages: dict[str, str], tmp_path: Path) -> None:
    made = folder(tmp_path, pages)
    assert main(["kb", "queries", str(made)]) == 0
    assert read_queries(made / "queries.jsonl", made)


@pytest.mark.parametrize("parts", [300, pytest.param(1_500, marks=pytest.mark.long)])
def test_a_page_of_up_to_a_megabyte_and_copies_of_a_page(tmp_path: Path, parts: int) -> None:
    large = "".join(f"{DELIVERY.replace('# Delivery', f'# Part {number}')}\n" for number in range(parts))
    made = folder(tmp_path, {"large.md": large, "a.md": RETURNS, "b.md": RETURNS})
    assert main(["kb", "queries", str(made), "--direct", "4"]) in (0, FOUND)
    rows = [json.loads(line) for line in (made / "queries.jsonl").read_text().splitlines()]
    # Both copies answer what either is asked: such questions are dropped.
    assert {row["context_reference"][0] for row in rows} == {"large.md"}


def test_german_pages_get_german_questions_and_their_language_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = folder(tmp_path, {file.name: file.read_text(encoding="utf-8") for file in GERMAN_PAGES.glob("*.md")})
    assert main(["kb", "queries", str(made), "--direct", "18", "--multi-hop", "1"]) == 0
    assert "Documents by language: 8 in de." in capsys.readouterr().out
    asked = {query.query.text: query for query in read_queries(made / "queries.jsonl", made)}
    assert asked["Wie lang ist die Rückgabefrist?"].ground_truth.startswith("Die Rückgabefrist beträgt 45 Tage")
    assert asked["Was ist für „Österreich“ unter „Lieferzeit“ angegeben?"].context_reference == ("versand.md",)
    assert "Wie viel kostet die Mitgliedschaft im Radclub?" in asked
    (hop,) = [query for query in asked.values() if query.query_type == "multi_hop"]
    assert set(hop.context_reference) == {"rueckgabe.md", "rueckgabe-2023.md"}
    assert not [text for text in asked if "what" in text.lower() or "how " in text.lower()]


def test_pages_in_two_languages_get_questions_in_each(tmp_path: Path) -> None:
    german = (GERMAN_PAGES / "versand.md").read_text(encoding="utf-8")
    made = folder(tmp_path, {"versand.md": german, "returns.md": RETURNS})
    assert main(["kb", "queries", str(made), "--direct", "6"]) in (0, FOUND)
    pages = {page for query in read_queries(made / "queries.jsonl", made) for page in query.context_reference}
    assert pages == {"versand.md", "returns.md"}


@pytest.mark.parametrize(
    ("language", "stated", "question"),
    [
        ("fr", "La livraison coûte 12 €.", "Combien coûte la livraison ?"),
        ("es", "El envío tarda 5 días.", "¿Cuánto tiempo tarda el envío?"),
        ("pt", "A garantia dura 2 anos.", "Quanto tempo dura a garantia?"),
        ("it", "La spedizione costa 12 €.", "Quanto costa la spedizione?"),
        ("nl", "De levering duurt 3 dagen.", "Hoe lang duurt de levering?"),
    ],
)
def test_each_language_asks_in_its_own_words(language: str, stated: str, question: str, tmp_path: Path) -> None:
    made = folder(tmp_path, {"a.md": f"# A\n\n{stated}\n", "b.md": "# B\n\n12345\n"})
    assert main(["kb", "queries", str(made), "--direct", "1", "--language", language]) == 0
    assert [query.query.text for query in read_queries(made / "queries.jsonl", made)] == [question]


def test_an_unknown_language_of_pages_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "queries", str(folder(tmp_path)), "--language", "german"]) == CANNOT_RUN
    assert "Did you mean 'de'?" in capsys.readouterr().err


# Planted faults: each is caught, and named.

SEAL = Evidence("returns.md", "If the parcel seal is broken, we refund half of the price.")
GOOD = Draft(
    "direct",
    "What happens if the parcel seal is broken?",
    "What happens if the parcel seal is broken?",
    "If the parcel seal is broken, we refund half of the price.",
    "we refund half of the price.",
    (SEAL,),
    ("condition",),
)
FERRY = Evidence("delivery.md", "If the ferry is cancelled, we call the recipient first.")
BOTH = replace(
    GOOD,
    kind="multi_hop",
    plain="What happens if the parcel seal is broken, and what happens if the ferry is cancelled?",
    evidence=(SEAL, FERRY),
    answer="we refund half of the price. we call the recipient first.",
)
NEGATIVE = replace(GOOD, kind="negative", plain="What is the height of Pine Lantern?", evidence=(), answer="")


@pytest.fixture
def collection() -> DocumentCollection:
    return DocumentCollection(documents())


@pytest.mark.parametrize("draft", [GOOD, BOTH, NEGATIVE])
def test_what_is_sound_passes(draft: Draft, collection: DocumentCollection) -> None:
    assert draft_fault(draft, collection) is None


ALTERED = replace(SEAL, quote=SEAL.quote.replace("half", "halt"))
LEAKING = "Do you refund half of the price if the parcel seal is broken?"
POINTING = "points at something outside of the question"


@pytest.mark.parametrize(
    ("draft", "fault"),
    [
        (replace(GOOD, evidence=(ALTERED,)), "the evidence is not in the page"),
        (replace(GOOD, evidence=(replace(SEAL, filename="gone.md"),)), "the evidence is not in the page"),
        (replace(GOOD, answer="we refund two thirds"), "the evidence does not hold the answer"),
        (replace(GOOD, text="Seal broken?"), "too short or too long"),
        (replace(GOOD, plain="What happens if it is broken by the parcel seal?"), POINTING),
        (replace(GOOD, plain="What happens?"), "says too little"),
        (replace(GOOD, plain=LEAKING), "the question holds the answer"),
        (replace(GOOD, plain="What happens on the quay with a driver card?"), "its words lead to other pages"),
        (replace(BOTH, evidence=(SEAL,), answer=GOOD.answer), "one page alone holds all evidence"),
        (replace(NEGATIVE, plain="What is the weight of Pine Lantern?"), "a passage may answer it"),
    ],
)
def test_a_planted_fault_is_named(draft: Draft, fault: str, collection: DocumentCollection) -> None:
    assert draft_fault(draft, collection) == fault


def test_a_page_that_has_it_all_answers_no_question_of_two_pages(collection: DocumentCollection) -> None:
    whole = Document("whole.md", f"# All\n\n{SEAL.quote} {FERRY.quote}\n", "All")
    wide = DocumentCollection([*collection.documents, whole])
    evidence = (SEAL, replace(FERRY, filename="whole.md"))
    assert draft_fault(replace(BOTH, evidence=evidence), wide) == "one page alone holds all evidence"


def test_another_page_that_says_the_same_makes_it_ambiguous(collection: DocumentCollection) -> None:
    rival = Document("rival.md", f"# Rival\n\n{SEAL.quote}\n", "Rival")
    assert draft_fault(GOOD, DocumentCollection([*collection.documents, rival])) == "another page may answer it too"


def test_a_superseded_page_is_no_rival(collection: DocumentCollection) -> None:
    old = Document("old.md", f"# Old\n\n{SEAL.quote}\n", "Old", {"status": "outdated"})
    assert draft_fault(GOOD, DocumentCollection([*collection.documents, old])) is None


def test_a_model_may_say_it_in_its_own_words_but_not_of_another_thing(collection: DocumentCollection) -> None:
    written = replace(GOOD, made_of=(BY_LLM,), plain="The parcel seal was broken when it came. What do you give back?")
    assert draft_fault(replace(written, answer="You refund half of the price."), collection) is None
    held = "the evidence does not hold the answer"
    assert draft_fault(replace(written, answer="Everything within nine weeks by cheque."), collection) == held


@pytest.mark.parametrize(
    "again", ["What happens if the parcel seal is broken?", "If the parcel seal is broken, what happens?"]
)
def test_what_was_asked_is_not_asked_again(again: str) -> None:
    asked = TakenQuestions()
    asked.add(GOOD)
    other = replace(GOOD, evidence=(FERRY,))
    assert asked.fault_of(replace(other, text=again)) == "asked already"
    assert asked.fault_of(replace(other, text="How heavy is Brass Lantern?")) is None
    assert asked.fault_of(replace(GOOD, text="How heavy is Brass Lantern?")) == "asked already"


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"evidence": (FERRY,)}, "somebody rejected it"),
        ({"evidence": (FERRY,), "text": "If the parcel seal is broken, what happens?"}, "somebody rejected it"),
        ({"text": "How heavy is Brass Lantern?"}, "somebody rejected it"),
        ({"text": "How heavy is Brass Lantern?", "made_of": ("purpose",)}, None),
        ({"text": "How heavy is Brass Lantern?", "ground_truth": "It weighs 2 kg."}, None),
    ],
    ids=["the question", "its words", "the fact", "a fact of another kind", "what else its sentence says"],
)
def test_a_rejected_question_and_its_fact_are_not_asked_for_again(changed: dict[str, Any], fault: str | None) -> None:
    asked = TakenQuestions(rejected=[replace(GOOD, answer="")])
    assert asked.fault_of(replace(GOOD, **changed)) == fault


def test_of_negative_questions_the_words_alone_count() -> None:
    one = replace(GOOD, kind="negative", evidence=(), ground_truth="", text="Who paints the ferry?")
    asked = TakenQuestions(rejected=[one])
    assert asked.fault_of(one) == "somebody rejected it"
    assert asked.fault_of(replace(one, text="How heavy is Brass Lantern?")) is None


# Whatever writes a question's line anew leaves what it demands of its answers as it was.

EXPECT: list[dict[str, Any]] = [
    {"number": 9, "unit": "days", "weight": 2.0, "must": True},
    {"not": {"regex": "we (will|shall) pay"}},
    {"cites": "delivery.md"},
]
ASKED = row(1, expect=EXPECT)


def test_a_review_on_the_page_keeps_it_as_the_file_has_it(tmp_path: Path) -> None:
    file = drafted(tmp_path, ASKED)
    (shown,) = data_of(html_of("queries.jsonl", [ASKED], showing(file)))["rows"]
    assert shown["expect"] == EXPECT
    # JavaScript writes 2.0 as 2; and nobody can change what the page does not show.
    from_browser = {**edited(ASKED, {"ground_truth": "It is 9 days."}, "Ada"), "expect": [{"number": 9, "weight": 2}]}
    said = accepted(from_browser, "Ada")
    download = tmp_path / "got.jsonl"
    write(download, {**said, "metadata": {**said["metadata"], "review_of": question_digest(ASKED)}})
    assert main(["queries", "review", str(file), "--take", str(download), "--by", "Bob"]) == 0
    (kept,) = read(file)
    assert (kept["ground_truth"], kept["metadata"]["reviewed"]) == ("It is 9 days.", "yes")
    assert json.dumps(kept["expect"]) == json.dumps(EXPECT)


def test_mended_gold_keeps_it(tmp_path: Path) -> None:
    file = drafted(tmp_path, row(1, expect=EXPECT[:2]), ROWS[1])
    (file.parent / "delivery.md").rename(file.parent / "islands.md")
    assert main(["queries", "check", str(file.parent), "-o", str(file)]) == FOUND
    (kept, other) = read(file)
    assert kept["context_reference"] == ["islands.md"]
    assert (kept["expect"], "expect" in other) == (EXPECT[:2], False)


def test_marks_of_superseded_statements_keep_it(tmp_path: Path) -> None:
    file = drafted(tmp_path, ASKED)
    conflict = {
        "fact": "held",
        "outdated_statement": "Island parcels are held for 5 days.",
        "current_statement": "Island parcels are held for 9 days at the harbour office.",
    }
    pages = [
        {"id": name, "filename": f"{name}.md", "title": name, "category": "a", "kind": "mixed", "status": status}
        for name, status in (("delivery", "current"), ("club", "outdated"))
    ]
    pairs = [{"outdated": "club", "current": "delivery", "conflicts": [conflict]}]
    (file.parent / "structure.json").write_text(json.dumps({"pages": pages, "version_pairs": pairs}))
    marked = tmp_path / "marked.jsonl"
    assert main(["kb", "superseded", str(file.parent), "-o", str(marked)]) == 0
    (kept,) = read(marked)
    assert kept["metadata"]["version_pair"] == "club"
    assert kept["expect"] == EXPECT


def test_a_file_with_reviewed_questions_is_not_generated_over(tmp_path: Path) -> None:
    file = drafted(tmp_path, accepted(ASKED, "Ada"))
    assert main(["kb", "queries", str(file.parent)]) == CANNOT_RUN
    assert read(file)[0]["expect"] == EXPECT
