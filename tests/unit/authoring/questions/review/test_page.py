"""The page: one file, the same bytes for the same questions, and no code but the harness's own."""

from __future__ import annotations

import base64
import gzip
import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from rag_harness.authoring.questions.review import page as of_page
from rag_harness.authoring.questions.review.page import AROUND, html_of
from rag_harness.authoring.questions.review.rows import QueryRow, ReviewFile
from tests.unit.authoring.questions.review.drafts import HELD, ROWS, drafted, row, showing


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
