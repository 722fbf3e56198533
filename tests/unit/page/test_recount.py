"""Every number of the page's tables, against a second program that reads the files alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("scipy", reason="the second program needs scipy")


from rag_harness.page.report import write_report
from tests.browser.runs import Study
from tests.unit.page.recount import first_sentences
from tests.unit.page.recount.page_tables import tables_in
from tests.unit.page.recount.recounted import problems, table_problems
from tests.unit.page.recount.rows import read_files

MOST = 12
"""Numbers of a table that are broken in turn."""
DECIDED = (
    "e3: recall@5 >= 0.4 else cut by headings",
    "e3: faithfulness >= 0.99 else switch to e2, 2 weeks",
    "e3: recall@5 > e2 @95% else leave the reranker out",
    "e3: recall@5 >= e2 + 0.5 else leave the 2nd stage out",
    "e3: recall@5 >= 0.8 @95% else ask 9 more",
    "e2: answer_relevancy >= 0.3",
)
TESTS, MORE = re.compile(r"corrected for (\d+) tests"), re.compile(r"(?:About|some) ([\d,]+) more questions")
"""Numbers that are counts of a plan, and not figures of the run."""
PLAIN = ("table-measures", "table-kinds", "table-differing-1")
"""Tables without figures of a run."""


def page_of(folder: Path, *studies: Study) -> tuple[str, list[Path]]:
    outputs = [study.write(folder / f"run{n}") for n, study in enumerate(studies)]
    write_report(outputs, folder / "page.html", "html")
    return (folder / "page.html").read_text(), outputs


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[Path]]:
    return page_of(tmp_path_factory.mktemp("two"), Study(cases=24, gates=DECIDED), Study(("e3",), 24, seed=8))


def test_every_number_of_two_small_runs(two: tuple[str, list[Path]]) -> None:
    html, outputs = two
    names = " ".join(tables_in(html))
    assert all(
        name in names
        for name in ("figure-reliability", "table-decisions", "figure-slices", "table-diff-1-e3", "moved-1-e3")
    )
    assert problems(html, *outputs) == []


def test_every_number_of_a_run_that_resamples(tmp_path: Path) -> None:
    """From 100 cases on other intervals are drawn, and tails have one."""
    html, outputs = page_of(tmp_path, Study(cases=150, seed=3))
    assert len(tables_in(html)["table-pairwise-study"].rows) > 4, "tails are among them"
    assert problems(html, *outputs) == []


def test_a_wrong_number_is_found_wherever_it_stands(two: tuple[str, list[Path]]) -> None:
    html, outputs = two
    files, tables = read_files(*outputs), tables_in(html)
    for name in set(tables) - set(PLAIN):
        part = html[html.index(f'<table id="{name}"') :].partition("</table>")[0] + "</table>"
        places = [*numbers_of(part, name)][:MOST]
        assert places, name
        for start, end in places:
            broken = tables | tables_in(wrong(part, start, end))
            assert any(table_problems(files, name, broken)), part[start - 60 : end]


def test_a_wrong_thing_to_do_is_found(two: tuple[str, list[Path]]) -> None:
    html, outputs = two
    before, ident, table = html.partition('id="table-decisions"')
    bounds = re.search(r"between (\S+) and", table)
    assert bounds, "one is open"
    for right, other in (
        ("keep<", "stop<"),
        ("2 weeks<", "3 weeks<"),
        ("ask 9 more<", "ask 8 more<"),
        (bounds[1], "0.1"),
    ):
        assert right in table
        broken = before + ident + table.replace(right, other, 1)
        assert problems(broken, *outputs, only="table-decisions"), right


def test_a_table_that_nobody_recounts_is_found(two: tuple[str, list[Path]]) -> None:
    html, outputs = two
    found = problems(html.replace("table-costs", "table-new"), *outputs, only="table-new")
    assert found == ["table-new: nobody recounts this table"]


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


def numbers_of(part: str, table: str) -> Iterator[tuple[int, int]]:
    """Yield where the first number of each cell stands that is not text with a number in it."""
    figures = r"<td[^>]*>(?:<a[^>]*>)?(?:<bdi>)?(?:\[|\$|difference \[)?([+-]?\d[\d,]*\.?\d*)(?![\w>])"
    for place in re.finditer(r"<caption>(\d+)" if table == "table-errors" else figures, part):
        yield place.span(1)


def wrong(part: str, start: int, end: int) -> str:
    """Return the table with the number in this place half as large again, and one more."""
    number = part[start:end].replace(",", "")
    return f"{part[:start]}{float(number) * 1.5 + 1:.{len(number.partition('.')[2])}f}{part[end:]}"


def test_the_first_sentences_of_a_small_run(two: tuple[str, list[Path]]) -> None:
    html, outputs = two
    assert first_sentences.problems(read_files(*outputs), html) == []


@pytest.mark.parametrize("topic", ["best", "sure", "why"])
def test_a_wrong_number_in_a_first_sentence_is_found(two: tuple[str, list[Path]], topic: str) -> None:
    html, outputs = two
    files, text = read_files(*outputs), first_sentences.topics_in(html)[topic]
    numbers = [found[1] for found in re.finditer(r"(?<![\w@])([+-]?\d[\d,]*\.?\d*)(?![\w@])", text)]
    part = html[html.index(f'data-topic="{topic}"') :].partition("</dd>")[0]
    assert numbers
    for number in set(numbers) - {"95", *TESTS.findall(text), *MORE.findall(text)}:
        broken = html.replace(part, part.replace(number, f"{float(number.replace(',', '')) + 1.5:.3f}", 1))
        assert first_sentences.problems(files, broken), f"{number} in {text}"
