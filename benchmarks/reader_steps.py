"""Would steps that code can take make E4 better than E3? It was tried, and they do not: this program shows the figures.

    pytest -m "e3 or t1" --rag-mode=replay --rag-output=/tmp/steps
    python benchmarks/reader_steps.py /tmp/steps

The embedded reader answers E4's prompt as it answers E3's. What was tried, on the contexts of E3:

- parts: the rules of ``subquestions`` split the question, and each part is looked up by itself;
- words: a further sentence is quoted for a single word that is left (0.05 of the question, not 0.15);
- checks: a part is declined if the evidence lacks its product code, or has no price, date or number where it asks
  for one;
- and, as a control without any step, E3's reader with a lower threshold, which only declines less.

The halves were written down before any answer was looked at. A question belongs to a page: the first one, by its name,
of those that it needs; a negative one to the nearest page. The SHA-256 of that name decides: even, and the numbers may
be fitted to the question (83); odd, and it is held out (117). The contexts of ``t1`` are of another domain.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

import numpy as np

from rag_harness.core.text.refusals import declines
from rag_harness.core.types import Case, Chunk, Hit
from rag_harness.evaluation.measures.answers import AbstentionRate, CitationRecall, FalseAbstentionRate, TokenF1
from rag_harness.evaluation.measures.measure import RowMeasure
from rag_harness.models import reader
from rag_harness.models.prompts import load_prompts
from rag_harness.models.reader import MIN_SUPPORT, Findings, gather, reader_answer
from rag_harness.models.reader_prompt import BOOSTS, Prompt, QuestionTerms, read_question
from rag_harness.records.cases import CaseFile
from rag_harness.records.manifest import read_manifest
from rag_harness.records.row import ExperimentResult, rows_in
from rag_harness.stats import difference_interval, permutation_test
from rag_harness.studies.retail import subquestions
from rag_harness.tables.summary import table

KIND_FOUND = 0.5
MEASURES = (TokenF1(), CitationRecall(), FalseAbstentionRate())


@dataclass(frozen=True, slots=True)
class Design:
    """A way to read. ``gain``: what one more quote must add, as a share of the question."""

    name: str
    parts: bool = False
    gain: float = reader.MIN_GAIN
    checked: bool = False
    threshold: float = MIN_SUPPORT


AS_IT_IS = Design("E3")
DESIGNS = (
    Design("parts", parts=True),
    Design("parts, checks", parts=True, checked=True),
    Design("parts, words", parts=True, gain=0.05),
    Design("parts, words, checks", parts=True, gain=0.05, checked=True),
    Design("control: threshold 0.56", threshold=0.56),
)


def answer(case: Case, row: ExperimentResult, design: Design) -> ExperimentResult:
    """Return the row with what a reader of the design answers from its context."""
    hits = [Hit(_chunk(each.chunk_id, each.text), each.score, n) for n, each in enumerate(row.retrieved_chunks, 1)]
    messages = load_prompts("e4").messages(case.query.text, hits)
    with ExitStack() as patches:
        patches.enter_context(patch.object(reader, "MIN_GAIN", design.gain))
        patches.enter_context(patch.object(reader, "gather", lambda prompt, _: by_steps(prompt, design)))
        said = reader_answer([{"role": each.role, "content": each.content} for each in messages])
    changed = {"llm_answer": said.answer, "citations": said.citations, "abstained": declines(said.answer)}
    return row.model_copy(update=changed)


def _chunk(chunk_id: str, text: str) -> Chunk:
    return Chunk(chunk_id=chunk_id, doc_id=chunk_id.partition("#")[0], text=text)


def by_steps(prompt: Prompt, design: Design) -> Findings:
    """Return the evidence of all parts that have enough of it, as that of one question."""
    searches = subquestions(prompt.question)
    # Two texts are the question and its versions: that is no part.
    texts = searches[1:] if design.parts and len(searches) > 2 else [prompt.question]
    read = [(question := read_question(text), gather(replace(prompt, question=text), question)) for text in texts]
    enough = [
        found
        for question, found in read
        if found.support >= design.threshold and not (design.checked and lacks(question, found))
    ]
    chosen = {candidate.unit: candidate for found in enough for candidate in found.chosen}
    return replace(read[0][1], chosen=tuple(chosen.values()), support=float(bool(chosen)))


def lacks(question: QuestionTerms, found: Findings) -> bool:
    """Return whether the evidence lacks a product code of the question, or the kind of token that it asks for."""
    codes = [key for key, boost in question.boosts.items() if boost >= BOOSTS["code"]]
    no_kind = bool(question.kind) and found.covered.kind < KIND_FOUND
    return no_kind or not all(found.covered.share.get(key) for key in codes)


def fitted(case: Case, row: ExperimentResult) -> bool:
    """Return whether numbers may have been fitted to a question."""
    page = min(case.context_reference, default=str(row.metadata.get("nearest_page")))
    return int(hashlib.sha256(page.encode()).hexdigest(), 16) % 2 == 0


def kinds(case: Case, row: ExperimentResult) -> list[str]:
    """Return the kinds of a question: its type, and whether versions of a page disagree on it."""
    return [case.query_type, *["versions"] * bool(row.metadata.get("version_conflict"))]


def compared(asked: Sequence[tuple[Case, ExperimentResult]], kind: str) -> None:
    """Print each design's means on questions of a kind, and the difference to E3 with its interval and p."""
    of = [each for each in asked if kind in kinds(*each)]
    shown: list[tuple[str, ...]] = [(kind, "measure", "n", "E3", "now", "difference", "95 %", "p", "differ")]
    before = [answer(case, row, AS_IT_IS) for case, row in of]
    for design in DESIGNS:
        now = [answer(case, row, design) for case, row in of]
        for measure in (AbstentionRate(),) if kind == "negative" else MEASURES:
            old, new = ([_value(measure, *each) for each in zip(of, rows, strict=True)] for rows in (before, now))
            gains = [after - earlier for after, earlier in zip(new, old, strict=True)]
            low, high = difference_interval(gains, (-1, 1))
            means = f"{np.mean(old):.3f}", f"{np.mean(new):.3f}", f"{np.mean(gains):+.3f}", f"[{low:+.3f}, {high:+.3f}]"
            more = f"{permutation_test(new, old):.3f}", str(np.count_nonzero(gains))
            shown.append((design.name, measure.called, str(len(of)), *means, *more))
    print("\n".join(table(shown)), end="\n\n")


def _value(measure: RowMeasure, asked: tuple[Case, ExperimentResult], row: ExperimentResult) -> float:
    return measure.score(asked[0], row).value or 0.0


def asked_of(output: Path, experiment: str) -> list[tuple[Case, ExperimentResult]]:
    """Return the questions of an experiment with their rows."""
    suite = read_manifest(output).suites[experiment]
    cases = CaseFile(output, suite.data)
    return [(cases[cases.position[row.query_id]].case, row) for row in rows_in(output / suite.file)]


def main(output: Path) -> None:
    """Print a table for each kind of question: of each half of the study, and of the textbook."""
    study, book = asked_of(output, "e3"), asked_of(output, "t1")
    for title, asked in (
        ("fitted to", [each for each in study if fitted(*each)]),
        ("held out", [each for each in study if not fitted(*each)]),
        ("the textbook", [each for each in book if not each[0].query.inputs]),
    ):
        print(f"{title}: {len(asked)} questions\n")
        for kind in dict.fromkeys(kind for each in asked for kind in kinds(*each)):
            compared(asked, kind)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
