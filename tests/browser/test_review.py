"""The page of a review: by keys alone, kept over a reload, downloaded and taken back; hostile texts; everybody."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_harness.__main__ import main
from tests.browser.conftest import Opened
from tests.browser.hostile import ALL, CLOSED, COMMENT, IMAGE, QUOTES, SCRIPT
from tests.browser.test_accessible import violations
from tests.unit.authoring.questions.review.drafts import HELD, ROWS, drafted, read, row
from tests.unit.authoring.questions.shop import PAGES

if TYPE_CHECKING:
    from playwright.sync_api import Page


NARROW = {"width": 360, "height": 740}
MARKUP = f"{SCRIPT} {IMAGE} {COMMENT} {CLOSED} {QUOTES}"
"""What a document may hold: control characters are left out where it is read."""
HOSTILE = f"# Odd {MARKUP}\n\nBefore {MARKUP}\n\nThe quoted line {MARKUP}\n\nBehind {MARKUP}\n"


def page_of(file: Path) -> Path:
    """Write the page of a file of questions."""
    page = file.parents[1] / "review.html"
    assert main(["queries", "review", str(file), "--page", str(page)]) == 0
    return page


def downloaded(page: Page, to: Path) -> Path:
    with page.expect_download() as found:
        page.get_by_role("button", name="Download").click()
    found.value.save_as(to)
    return to


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def named(page: Page) -> None:
    page.get_by_label("Your name").fill("Ada")
    page.locator("#question").focus()


def test_a_review_by_keys_is_kept_downloaded_and_taken(opened: Opened, tmp_path: Path) -> None:
    file = drafted(tmp_path)
    page = opened(page_of(file), accept_downloads=True)
    press(page, "a")
    assert page.locator("#trouble").inner_text().startswith("Write your name first")
    named(page)
    press(page, "a", "r", "4")
    assert page.locator("#asked").inner_text() == ROWS[2]["query"]
    press(page, "a")
    assert page.locator("#faults").inner_text().endswith("or reject the question.")
    assert HELD in page.locator("#evidence .near").first.inner_text()
    press(page, "a")
    assert page.locator("#counts").inner_text().startswith("2 accepted, 1 rejected, 1 to go.")
    press(page, "e")
    page.get_by_label("Quote, word for word").fill(HELD)
    page.get_by_role("button", name="Keep the edit").click()
    page.reload()
    page.locator("html[data-ready]").wait_for()
    assert page.locator("#evidence mark").inner_text() == HELD
    press(page, "a")
    got = downloaded(page, tmp_path / "got.jsonl")
    assert main(["queries", "review", str(file), "--take", str(got)]) == 0
    states = {each["query_id"]: each["metadata"] for each in read(file)}
    assert [about["reviewed"] for about in states.values()] == ["yes", "yes", "yes"]
    assert (states["q_004"]["edited_by"], states["q_004"]["reviewed_by"]) == ("Ada", "Ada")
    (apart,) = read(file.with_name("queries.rejected.jsonl"))
    assert apart["metadata"]["rejected_because"] == "nobody would ask this"
    assert read(file)[0] == {**ROWS[0], "metadata": {"difficulty": "easy", "reviewed": "yes", "reviewed_by": "Ada"}}


def test_selected_words_become_the_quote_and_undo_forgets_the_edit(opened: Opened, tmp_path: Path) -> None:
    page = opened(page_of(drafted(tmp_path)))
    named(page)
    press(page, "e")
    mark = page.locator("#evidence mark")
    mark.evaluate(
        "it => { const to = document.createRange(); to.setStart(it.firstChild, 0); to.setEnd(it.firstChild, 14);"
        " getSelection().removeAllRanges(); getSelection().addRange(to) }"
    )
    page.get_by_role("button", name="Use the selected words").click()
    page.get_by_role("button", name="Keep the edit").click()
    assert mark.inner_text() == HELD[:14]
    press(page, "u")
    assert mark.inner_text() == HELD


def test_kinds_states_and_words_choose_what_is_shown(opened: Opened, tmp_path: Path) -> None:
    page = opened(page_of(drafted(tmp_path)))
    page.get_by_label("Kind", exact=True).select_option("negative")
    assert page.locator("#asked").inner_text() == "Who paints the ferry?"
    assert page.locator("#evidence h3").first.inner_text().startswith("Nearest passage: ")
    page.get_by_label("Words", exact=True).fill("nosuchword")
    assert "No question is like that" in page.locator("#question").inner_text()
    page.get_by_label("Words", exact=True).fill("")
    page.get_by_label("Kind", exact=True).select_option("multi_hop")
    assert page.locator("#evidence mark").count() == 2
    page.get_by_label("State").select_option("accepted")
    assert page.locator("#evidence mark").count() == 0


def test_hostile_texts_are_texts(opened: Opened, tmp_path: Path) -> None:
    quote = f"The quoted line {MARKUP}"
    about: dict[str, Any] = {"kind": ALL, "reviewed": "rejected", "reviewed_by": ALL, "rejected_because": ALL}
    odd = row(1, query=ALL, ground_truth=ALL, query_type=ALL, metadata=about, context_reference=["odd.md"])
    odd["evidence"] = [{"filename": "odd.md", "quote": quote}, {"filename": ALL, "quote": ALL}]
    file = drafted(tmp_path, odd, pages={"odd.md": HOSTILE, **PAGES})
    page = opened(page_of(file))
    assert page.locator("#evidence mark").text_content() == quote
    assert page.locator("#asked").text_content() == ALL
    assert page.locator("main img, main script, main a").count() == 0
    named(page)
    press(page, "e")
    assert page.get_by_label("Question", exact=True).input_value() == ALL
    assert quote == page.get_by_label("Quote, word for word").first.input_value()


def at_negative(page: Page) -> None:
    page.get_by_label("Kind", exact=True).select_option("negative")
    page.locator("#help summary").click()


def at_one_without_evidence(page: Page) -> None:
    page.get_by_label("Kind", exact=True).select_option("")
    page.get_by_label("Words", exact=True).fill("q_004")
    page.locator("#faults").wait_for()


def editing(page: Page) -> None:
    page.get_by_label("Words", exact=True).fill("")
    named(page)
    press(page, "e")


def rejecting(page: Page) -> None:
    page.get_by_role("button", name="Leave it as it was").click()
    press(page, "r")


def test_no_violation_and_no_scrolling_sideways(opened: Opened, tmp_path: Path) -> None:
    rows = (
        row(1, query="島の荷物は何日間保管されますか。" * 4, ground_truth="تسعة أيام في مكتب الميناء " * 4),
        *ROWS[1:],
    )
    page = opened(page_of(drafted(tmp_path, *rows)), viewport=NARROW)
    for view in (at_negative, at_one_without_evidence, editing, rejecting):
        view(page)
        assert not violations(page), view.__name__
        page.emulate_media(color_scheme="dark")
        assert not violations(page, "html", ["color-contrast"]), view.__name__
        page.emulate_media(color_scheme="light")
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"], view.__name__


def test_a_browser_that_keeps_nothing_says_so(opened: Opened, tmp_path: Path) -> None:
    refuses = "Object.defineProperty(window, 'localStorage', { get() { throw new Error('no') } })"
    page = opened(page_of(drafted(tmp_path)), before=refuses)
    assert "download before you close" in page.locator("#trouble").inner_text()
    named(page)
    press(page, "a")
    assert page.locator("#counts").inner_text().startswith("1 accepted")


TALK: dict[str, Any] = {
    "conversation": "c1",
    "turns": [
        {"query": f"Question {n}?", "ground_truth": f"Answer {n}.", "standalone": f"Alone {n}?"} for n in (1, 2, 3)
    ],
}


def test_a_turn_is_read_behind_those_before_it_and_takes_those_behind_it_along(opened: Opened, tmp_path: Path) -> None:
    file = drafted(tmp_path, TALK)
    page = opened(page_of(file), accept_downloads=True)
    named(page)
    press(page, "j")
    said = page.locator("#question").inner_text()
    assert said.index("Question 1?") < said.index("Answer 1.") < said.index("Question 2?") < said.index("Alone 2?")
    press(page, "r", "4")
    assert page.locator("#counts").inner_text().startswith("0 accepted, 2 rejected, 1 to go.")
    press(page, "k", "j", "u")
    assert page.locator("#counts").inner_text().startswith("0 accepted, 0 rejected, 3 to go.")
    press(page, "e")
    page.locator("#edit-alone").fill("How long is it held?")
    page.get_by_role("button", name="Keep the edit").click()
    assert main(["queries", "review", str(file), "--take", str(downloaded(page, tmp_path / "got.jsonl"))]) == 0
    (whole,) = read(file)
    assert whole["turns"][1]["standalone"] == "How long is it held?"
