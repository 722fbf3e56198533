"""Every number of the page's tables, against a second program that reads the files alone."""

from __future__ import annotations

import ast
import re
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


def test_a_number_that_is_wrong_is_found_in_every_table(small: tuple[str, Path]) -> None:
    html, output = small
    found = {name: problems(broken(html, name), output, name) for name in tables_in(html)}
    assert not [name for name, said in found.items() if not said]


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


def broken(html: str, table: str) -> str:
    """Return the page with a number of the table's last row, or of its caption, changed by half of it and a bit."""
    start = html.index(f'id="{table}"')
    end = html.index("</table>", start)
    inside = html[start:end]
    cells = [it for it in re.finditer(r"<bdi>([^<]*?)(\d[\d,.]*)([^<]*)</bdi>", inside) if "q0" not in it[0]]
    place = cells[-1] if cells and table != "table-errors" else re.search(r"<caption>()(\d+)()", inside)
    assert place is not None
    number = float(place[2].replace(",", "").rstrip("."))
    digits = len(place[2].partition(".")[2])
    wrong = f"{place[0][: place.start(2) - place.start()]}{number * 1.5 + 1:.{digits}f}{place[0][place.end(2) - place.start() :]}"
    return html[: start + place.start()] + wrong + html[start + place.end() :]
