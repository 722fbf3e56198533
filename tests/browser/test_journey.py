"""What people do: come from the verdict to one failed claim, send a link, filter, sort, compare, go back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.browser.conftest import Opened, Pages
from tests.browser.views import CHUNKS

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page


ENOUGH = 60
"""Presses of a key after which people give up."""


def test_from_the_verdict_to_a_failed_claim_by_keyboard_alone(opened: Opened, study_page: Path) -> None:
    page = opened(study_page)
    press_until(page, "Tab", "a.skip")
    page.keyboard.press("Enter")
    arrived(page, "#first")
    assert "failed" in page.locator("#first").inner_text()
    press_until(page, "Tab", "[data-field=q]", presses=300)
    page.keyboard.type("e3")
    page.locator("[data-count]", has_text="12 of 36").wait_for()
    # Not Escape, with which the browser empties a field to search in; the list follows some time later.
    page.keyboard.press("Tab")
    press_until(page, "j", "tr[data-trial] a")
    page.keyboard.press("Enter")
    page.locator("[data-panel] h3").wait_for()
    press_until(page, "j", "[data-panel]:has([data-claim='not supported'])", of_page=True)
    assert "e3-" in page.locator("[data-panel] h3").inner_text()
    claim = page.locator("[data-claim='not supported']").first
    assert claim.is_visible()
    assert "not supported" in claim.inner_text()
    page.keyboard.press("Escape")
    page.locator("[data-panel]").wait_for(state="hidden")
    assert focused(page, "tr[data-trial] a"), "back where it was left"


def test_keys_are_told_and_found(opened: Opened, study_page: Path) -> None:
    page = opened(study_page, "#trials")
    page.keyboard.press("?")
    help_ = page.locator("[data-help][open]")
    help_.wait_for()
    assert all(key in help_.inner_text() for key in ("j", "k", "Enter", "Esc", "/", "s", "?"))
    page.keyboard.press("Escape")
    page.locator("[data-help][open]").wait_for(state="detached")
    page.keyboard.press("/")
    assert focused(page, "[data-field=q]")


def test_a_deep_link_survives_a_reload(opened: Opened, study_page: Path) -> None:
    at = "#trials?experiment=e3&sort=-ms&open=e3-q003"
    page = opened(study_page, at)
    page.locator("[data-panel] h3", has_text="e3-q003").wait_for()
    before = trials_of(page)
    page.reload()
    page.locator("[data-panel] h3", has_text="e3-q003").wait_for()
    arrived(page, at)
    assert trials_of(page) == before
    assert page.locator("tr[aria-current] a").inner_text() == "e3-q003"


def test_a_link_of_a_table_opens_its_trial(opened: Opened, study_page: Path) -> None:
    page = opened(study_page)
    page.locator("#table-errors a").first.click()
    page.locator("[data-panel] h3", has_text="e1-q010").wait_for()
    assert "503" in page.locator("[data-panel] .bad").first.inner_text()


def test_a_link_to_no_trial_says_so(opened: Opened, study_page: Path) -> None:
    page = opened(study_page, "#trials?open=e9-q999")
    assert "e9-q999" in page.locator("[data-count]").inner_text()


def test_filters_narrow_and_are_taken_off(opened: Opened, study_page: Path) -> None:
    page = opened(study_page, "#trials")
    assert page.locator("[data-count]").inner_text() == "36 trials, the worst first"
    page.locator("[data-facet=experiment] summary").click()
    page.get_by_role("checkbox", name="e3").check()
    page.locator("[data-count]", has_text="12 of 36").wait_for()
    page.locator("[data-facet=type] summary").click()
    page.locator("[data-facet=type]").get_by_role("checkbox", name="negative").check()
    page.locator("[data-count]", has_text="4 of 36").wait_for()
    assert sorted(trials_of(page)) == [f"e3-q{n:03}" for n in (2, 5, 8, 11)]
    page.get_by_role("button", name="Remove the filter Experiment: e3").click()
    page.locator("[data-count]", has_text="12 of 36").wait_for()
    page.get_by_role("button", name="Remove the filter Type: negative").click()
    page.locator("[data-count]", has_text="36 trials").wait_for()
    arrived(page, "#trials")


def test_a_range_and_words_filter(opened: Opened, study_page: Path) -> None:
    page = opened(study_page, "#trials?cols=ms")
    page.locator("[data-facet=range] summary").click()
    page.locator("[data-field=range]").select_option("ms")
    page.locator("[data-field=from]").fill("200")
    page.get_by_role("button", name="Remove the filter ms").wait_for()
    assert min(column(page, "ms")) >= 200
    before = page.locator("[data-count]").inner_text()
    page.locator("[data-field=q]").fill("sleeping")
    page.wait_for_function("before => document.querySelector('[data-count]').innerText !== before", arg=before)
    assert all("sleeping" in text for text in page.locator("tr[data-trial] .asked").all_inner_texts())


def test_sorting_orders_and_turns(opened: Opened, study_page: Path) -> None:
    page = opened(study_page, "#trials?cols=ms")
    page.locator("[data-sort=ms]").click()
    first = column(page, "ms")
    page.locator("[data-sort=ms]").click()
    assert page.locator("th[aria-sort]").count() == 1
    assert first == sorted(first, reverse=True)
    assert column(page, "ms") == sorted(first)


def test_two_answers_differ_by_their_words(opened: Opened, study_page: Path) -> None:
    page = opened(study_page, "#trials?open=e3-q003")
    page.get_by_role("link", name="e2-q003 beside it").click()
    columns = [page.locator(f"[data-column={name}-q003]") for name in ("e3", "e2")]
    columns[1].wait_for()
    answers = [part_of(opened, study_page, name) for name in ("e3", "e2")]
    for column_, answer, tag in zip(columns, answers, ("del", "ins"), strict=True):
        shown = " ".join(column_.locator(".text").inner_text().split())
        assert shown == answer
        assert all(word in answer for text in column_.locator(tag).all_inner_texts() for word in text.split())
    assert page.locator("del, ins").count() > 0


def test_back_undoes_a_step_and_forward_does_it_again(opened: Opened, study_page: Path) -> None:
    page = opened(study_page, "#trials?cols=ms")
    page.locator("[data-sort=ms]").click()
    page.locator("tr[data-trial=e3-q003] a").click()
    page.locator("[data-panel] h3").wait_for()
    page.get_by_role("link", name="e2-q003 beside it").click()
    page.locator("[data-column=e2-q003]").wait_for()
    page.go_back()
    page.locator(CHUNKS).wait_for()
    page.go_back()
    page.locator("[data-panel]").wait_for(state="hidden")
    page.go_back()
    page.locator("th[aria-sort]").wait_for(state="detached")
    page.go_forward()
    page.locator("th[aria-sort]").wait_for()


def test_the_same_question_of_two_runs(opened: Opened, pages: Pages) -> None:
    page = opened(pages("two"), "#trials?open=after/e3-q003")
    page.get_by_role("link", name="before/e3-q003 beside it").click()
    page.locator("[data-column='before/e3-q003']").wait_for()
    assert page.locator("[data-part=scores] tbody tr").count() > 3
    said = page.locator("[data-column]").evaluate_all("all => all.map(it => it.dataset.column)")
    assert said == ["before/e3-q003", "after/e3-q003"], "what was before stands on the left"


def test_an_abstention_more_is_neither_better_nor_worse(opened: Opened, study_page: Path) -> None:
    page = opened(study_page, "#trials?open=e2-q007&with=e3-q007")
    page.locator("[data-column=e3-q007]").wait_for()
    rows = page.locator("[data-part=scores] tbody tr").all_inner_texts()
    said = {name: last for name, *_, last in (row.split("\t") for row in rows)}
    assert said["abstention_rate"] == "+1.000"
    assert said["ms"].split()[-1] in ("better", "worse")


def test_evidence_and_citations_lead_to_the_chunk(opened: Opened, study_page: Path) -> None:
    page = opened(study_page, "#trials?open=e3-q003")
    chunk = page.locator("[data-chunk='1']")
    chunk.wait_for()
    assert "within 30 days of delivery" in " ".join(
        page.locator("[data-part='in the prompt'] mark").first.inner_text().split()
    )
    page.locator("[data-part=answer]").get_by_role("button", name="Source 1").first.click()
    assert focused(page, "[data-chunk='1']")


def arrived(page: Page, at: str) -> None:
    """Wait for the address: the browser changes it some time after the key or the click that asked for it."""
    page.wait_for_function("at => location.href.endsWith(at)", arg=at)


def press_until(page: Page, key: str, selector: str, presses: int = ENOUGH, of_page: bool = False) -> None:
    """Press a key until what has the focus is wanted, or until the page has it."""
    for _ in range(presses):
        if page.locator(selector).count() if of_page else focused(page, selector):
            return
        page.keyboard.press(key)
        if of_page:
            page.wait_for_timeout(50)
    raise AssertionError(f"{presses} times {key} did not come to {selector}")


def focused(page: Page, selector: str) -> bool:
    return bool(page.evaluate("selector => document.activeElement.matches(selector)", selector))


def trials_of(page: Page) -> list[str]:
    return [*page.locator("tr[data-trial]").evaluate_all("all => all.map(it => it.dataset.trial)")]


def column(page: Page, name: str) -> list[float]:
    place = page.locator(f"th:has([data-sort={name}])").evaluate("it => it.cellIndex")
    cells: Locator = page.locator(f"tr[data-trial] > :nth-child({place + 1})")
    return [float(text) for text in cells.all_inner_texts() if text != "–"]


def part_of(opened: Opened, file: Path, experiment: str) -> str:
    """Return the answer as the opened trial shows it, without the marks of its claims."""
    page = opened(file, f"#trials?open={experiment}-q003")
    page.locator("[data-part=answer] .text").first.wait_for()
    page.evaluate("document.querySelectorAll('[data-part=answer] .sign').forEach(it => it.remove())")
    return " ".join(page.locator("[data-part=answer] .text").first.inner_text().split())
