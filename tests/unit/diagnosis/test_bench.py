"""What can be done with each experiment of a run."""

from __future__ import annotations

from typing import Any

import pytest

from rag_harness.core.errors import RagHarnessError
from rag_harness.core.protocols import Experiment
from rag_harness.diagnosis.corpus_view import CorpusView
from rag_harness.diagnosis.reruns import BLACK_BOX, CHANGED, NOT_KNOWN, KnownExperiment, RerunSupport, no_reruns
from tests.unit.diagnosis.made_up import PAGES, Pages, Pipeline, chunks_of, experiment

CHUNKS = chunks_of(PAGES)


def subject(made: Experiment | None, now: str = "aaaa") -> KnownExperiment:
    return RerunSupport(lambda _: made, lambda _: now, lambda _: Pages()).subject("x1", {"aaaa", "bbbb"})


def shelf_of(made: Experiment) -> CorpusView:
    found = subject(made).shelf
    assert found is not None
    return found


def test_what_is_known_of_an_experiment_that_is_as_it_was() -> None:
    made = experiment(Pipeline(CHUNKS))
    found = subject(made)
    assert (found.experiment, found.why_not, found.limits) == (made, "", "")
    known = shelf_of(made)
    assert known.knows_index
    assert list(known.chunks.values()) == CHUNKS
    assert list(known.documents.values()) == PAGES


def test_a_black_box_has_pages_and_an_index_that_nobody_knows() -> None:
    made = experiment(Pipeline(CHUNKS), answer_from=None, chunks=None)
    assert subject(made).limits == BLACK_BOX
    assert not shelf_of(made).knows_index
    assert list(shelf_of(made).documents.values()) == PAGES


def test_of_an_experiment_that_has_changed_nothing_is_known() -> None:
    assert subject(experiment(Pipeline(CHUNKS)), now="cccc") == KnownExperiment(why_not=CHANGED)
    assert subject(experiment(Pipeline(CHUNKS)), now="cccc").limits == CHANGED


def test_of_one_without_a_version_nobody_knows_whether_it_has_changed() -> None:
    made = experiment(Pipeline(CHUNKS), is_reusable=False)
    assert subject(made, now="cccc").limits == NOT_KNOWN
    assert subject(made).limits == ""


def test_an_experiment_that_is_not_registered_and_one_that_cannot_be_built() -> None:
    assert subject(None) == KnownExperiment(why_not="x1 is no registered experiment, so nothing of it is run again")
    assert no_reruns().subject("x1", ["aaaa"]).limits == "x1 cannot be built: nothing was asked for but rows and gold"

    def broken(_: str) -> Experiment | None:
        raise OSError("no such folder")

    bench = RerunSupport(broken, lambda _: "aaaa", lambda _: Pages())
    assert bench.subject("x1", ["aaaa"]) == KnownExperiment(why_not="x1 cannot be built: no such folder")


@pytest.mark.parametrize("error", [RagHarnessError("no pages"), ValueError("somebody else's")])
def test_an_index_that_cannot_be_read_is_not_known_and_the_rest_is(error: Exception) -> None:
    def broken() -> Any:
        raise error

    made = experiment(Pipeline(CHUNKS), chunks=broken)
    assert subject(made) == KnownExperiment(made)
