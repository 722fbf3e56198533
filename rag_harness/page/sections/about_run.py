"""What a run was: where its answers come from, models, judges and data, and what could not be measured."""

from __future__ import annotations

from collections.abc import Sequence

from rag_harness.page.content import Block, Prose, Section
from rag_harness.page.run import Run
from rag_harness.page.sections.made_of import run_facts
from rag_harness.page.sections.unmeasured import became_of, errors, unmeasured
from rag_harness.report.provenance import provenance_lines


def about_run(runs: Sequence[Run]) -> Section:
    """Return what the first run was, and what became of its trials."""
    run = runs[0]
    said = provenance_lines(run.selected, run.manifest.date)
    blocks: list[Block] = [Prose(f"{line[0].upper()}{line[1:]}.") for line in said]
    blocks += run_facts(run)
    blocks += [block for block in (became_of(run), unmeasured(run), errors(run)) if block is not None]
    return Section("run", "The run", blocks)
