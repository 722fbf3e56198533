"""Faults planted in answers and contexts alone: nobody knows an index, and no model judges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from rag_harness.core.types import Case, Expectation, PipelineOutput, Query
from rag_harness.diagnosis.explainer import Explainer
from rag_harness.diagnosis.reruns import RerunSupport, running
from rag_harness.diagnosis.symptoms import reranks
from rag_harness.pipelines.user_pipelines import declared, output_of
from rag_harness.records.causes import CauseLine
from tests.unit.derived.attribution.made_up import CASES, OLD, PAGES, THINGS, Pages, chunks_of, parts
from tests.unit.derived.attribution.test_planted_faults import rows_of
from tests.unit.tables import write_run

CHUNKS = [chunk for chunk in chunks_of(PAGES) if chunk.doc_id != OLD]
Said = tuple[str, list[tuple[str, str]]]
"""An answer, and the text and source of each context."""


@dataclass
class Alone:
    """Returns an answer and contexts, as ``fault`` makes them of the number of a question."""

    fault: Callable[[int], Said]

    async def answer(self, query: Query) -> PipelineOutput:
        answer, contexts = self.fault(int(query.query_id[1:]))
        said = [{"text": text, "source": source} for text, source in contexts]
        return output_of({"answer": answer, "contexts": said}, "the pipeline")


def page(n: int) -> list[tuple[str, str]]:
    """Return the chunks of the page that answers question ``n``."""
    return [(chunk.text, chunk.doc_id) for chunk in CHUNKS if chunk.doc_id == f"{THINGS[n]}.md"]


def found(output: Path, fault: Callable[[int], Said], cases: Sequence[Case] = CASES) -> list[CauseLine]:
    made = declared("x1", Alone(fault), "")
    rows = rows_of(made)
    assert not any(map(reranks, rows))
    write_run(output, rows, cases)
    with running(output, parts(output)) as runs:
        return Explainer(output, RerunSupport(lambda _: made, lambda _: "aaaa", lambda _: Pages()), runs).every()


def right(n: int) -> str:
    return CASES[n].ground_truth


def stale(n: int) -> Said:
    old = str(31 + n), str(11 + n)
    return right(n).replace(*old), [(text.replace(*old), source) for text, source in page(n)]


def of_another(n: int) -> Said:
    return right((n + 1) % 6), page((n + 1) % 6)


def one_wrong_chunk(n: int) -> Said:
    return f"A {THINGS[n]} leaves at noon.", [(f"Parcels of week {n} leave at noon.", "noon.md")]


def split(n: int) -> Said:
    title, made, allowed = page(n)
    return "I don't know.", [title, made, (allowed[0][:32], allowed[1])]


def cut_where_it_happens(n: int) -> Said:
    """The one chunk of the right page ends inside a sentence, each at another place."""
    begun, _, allowed = PAGES[n].text.strip().rpartition("\n\n")
    sent = " ".join(allowed.split()[: 6 - n])
    return "I don't know.", [(sent if n % 2 else f"{begun}\n\n{sent}", page(n)[0][1])]


def another_page_above(n: int) -> Said:
    other = (n + 1) % 6
    return f"It is {31 + other} days.", [page(other)[2], page(n)[2]]


def drops(n: int) -> Said:
    other = f"A {THINGS[n]} of ash and linen comes with thick woollen covers."
    return f"The {THINGS[n]} comes with thick woollen covers.", [(other, "other.md"), *page(n)]


FAULTS: list[tuple[Callable[[int], Said], str, str]] = [
    (stale, "the index has another version of the page", "index the documents again"),
    (of_another, "the context of another question", "mixed up"),
    (one_wrong_chunk, "ranked too low", "orders"),
    (lambda n: ("Please ask our friendly team.", page(n)), "the same answer to every question", "cache"),
    (
        lambda n: ("Sie dürfen es innerhalb der Frist zurückgeben, die in den Unterlagen steht.", page(n)),
        "the same answer to every question, in another language",
        "question",
    ),
    (
        lambda n: (f"Sie dürfen es bis zu {31 + n} Tage nach der Lieferung wieder zurückgeben.", page(n)),
        "answers in another language",
        "language",
    ),
    (lambda n: ("I don't know.", page(n)[1:2] * 4), "the same chunk several times", "drop chunks"),
    (lambda n: ("I don't know.", page(n)[:2]), "ranked too low", "orders"),
    (lambda n: (right((n + 1) % 6), page(n)), "the answer to another question", "mixed up"),
    (cut_where_it_happens, "cut by a chunk border", "overlap"),
    (another_page_above, "a wrong page ranked above", "rank the right page first"),
    (split, "cut by a chunk border", "overlap"),
    (drops, "not read where it stood", "prompt as sent"),
    (lambda n: (f"Most shops grant {90 + n} working weeks.", page(n)), "not from its context", "alone"),
    (lambda n: ("I don't know.", page(n)), "wrong refusal", "soften"),
    (lambda n: (CASES[n].query.text, page(n)), "repeats the question", "question"),
    (lambda n: (f"Error 503: upstream {n} failed", page(n)), "an error message", "log"),
]


@pytest.mark.parametrize(("fault", "detail", "remedy"), FAULTS)
def test_a_fault_is_named_without_index_and_judge(
    tmp_path: Path, fault: Callable[[int], Said], detail: str, remedy: str
) -> None:
    lines = found(tmp_path, fault)
    assert [line.detail for line in lines] == [detail] * len(CASES)
    assert all(remedy in line.remedy for line in lines)
    assert not any("rerank" in line.remedy or "--rag-" in line.remedy for line in lines)


def test_an_answer_in_another_language_is_no_noise_where_the_rerun_is_in_it_too(tmp_path: Path) -> None:
    """Expectations that fail too have an answer with the right figures run again."""
    cases = [replace(case, expect=(Expectation("contains", "within"),)) for case in CASES]
    said = (
        "Sie dürfen es wieder zurückgeben (return), und zwar bis zu {} Tage (days) nach der Lieferung (delivery): {}."
    )
    lines = found(tmp_path, lambda n: (said.format(31 + n, THINGS[n]), page(n)), cases)
    assert [line.detail for line in lines] == ["answers in another language"] * len(CASES)


def test_healthy_answers_have_no_cause(tmp_path: Path) -> None:
    assert found(tmp_path, lambda n: (right(n), page(n))) == []


def test_a_context_that_is_there_for_all_is_no_fault_where_it_has_the_evidence(tmp_path: Path) -> None:
    every = [(chunk.text, chunk.doc_id) for chunk in CHUNKS]
    lines = found(tmp_path, lambda n: (f"Most shops grant {90 + n} working weeks.", every))
    assert {line.detail for line in lines} == {"not from its context"}


def test_one_context_for_all_is_named_where_it_lacks_the_evidence(tmp_path: Path) -> None:
    lines = found(tmp_path, lambda n: (f"It is {90 + n} weeks.", page(0)))
    assert {line.detail for line in lines if line.query_id != "q0"} == {"the same context for every question"}
