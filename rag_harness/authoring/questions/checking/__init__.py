"""Checks questions against documents that have changed: which are affected, how, and what can replace their evidence.

read_asked(file)            the gold of a file of questions, or of a golden set
check(asked, collection)    the findings for each question
mended(file, report)        the file with safe corrections made, and the rest marked
"""

from __future__ import annotations

from rag_harness.authoring.questions.checking.findings import Finding, Proposal, Report
from rag_harness.authoring.questions.checking.gold_questions import QuestionWithGold, read_asked
from rag_harness.authoring.questions.checking.mending import mended
from rag_harness.authoring.questions.checking.question_checks import check
from rag_harness.authoring.questions.checking.said import report_as_json, report_lines

__all__ = [
    "Finding",
    "Proposal",
    "QuestionWithGold",
    "Report",
    "check",
    "mended",
    "read_asked",
    "report_as_json",
    "report_lines",
]
