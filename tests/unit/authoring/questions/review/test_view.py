"""A question on the screen of a terminal."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from rag_harness.authoring.questions.review.chosen import chosen_rows
from rag_harness.authoring.questions.review.reviewed_rows import QueryRow, accepted
from rag_harness.authoring.questions.review.session import Session
from rag_harness.authoring.questions.review.view import safe, show
from tests.unit.authoring.questions.review.drafts import HELD, ROWS, drafted, row, session
from tests.unit.authoring.questions.shop import PAGES


def screen(review: Session, width: int = 100, height: int = 60) -> str:
    out = StringIO()
    show(review, Console(file=out, width=width, height=height, force_terminal=True, color_system="standard"))
    return out.getvalue()


def test_what_is_decided_on_is_on_the_screen(tmp_path: Path) -> None:
    review = session(drafted(tmp_path))
    review.walk.at = 1
    shown = screen(review)
    for words in (
        "2 of 4",
        "0 accepted, 0 rejected, 4 to go",
        "evidence 1 of 2",
        "evidence 2 of 2",
        "returns.md › Returns › Windows",
    ):
        assert words in shown
    assert f"\x1b[7m{HELD}" in shown, "the quote stands out"
    review.walk.at = 3
    assert "cannot be accepted as it is" in screen(review)
    assert "what that page says" in screen(review)
    review.walk.at = 2
    assert "nearest passage" in screen(review)


def test_why_a_check_of_the_documents_has_marked_a_question_is_said(tmp_path: Path) -> None:
    marked = row(1, metadata={"reviewed": "no", "affected": "may be answered now"})
    shown = screen(session(drafted(tmp_path, marked)))
    assert "the documents have changed" in shown
    assert "may be answered now" in shown


def test_what_would_steer_the_terminal_is_written_out(tmp_path: Path) -> None:
    odd = "a\x1b]0;owned\x07b\x1b[2J \u202ec\r\n[bold]d[/bold]\x9b1m"
    shown = screen(session(drafted(tmp_path, row(1, query=odd, ground_truth=odd, metadata={"kind": odd}))))
    assert "\x1b]0" not in shown
    assert "\u202e" not in shown
    assert "\x9b" not in shown
    assert shown.count("\x1b[2J") == 1, "our own"
    assert r"a\x1b]0;owned\x07b\x1b[2J \u202ec" in shown
    assert "[bold]d[/bold]" in shown


@pytest.mark.parametrize(
    "text", ["島の荷物は何日間保管されますか。", "تسعة أيام في مكتب الميناء", "a\n\tb – “c” 👩‍👩‍👧"]
)
def test_other_scripts_are_left_as_they_are(text: str) -> None:
    assert safe(text) == text.expandtabs(4)


def test_a_screen_that_is_too_small_shows_it_part_by_part(tmp_path: Path) -> None:
    review = session(drafted(tmp_path))
    parts = []
    for _ in range(4):
        shown = screen(review, width=60, height=16)
        assert shown.count("\n") < 16
        parts.append(shown)
        review.press("space")
    assert "part 1 of " in parts[0]
    assert any(HELD[:20] in part for part in parts)
    assert parts[0] != parts[1]


def test_more_of_the_page_on_a_key(tmp_path: Path) -> None:
    long = PAGES["delivery.md"] + "\n\nThe very end.\n"
    review = session(drafted(tmp_path, pages={**PAGES, "delivery.md": long}))
    assert "The very end." not in screen(review)
    review.press("c")
    assert "The very end." in screen(review)


def test_a_sample_is_the_same_when_some_are_decided() -> None:
    rows = [row(number) for number in range(50)]
    drawn = chosen_rows(rows, sample=5, seed=3)
    assert len(drawn) == 5
    assert drawn != chosen_rows(rows, sample=5, seed=4)
    rows[drawn[0]] = accepted(rows[drawn[0]], "Ada")
    assert chosen_rows(rows, sample=5, seed=3) == drawn
    assert chosen_rows(rows, sample=5, seed=3, only="unreviewed") == drawn[1:]
    assert chosen_rows(list(ROWS), kind="negative") == [2]


TALK: QueryRow = {
    "conversation": "c1",
    "turns": [
        {"query": f"Question {n}?", "standalone": f"Alone {n}?", "ground_truth": f"Answer {n}."} for n in range(1, 9)
    ],
}


def test_a_turn_is_shown_with_the_turns_before_it(tmp_path: Path) -> None:
    review = session(drafted(tmp_path, row(1), TALK))
    review.walk.at = 3
    shown = screen(review)
    for words in ("c1#3", "said before", "Question 1?", "Answer 2.", "Question 3?", "asked alone", "Alone 3?"):
        assert words in shown
    assert "Question 4?" not in shown
    review.walk.at = 8
    shown = screen(review, height=80)
    assert "the last 6 of 7 turns" in shown
    assert "Question 1?" not in shown
    review.walk.at = 0
    assert "said before" not in screen(review)
