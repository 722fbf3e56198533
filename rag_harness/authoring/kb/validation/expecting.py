"""Checks what queries demand of their answers: that it can be read, and that a right answer can keep to it."""

from __future__ import annotations

from rag_harness.authoring.kb.owed import wrongly_expected
from rag_harness.authoring.kb.validation.material import Material
from rag_harness.authoring.kb.validation.question_files import Read
from rag_harness.authoring.kb.validation.report import CheckResult
from rag_harness.dataset.queries import QueryLine
from rag_harness.expectations import expectations_of


def expectations(material: Material, read: Read[QueryLine]) -> CheckResult:
    """Return the check of the expectations of all queries."""
    documents = {name: page.text for name, page in material.pages.items()}
    check, number = CheckResult("expectations"), 0
    for line, query in read.entries:
        if query.scenario is not None:
            reached = query.scenario.reached
            number += len(reached)
            for said in wrongly_expected(reached, query.scenario.ground_truth, query.is_answerable, documents):
                check.error(read.at(line), f"{query.query_id}: reached: {said}")
        if query.expect == ():
            continue
        found, problems = expectations_of(query.expect)
        number += len(found)
        for problem in problems:
            end = "" if problem.endswith("?") else "."
            check.error(read.at(line), f"{query.query_id}: expect: {problem}{end}")
        for said in wrongly_expected(found, query.ground_truth, query.case().answerable, documents):
            check.error(read.at(line), f"{query.query_id}: expect: {said}")
    check.checked = f"{number} expectations"
    return check
