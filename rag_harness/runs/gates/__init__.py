"""Thresholds on aggregates: parsed from one line of text, judged on the values of a finished run. Pure.

    NAME[slice]: MEASURE OP RIGHT

    golden: recall@10 >= 0.95
    e3[query_type=multi_hop]: recall@5 >= 0.7
    e3: recall@5 >= e2 + 0.01
    e3: recall@5 >= baseline - 0.02
    e3: faithfulness~calibrated >= 0.8           as people would say, by a saved calibration of the judge
    recall@k >= 0.95                             golden; k is the option's
    e4: g_mean >= e3 - 0.02 @95%                 passed or failed only where a 95 % bound of the value says so
    e3: recall@5 > e2 @95%                       better: by a paired test
    e3: recall@5 > e2 @95% robust                better, also where a difference is too rare to be seen
    e3: pass^3(token_f1>=0.5) >= 0.9 @95%        all of 3 answers to a question are right
    e3: recall@5 >= 0.8 else switch to e2        the text after "else" is printed where the gate fails
    xfail e3: recall@5 >= 0.9 -- small index     known to fail: to pass is the failure

Every pytest session of a suite with gates imports this package, so it imports neither NumPy nor pydantic at first. The
plugin, notebooks, tables, page and diagnosis call it. It reads no file of results: callers pass the scores. Begin
reading with ``grammar.py``.
"""

from __future__ import annotations

from rag_harness.runs.gates.configuration import KnownNames, check_gate
from rag_harness.runs.gates.evidence import GateRules
from rag_harness.runs.gates.grammar import BASELINE, Gate, Reference, parse_gate
from rag_harness.runs.gates.judging import SuiteScores, judge
from rag_harness.runs.gates.verdict import Verdict, together, verdict_lines

__all__ = [
    "BASELINE",
    "Gate",
    "GateRules",
    "KnownNames",
    "Reference",
    "SuiteScores",
    "Verdict",
    "check_gate",
    "judge",
    "parse_gate",
    "together",
    "verdict_lines",
]
