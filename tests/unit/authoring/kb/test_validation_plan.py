"""structure.json against the files, and version pairs against their pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rag_harness.authoring.kb.validation import validate
from tests.unit.data.kb_builder import Kb, planned


@pytest.fixture
def kb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kb:
    monkeypatch.setenv("RAG_MERMAID_MODULES", "/nowhere")
    return Kb(tmp_path / "kb")


def line_of(kb: Kb, nth: int) -> int:
    """Return the line of the nth page's id in the written plan."""
    lines = (kb.folder / "structure.json").read_text().split("\n")
    return [number for number, line in enumerate(lines, 1) if '"id":' in line][nth]


def test_a_planned_page_that_is_missing(kb: Kb) -> None:
    kb.planned["pages"].append(planned("refunds"))
    kb.planned["num_pages"] = 4
    said = "'refunds.md' is planned: no such file in KB. The nearest is 'returns.md'. Write the page or drop it here."
    assert kb.errors() == [f"plan: KB/structure.json:{line_of(kb, 3)}: {said}"]


def test_a_page_that_is_not_planned(kb: Kb) -> None:
    kb.pages["extra.md"] = "# Extra\n"
    said = "the page is not in structure.json. Plan it there, or remove the file."
    assert kb.errors() == [f"plan: KB/extra.md: {said}"]


def test_a_planned_name_that_leaves_the_folder(kb: Kb) -> None:
    kb.planned["pages"].append(planned("passwd", filename="../../etc/passwd"))
    kb.planned["num_pages"] = 4
    said = "'../../etc/passwd' is planned: refused: the name leads out of KB. Name a file inside it."
    assert kb.errors() == [f"plan: KB/structure.json:{line_of(kb, 3)}: {said} Write the page or drop it here."]


def test_duplicate_ids_and_a_wrong_count(kb: Kb) -> None:
    kb.pages["more.md"] = "# More\n"
    kb.planned["pages"].append(planned("shipping", filename="more.md", category="shipping"))
    errors = kb.errors()
    first, second = line_of(kb, 2), line_of(kb, 3)
    said = f"id 'shipping' stands already on line {first}. Give each page its own."
    assert f"plan: KB/structure.json:{second}: {said}" in errors
    assert "plan: KB/structure.json: num_pages is 3, but 4 pages are planned. Correct one of them." in errors


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("title", "Parcels", "the first heading of shipping.md is 'Shipping', planned is 'Parcels'. Make them agree."),
        ("category", "toys", "shipping has category 'toys'; categories lists returns, shipping. Use one of them."),
        ("kind", "odd", "shipping has kind 'odd'; known are tabular, logical, mixed. Use one of them."),
        ("kind", "tabular", "shipping.md is planned as tabular, but has not a table. Add it or change kind."),
        (
            "mermaid",
            False,
            "shipping.md is planned with no Mermaid diagram, but has 1. Remove it, or change the plan.",
        ),
        (
            "links_to",
            ["returns", "gone"],
            "shipping links_to 'gone', which is not planned. Use the id of a planned page.",
        ),
        (
            "links_to",
            ["returns", "returns-2024"],
            "shipping.md has no link to returns-2024.md, as links_to says. Add it or drop it here.",
        ),
        (
            "links_to",
            [],
            "shipping.md links to returns.md, which its links_to does not list. List it, or drop the link.",
        ),
    ],
)
def test_a_page_that_is_not_as_planned(kb: Kb, key: str, value: Any, said: str) -> None:
    kb.planned["pages"][2][key] = value
    errors = [error.split(": ", 2) for error in kb.errors()]
    assert [f"KB/structure.json:{line_of(kb, 2)}", said] in [error[1:] for error in errors]


def test_a_plan_that_is_no_json(kb: Kb) -> None:
    kb.plan = None
    kb.write()
    (kb.folder / "structure.json").write_text('{\n"pages": [\n}')
    report = kb.validate()
    assert kb.errors() == [
        "plan: KB/structure.json:3: invalid JSON at column 1: Expecting value. Mend the file."
    ] or kb.errors()[0].startswith("plan: KB/structure.json:3: invalid JSON at column 1: ")
    assert {check.skipped for check in report.checks if check.name == "rot"} == {"structure.json cannot be read"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[]",
            "expected an object with a list 'pages', found a list. Mend the file, or remove it: a plan is optional.",
        ),
        ('{"pages": [{"id": "x"}]}', "pages.0.filename: Field required. Mend it."),
    ],
)
def test_a_plan_of_another_shape(kb: Kb, text: str, said: str) -> None:
    kb.plan = None
    kb.write()
    (kb.folder / "structure.json").write_text(text)
    assert kb.errors() == [f"plan: KB/structure.json:1: {said}"]


def test_a_plan_of_filenames_alone_is_enough(kb: Kb) -> None:
    kb.plan = {"pages": [{"filename": name} for name in kb.pages]}
    report = kb.validate()
    assert report.findings == []
    assert {check.skipped for check in report.checks if check.name == "rot"} == {
        "structure.json names no version_pairs"
    }


def test_an_outdated_page_marked_current(kb: Kb) -> None:
    kb.planned["pages"][0]["status"] = "current"
    said = "returns-2024 is the outdated page of a version pair, but its status is 'current'."
    where = "version pairs: KB/structure.json:"
    errors = kb.errors()
    assert errors == [f"{where}{line_of(kb, 0)}: {said} Set it to 'outdated', or swap the pair."]


@pytest.mark.parametrize(
    ("page", "key", "value", "said"),
    [
        (1, "status", "outdated", "returns replaces returns-2024, but its status is 'outdated'. Set it to 'current'."),
        (1, "supersedes", None, "returns supersedes None, its version pair says 'returns-2024'. Make them agree."),
        (0, "version", "10", "version of returns-2024 is '10', of returns '2'. The current page must have the later."),
        (
            0,
            "effective_date",
            "2025-02-01",
            "effective_date of returns-2024 is '2025-02-01', of returns '2025-01-01'. "
            "The current page must have the later.",
        ),
    ],
)
def test_marks_of_a_pair(kb: Kb, page: int, key: str, value: Any, said: str) -> None:
    kb.planned["pages"][page][key] = value
    errors = kb.errors()
    assert errors == [f"version pairs: KB/structure.json:{line_of(kb, 0)}: {said}"]


OLD_SAYS, NEW_SAYS = "Send items back within 30 days.", "Send items back within 45 days."


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        (
            "returns-2024.md",
            OLD_SAYS,
            "",
            f"the page does not say {OLD_SAYS!r}. Write it word for word, or mend structure.json.",
        ),
        (
            "returns.md",
            NEW_SAYS,
            "",
            f"the page does not say {NEW_SAYS!r}. Write it word for word, or mend structure.json.",
        ),
        (
            "returns-2024.md",
            OLD_SAYS,
            f"{OLD_SAYS} {NEW_SAYS}",
            f"the page says {NEW_SAYS!r}, which belongs to returns.md only. Remove it.",
        ),
        (
            "returns.md",
            NEW_SAYS,
            f"{NEW_SAYS} {OLD_SAYS}",
            f"the page says {OLD_SAYS!r}, which belongs to returns-2024.md only. Remove it.",
        ),
    ],
)
def test_a_conflict_that_is_none(kb: Kb, name: str, old: str, new: str, said: str) -> None:
    kb.pages[name] = kb.pages[name].replace(old, new)
    assert kb.errors() == [f"version pairs: KB/{name}: conflict 'window': {said}"]


def test_statements_that_agree_and_pairs_without_any(kb: Kb) -> None:
    conflict = kb.planned["version_pairs"][0]["conflicts"][0]
    conflict["outdated_statement"] = conflict["current_statement"]
    said = f"conflict 'window': both statements are the same: {NEW_SAYS!r}. State the conflict."
    assert kb.errors() == [f"version pairs: KB/structure.json: {said}"]
    kb.planned["version_pairs"][0]["conflicts"] = []
    said = "the pair returns-2024 / returns lists no conflict. List what the two disagree on."
    assert kb.errors() == [f"version pairs: KB/structure.json: {said}"]


def test_outdated_pages_without_a_pair_and_pairs_without_a_page(kb: Kb) -> None:
    kb.planned["version_pairs"][0]["current"] = "gone"
    errors = kb.errors()
    assert errors == [
        "version pairs: KB/structure.json: a version pair names 'gone', which is not planned. Use a page's id.",
        f"version pairs: KB/structure.json:{line_of(kb, 1)}: returns supersedes 'returns-2024', "
        "but stands in no version pair. Add the pair.",
    ]


def test_a_pair_counts_once_where_ids_are_filenames(kb: Kb) -> None:
    old, new = sorted(kb.planned["pages"][:2], key=lambda page: page["status"], reverse=True)
    for each in (old, new):
        each["id"] = each["filename"]
    new["supersedes"] = old["id"]
    kb.planned["version_pairs"][0] |= {"outdated": old["id"], "current": new["id"]}
    assert [error for error in kb.errors() if "version pairs" in error] == []


def test_a_pair_of_a_page_with_itself(kb: Kb) -> None:
    kb.planned["version_pairs"][0]["outdated"] = "returns.md"
    said = "returns stands in a version pair with itself. Name the page that replaced it."
    errors = kb.errors()
    assert f"version pairs: KB/structure.json:{line_of(kb, 1)}: {said}" in errors
    assert not any("2 version pairs" in error for error in errors)


def test_too_much_and_too_little_rot(kb: Kb) -> None:
    del kb.planned["rot"]
    said = "66.7% of the pages stand in version pairs, planned are about 10% (5.0% to 15.0%)."
    advice = "Change the pairs, or plan another share with the key 'rot'."
    assert kb.errors() == [f"rot: KB/structure.json: {said} {advice}"]


SHIPPED = Path(__file__).parents[4] / "data" / "kb"


@pytest.mark.skipif(not (SHIPPED / "queries.jsonl").is_file(), reason="the queries are being written")
def test_the_shipped_data_is_sound() -> None:
    golden = SHIPPED.parents[1] / "test_retrieval_golden" / "golden.json"
    report = validate(SHIPPED, SHIPPED / "queries.jsonl", golden if golden.is_file() else None)
    assert [finding.line() for finding in report.findings if finding.level == "error"] == []
    assert [finding.line() for finding in report.findings if "no evidence" in finding.message] == []
