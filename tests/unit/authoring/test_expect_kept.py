"""Whatever writes a question's line anew leaves what it demands of its answers as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rag_harness.__main__ import CANNOT_RUN, main
from rag_harness.authoring.questions.review.page import html_of
from rag_harness.authoring.questions.review.rows import accepted, edited, question_digest
from rag_harness.frontends.cli import FOUND
from tests.unit.authoring.questions.review.drafts import ROWS, drafted, read, row, showing, write
from tests.unit.authoring.questions.review.test_page import data_of

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
