"""The page in a limited browser: no JavaScript, no decompression of gzip, nothing to show."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.conftest import Opened, page_of
from tests.browser.runs import GATES, empty_run

NO_UNPACKING = "delete globalThis.DecompressionStream"


def test_without_javascript_the_figures_are_there(opened: Opened, study_page: Path) -> None:
    page = opened(study_page, java_script_enabled=False)
    assert all(gate in (page.locator("#first").text_content() or "") for gate in GATES)
    assert page.locator("#table-scorecard tbody tr").count() > 3
    assert page.locator("main svg").count() > 0
    assert "JavaScript" in page.locator("#trials").inner_text()


def test_without_unpacking_the_page_says_what_to_do(opened: Opened, study_page: Path) -> None:
    page = opened(study_page, before=NO_UNPACKING)
    page.locator("#app", has_text="--plain").wait_for()
    assert page.locator("#table-scorecard").is_visible()


def test_a_plain_page_needs_no_unpacking(opened: Opened, study: Path, tmp_path: Path) -> None:
    file = page_of(tmp_path / "plain.html", study, is_plain=True)
    page = opened(file, before=NO_UNPACKING)
    page.locator("#app", has_text="q001").wait_for()


@pytest.mark.parametrize("is_plain", [False, True])
def test_a_run_of_nothing_is_a_page(opened: Opened, tmp_path: Path, is_plain: bool) -> None:
    page = opened(page_of(tmp_path / "empty.html", empty_run(tmp_path / "output"), is_plain=is_plain))
    assert "no trial" in page.locator("h1").inner_text()
