"""What a reader has to know first about a run: which is best, how sure that is, why answers are wrong, what to do.

The figures are computed once, here, from tables, verdicts and causes. The terminal, the report's first screen and the
comment on a pull request show the same ones. Public: the names below. Begin reading with ``brief.py``.
"""

from __future__ import annotations

from rag_harness.report.brief.brief import Brief, brief_of
from rag_harness.report.brief.gates_state import GatesState
from rag_harness.report.brief.leads import Field, Lead
from rag_harness.report.brief.sentences import Sentence, first_sentences
from rag_harness.report.brief.shortfalls import Shortfall

__all__ = ["Brief", "Field", "GatesState", "Lead", "Sentence", "Shortfall", "brief_of", "first_sentences"]
