"""Questions held against documents that have changed since: which are affected, how, and what could take their place.

read_asked(file)            what a file of questions, or a golden set, says of its gold
check(asked, collection)    findings, question by question
mended(file, report)        the file with what is safe to mend, and the rest marked
"""

from __future__ import annotations

from rag_harness.authoring.questions.checking.asked import Asked, read_asked
from rag_harness.authoring.questions.checking.checks import check
from rag_harness.authoring.questions.checking.findings import Finding, Proposal, Report
from rag_harness.authoring.questions.checking.mending import mended
from rag_harness.authoring.questions.checking.said import as_json, lines

__all__ = ["Asked", "Finding", "Proposal", "Report", "as_json", "check", "lines", "mended", "read_asked"]
