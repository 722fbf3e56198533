"""Every number of the page's tables, against a second program that reads the files alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_harness.page.written import write_report
from tests.browser.runs import Study
from tests.unit.page.recount.page_tables import tables_in
from tests.unit.page.recount.recounted import problems

pytest.importorskip("scipy", reason="the second program needs scipy")


def page_of(study: Study, folder: Path) -> tuple[str, Path]:
    output = study.write(folder / "output")
    write_report([output], folder / "page.html", "html")
    return (folder / "page.html").read_text(), output


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    return page_of(Study(), tmp_path_factory.mktemp("small"))


def test_every_number_of_a_small_run(small: tuple[str, Path]) -> None:
    assert problems(*small) == []


def test_every_number_of_a_run_that_resamples(tmp_path: Path) -> None:
    """From 100 cases on other intervals are drawn, and tails have one."""
    html, output = page_of(Study(experiments=("e1", "e2", "e3"), cases=150, seed=3), tmp_path)
    assert len(tables_in(html)["table-pairwise-study"].rows) > 4, "tails are among them"
    assert problems(html, output) == []


def test_a_wrong_number_is_found_wherever_it_stands(small: tuple[str, Path]) -> None:
    html, output = small
    for name in tables_in(html):
        places = list(numbers_of(html, name))
        missed = [html[start - 40 : end] for start, end in places if not problems(wrong(html, start, end), output, name)]
        assert places, name
        assert not missed, name


def test_a_table_that_nobody_recounts_is_found(small: tuple[str, Path]) -> None:
    html, output = small
    assert problems(html.replace("table-costs", "table-new"), output, "table-new") == [
        "table-new: nobody recounts this table"
    ]


def test_the_second_program_has_nothing_of_the_first() -> None:
    files = list((Path(__file__).parent / "recount").glob("*.py"))
    modules = {
        name
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        for name in ([it.name for it in node.names] if isinstance(node, ast.Import) else [getattr(node, "module", "")])
        if isinstance(node, (ast.Import, ast.ImportFrom))
    }
    assert len(files) > 5
    assert not [name for name in modules if name.startswith("rag_harness")]
    assert not [name for name in modules if name.startswith("tests") and not name.startswith("tests.unit.page.recount")]


def numbers_of(html: str, table: str) -> Iterator[tuple[int, int]]:
    """Yield where the first number of each cell stands that is no text with a number in it."""
    start = html.index(f'id="{table}"')
    inside = html[start : html.index("</table>", start)]
    figures = r"<td[^>]*>(?:<a[^>]*>)?<bdi>(?:\[|\$|difference \[)?([+-]?\d[\d,]*\.?\d*)(?![\w>])"
    caption = r"<caption>(\d+)"
    for place in re.finditer(caption if table == "table-errors" else figures, inside):
        yield start + place.start(1), start + place.end(1)


def wrong(html: str, start: int, end: int) -> str:
    """Return the page with the number in this place half as large again, and one more."""
    number = html[start:end].replace(",", "")
    return f"{html[:start]}{float(number) * 1.5 + 1:.{len(number.partition('.')[2])}f}{html[end:]}"
