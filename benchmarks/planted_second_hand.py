"""Faults planted by somebody who did not write the rules of the diagnosis: see planted_second_hand/README.md.

    python benchmarks/planted_second_hand.py [--suite retail|ferry] [--reader simulated|embedded] [--fault NAME]

A pipeline is BM25, a context of ``K`` chunks that it reports, a prompt, a reader and an answer. A fault alters one of
these, or the gold. What the reader knows is the text of the prompt. The same trials are explained as ``rag-harness
explain`` does, which is told nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zlib import crc32

from planted import answered, explained, with_gold

from rag_harness.core.protocols import ChatModel, Experiment
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.types import Case, Completion, Hit, Message, PipelineOutput, Query
from rag_harness.evaluation.measures.correctness import needed_quotes, rightness
from rag_harness.models.prompts import Prompts, load_prompts
from rag_harness.pipelines.parts import RunParts, read_answer, response_format
from rag_harness.pipelines.trace import Trace
from rag_harness.records.scores import CauseLine
from rag_harness.retrieval.bm25 import Bm25Index

HERE = Path(__file__).parent / "planted_second_hand"
ROOT = HERE.parents[1]
FERRY = {"kb_dir": str(HERE / "ferry"), "chunk_size": 160, "chunk_overlap": 32}
SUITES: Mapping[str, tuple[dict[str, Any], int]] = {"retail": ({}, 6), "ferry": (FERRY, 5)}
"""Settings of each suite, and how many chunks its prompt has."""
CANDIDATES = 20
ABOUT_FERRIES = (
    'You answer passengers of a ferry line, from the context alone, and cite it as [Source 1]. Say "I don\'t know" if '
    'it is not enough. Reply as JSON: {"answer": "..."}'
)

# ---- Faults, with what is right about each -------------------------------------------------------------------------

SHORT = ("Retrieval Miss", "the page came without the passage", "send chunks whole")
UNREAD = ("Logic Failure", "not read where it stood", "prompt as sent")
CUT = ("Logic Failure", "cut short", "longer answers")
SILENT = ("Undetermined", "the pipeline does not say what it looked up", "PipelineOutput")
REFUSAL = ("Logic Failure", "wrong refusal", "soften")
LOST = ("Retrieval Miss", "not found", "candidates")
GOLD = ("Gold Doubtful", "", "mend")
Right = tuple[str, str, str]
"""Cause, detail (empty: any), and words that the remedy has."""
FAULTS: Mapping[str, Sequence[Right]] = {
    "prompt_first": [UNREAD],
    "prompt_middle": [UNREAD],
    "prompt_second": [UNREAD],
    "prompt_chars": [UNREAD, SHORT],
    "prompt_tail": [UNREAD],
    "cut_120": [CUT],
    "cut_120_stop": [CUT],
    "cut_comma": [CUT],
    "cut_number": [CUT],
    "cut_number_length": [CUT],
    "cut_sentence_max": [CUT],
    "service_tail": [SHORT],
    "service_middle": [SHORT],
    "service_no_ids": [SHORT],
    "no_text": [SHORT],
    "gold_date": [GOLD],
    "gold_number": [GOLD],
    "gold_unit": [GOLD],
    "gold_row": [GOLD],
    "gold_page": [GOLD],
    "bare_string": [SILENT],
    "empty_output": [SILENT],
    "empty_hits": [LOST, ("Retrieval Miss", "no retriever", "give it a context")],
    "refuse_most": [REFUSAL],
    "refuse_words": [REFUSAL],
    "page_lost": [LOST],
    "half_page": [("Retrieval Miss", "not in the index", "add the page")],
}
NOT_IN_THE_SHARE = frozenset({"half_page", "gold_page"})
NEW_KINDS = (
    ("Logic Failure", "cut short"),
    ("Gold Doubtful", ""),
    SHORT[:2],
    UNREAD[:2],
    SILENT[:2],
)
"""What no healthy answer may be called."""
WHOLE_ANSWER = {"stop": "stop", "length": "length", "max": "max_tokens"}


def prompted(fault: str, hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits that the prompt's template has of those that the context reports."""
    hits = list(hits)
    middle = len(hits) // 2
    if fault == "prompt_first":
        return hits[1:]
    if fault == "prompt_middle":
        return [hit for place, hit in enumerate(hits) if place not in (middle - 1, middle)] if len(hits) > 2 else hits
    if fault == "prompt_second":
        return hits[::2]
    if fault == "prompt_chars":
        return [_with_text(hit, hit.chunk.text[:220]) for hit in hits]
    if fault == "prompt_tail":
        left, cut = 1500, []
        for hit in hits:
            cut.append(_with_text(hit, hit.chunk.text[: max(left, 0)]))
            left -= len(hit.chunk.text)
        return [hit for hit in cut if hit.chunk.text]
    return hits


def sent(fault: str, hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits as a service sends them."""
    if fault == "service_tail":
        return [_with_text(hit, hit.chunk.text[-180:]) for hit in hits]
    if fault == "service_middle":
        return [_with_text(hit, _without_middle(hit.chunk.text)) for hit in hits]
    if fault == "service_no_ids":
        return [_with_text(hit, hit.chunk.text[:180], f"hit-{hit.rank}") for hit in hits]
    if fault == "no_text":
        return [_with_text(hit, "") for hit in hits]
    return [] if fault == "empty_hits" else list(hits)


def shortened(fault: str, said: str) -> str:
    """Return an answer as it arrives."""
    if re.search(r"\bI don.t know\b", said):
        return said
    if fault.startswith("cut_120"):
        return said[:120].rstrip()
    if fault == "cut_comma":
        return said.split(",", maxsplit=1)[0]
    if fault.startswith("cut_number"):
        found = re.search(r"\d(?=\d)", re.sub(r"\[Sources?[^\]]*\]", lambda mark: "#" * len(mark[0]), said))
        return said[: found.end()] if found else said
    if fault == "cut_sentence_max":
        words = said.split()[:8]
        ends = [place for place, word in enumerate(words[4:], 5) if word.endswith(".")]
        return " ".join(words[: ends[0]] if ends else words)
    return said


def _with_text(hit: Hit, text: str, doc_id: str = "") -> Hit:
    name = {"doc_id": doc_id, "chunk_id": doc_id, "metadata": {}, "section": ()} if doc_id else {}
    return replace(hit, chunk=replace(hit.chunk, text=text, **name))  # type: ignore[arg-type]


def _without_middle(text: str) -> str:
    return text if len(text) <= 180 else f"{text[:90]} ... {text[-90:]}"


# ---- Readers and pipeline ------------------------------------------------------------------------------------------


class Knowing:
    """Stands for a good model: it knows the right gold, and says what stands in its prompt."""

    model = "knowing"

    def __init__(self, cases: Sequence[Case]) -> None:
        self._cases = {case.query.text: case for case in cases}

    async def complete(
        self,
        messages: Sequence[Message],
        response_format: Mapping[str, Any] | None = None,  # noqa: ARG002
    ) -> Completion:
        context, _, question = messages[-1].content.rpartition("\n\nQuestion: ")
        said = self._said(self._cases[question.strip()], context)
        return Completion(json.dumps({"answer": said}), self.model, _NO_USAGE, 1.0)

    def _said(self, case: Case, context: str) -> str:
        style = crc32(case.query.query_id.encode()) % 3
        sources = [_folded(each) for each in context.split("[Source ")[1:]]
        found = [quote for quote in needed_quotes(case) if any(_folded(quote) in each for each in sources)]
        if not case.answerable or not found:
            return "I don't know." if style else "I don't know: the sources don't say anything about this."
        if len(found) < len(needed_quotes(case)):
            return f"The sources say only this: {_plain(found[0])}"
        if style == 0:
            return case.ground_truth
        if style == 1:
            return f"According to the pages that I was given: {case.ground_truth}"
        place = next(n for n, each in enumerate(sources, 1) if _folded(found[0]) in each)
        return f"{case.ground_truth} [Source {place}]"


_NO_USAGE = PipelineOutput(None).usage  # type: ignore[arg-type]


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[*|_]+", " ", text).split())


def _folded(text: str) -> str:
    return " ".join(text.split())


@dataclass
class Faulty:
    """A pipeline with one fault; an empty name is none."""

    fault: str
    chat: ChatModel
    prompts: Prompts
    search: Callable[[str], list[Hit]]
    k: int
    dropped: frozenset[str] = frozenset()

    async def answer(self, query: Query) -> Any:
        hits = [hit for hit in self.search(query.text) if hit.chunk.doc_id not in self.dropped]
        hits = sent(self.fault, [replace(hit, rank=rank) for rank, hit in enumerate(hits, 1)])
        output = await self._read(query, Trace(retrieved=hits, context=hits[: self.k]))
        if self.fault == "bare_string":
            return output.answer.text
        return replace(output, retrieved=(), context=()) if self.fault == "empty_output" else output

    async def answer_from(self, query: Query, hits: Sequence[Hit]) -> PipelineOutput:
        return await self._read(query, Trace(retrieved=list(hits), context=list(hits)))

    async def _read(self, query: Query, trace: Trace) -> PipelineOutput:
        messages = self.prompts.messages(query.text, prompted(self.fault, trace.context))
        completion = await trace.complete(_Altered(self, query), messages, response_format(reasoning=False))
        answer = read_answer(completion.text, len(trace.context), reasoning=False)
        return trace.output(replace(answer, abstained=answer.abstained and self.fault != "refuse_words"))


@dataclass
class _Altered:
    """The chat model, and what becomes of its answer."""

    pipeline: Faulty
    query: Query

    @property
    def model(self) -> str:
        return self.pipeline.chat.model

    async def complete(
        self, messages: Sequence[Message], response_format: Mapping[str, Any] | None = None
    ) -> Completion:
        fault = self.pipeline.fault
        whole = await self.pipeline.chat.complete(messages, response_format)
        said = json.loads(whole.text)["answer"]
        arrives = shortened(fault, said)
        if fault.startswith("refuse") and crc32(self.query.query_id.encode()[::-1]) % 3:
            words = "This can't be answered from the information provided."
            arrives = words if fault == "refuse_words" else "I'm sorry, I don't know."
        reason = WHOLE_ANSWER.get(fault.rpartition("_")[2], "") if arrives != said or fault == "cut_120_stop" else ""
        return replace(whole, text=json.dumps({"answer": arrives}), finish_reason=reason)


# ---- Suites, and gold that is wrong --------------------------------------------------------------------------------


class Suite:
    """Questions, pages and index of one suite."""

    def __init__(self, name: str, reader: str) -> None:
        settings, self.k = SUITES[name]
        self.parts = RunParts(load_settings({"mode": "auto", **settings}, rootdir=ROOT))
        self.data = self.parts.data("")
        self.cases = list(self.data.cases)
        self.chunks = self.parts.retrieval(data="").chunks
        shipped = load_prompts("e2")
        self.prompts = shipped if name == "retail" else Prompts(ABOUT_FERRIES, shipped.user)
        self.chat: Any = Knowing(self.cases) if reader == "simulated" else self.parts.chat()

    def experiment(self, fault: str) -> Experiment:
        chunks = self._first_halves() if fault == "half_page" else self.chunks
        index, found = Bm25Index(lambda: chunks), dict[str, list[Hit]]()

        def search(text: str) -> list[Hit]:
            if text not in found:
                found[text] = index.search(text, CANDIDATES)
            return found[text]

        faulty = Faulty(fault, self.chat, self.prompts, search, self.k, self._dropped(fault))
        if fault in ("bare_string", "empty_output", "service_middle", "service_no_ids"):
            return Experiment("x1", faulty)
        return Experiment("x1", faulty, answer_from=faulty.answer_from, chunks=lambda: chunks)

    def _dropped(self, fault: str) -> frozenset[str]:
        asked = Counter(page for case in self.cases for page in {one.filename for one in case.evidence})
        if fault in ("bare_string", "empty_output"):
            return frozenset(sorted(asked)[::3])
        return frozenset({max(sorted(asked), key=asked.__getitem__)}) if fault == "page_lost" else frozenset()

    def _first_halves(self) -> list[Any]:
        lengths = {page.doc_id: len(page.text) for page in self.data.documents}
        return [chunk for chunk in self.chunks if chunk.end <= lengths[chunk.doc_id] / 2 or chunk.start == 0]


MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
DAYS = ["Mondays?", "Tuesdays?", "Wednesdays?", "Thursdays?", "Fridays?", "Saturdays?", "Sundays?"]
UNITS = {
    "minutes": "hours",
    "hours": "days",
    "days": "weeks",
    "day": "week",
    "weeks": "months",
    "months": "years",
    "years": "months",
    "kg": "g",
    "km": "metres",
    "metres": "feet",
    "cm": "mm",
    "m": "cm",
    "%": "per mille",
    "tonnes": "kg",
    "children": "schools",
    "points": "euros",
    "W": "kW",
    "litres": "gallons",
}
NUMBERS = ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twelve"]


def altered(fault: str, case: Case, following: Case) -> Case:
    """Return the case with a wrong gold; itself where it has nothing that can be made wrong."""
    if fault == "gold_row":
        return replace(case, ground_truth=following.ground_truth, evidence=following.evidence, qrels=following.qrels)
    if fault == "gold_page":
        return replace(case, evidence=following.evidence, qrels=following.qrels)
    evidence = _plain(" ".join(one.quote for one in case.evidence))
    wrong = {"gold_date": _wrong_date, "gold_number": _wrong_number, "gold_unit": _wrong_unit}[fault]
    return replace(case, ground_truth=wrong(case.ground_truth, evidence))


def _wrong_date(truth: str, evidence: str) -> str:
    names = rf"\b(?:{'|'.join(MONTHS + DAYS)})\b"
    for found in re.finditer(names, truth):
        among = MONTHS if found[0] in MONTHS else [day.rstrip("?").rstrip("s") for day in DAYS]
        if re.search(rf"\b{found[0].rstrip('s')}s?\b", evidence):
            others = [each for each in among if each not in evidence and each not in truth]
            other = others[len(truth) % len(others)] + ("s" if found[0].endswith("s") else "")
            return truth[: found.start()] + other + truth[found.end() :]
    return truth


def _wrong_number(truth: str, evidence: str) -> str:
    for found in re.finditer(r"(?<![\d.,:/])(\d+)((?:[.,]\d+)?)(?![\d:/])", truth):
        if re.search(rf"(?<![\d.,]){re.escape(found[0])}(?![\d])", evidence):
            ten_times = f"{found[1]}{found[2][1]}" if found[2] else f"{found[1]}0"
            return truth[: found.start()] + ten_times + truth[found.end() :]
    for found in re.finditer(rf"\b(?:{'|'.join(NUMBERS)})\b", truth):
        if re.search(rf"\b{found[0]}\b", evidence, re.IGNORECASE):
            other = [each for each in NUMBERS if each not in evidence.lower()][-1]
            return truth[: found.start()] + other + truth[found.end() :]
    return truth


def _wrong_unit(truth: str, evidence: str) -> str:
    for found in re.finditer(rf"(\d[\d.,]*)(\s?)({'|'.join(UNITS)})(?!\w)", truth):
        if re.search(rf"(?<![\d.,]){re.escape(found[1])}[\s-]?{found[3].rstrip('s')}", evidence):
            other = UNITS[found[3]] if found[2] else f" {UNITS[found[3]]}"
            return truth[: found.start(3)] + other + truth[found.end() :]
    for found in re.finditer(r"€(\d[\d.,]*\d|\d)", truth):
        if found[0] in evidence:
            other = "dollars" if len(truth) % 2 else "cents"
            return f"{truth[: found.start()]}{found[1]} {other}{truth[found.end() :]}"
    return truth


# ---- Running and counting ------------------------------------------------------------------------------------------


def is_good(case: Case, answer: str) -> bool:
    """Whether an answer has every figure and 60 % of the words of the ground truth; not the harness's own measure."""
    said, truth = re.sub(r"\[Sources?[^\]]*\]", "", answer), case.ground_truth
    if re.search(r"\bI don.t know\b|can't be answered", said) or not said.strip():
        return False
    figures = [set(re.findall(r"\d+(?:[.,:]\d+)*", text)) for text in (truth, said)]
    words = [{word[:5] for word in re.findall(r"[a-z]{4,}", text.lower())} for text in (truth, said)]
    return figures[0] <= figures[1] and len(words[0] & words[1]) >= 0.6 * len(words[0])


def healthy(suite: Suite) -> dict[str, str]:
    """Run without a fault, print the causes of what failed, and return every answer."""
    with tempfile.TemporaryDirectory() as folder:
        output, experiment = Path(folder), suite.experiment("")
        rows = asyncio.run(answered(suite, experiment, output))
        lines = {line.query_id: line for line in explained(suite, experiment, list(rows.values()), output)}
    good = sum(case.answerable and is_good(case, rows[case.query.query_id].llm_answer) for case in suite.cases)
    counts = Counter((line.cause, line.detail) for line in lines.values())
    false = {id_: line for id_, line in lines.items() if any(_is(line, cause, fine) for cause, fine in NEW_KINDS)}
    asked = sum(case.answerable for case in suite.cases)
    print(f"healthy: {good} of {asked} answerable are good; {len(lines)} got a cause: {dict(counts)}")
    print(f"    of the kinds that are planted: {len(false)}")
    for id_, line in false.items():
        print(f"    {id_}: {line.cause}: {line.detail} <- {rows[id_].llm_answer[:90]!r}; {line.evidence[:140]!r}")
    return {id_: row.llm_answer for id_, row in rows.items()}


def _is(line: CauseLine, cause: str, detail: str) -> bool:
    return line.cause == cause and (not detail or line.detail.startswith(detail))


def planted(suite: Suite, fault: str, before: Mapping[str, str], shown: int, log: Any) -> Counter[str]:
    """Plant a fault, explain what came of it, and count and print what its trials were called."""
    experiment, was = suite.experiment(fault), {case.query.query_id: case for case in suite.cases}
    good = {id_ for id_, case in was.items() if case.answerable and is_good(case, before[id_])}
    with tempfile.TemporaryDirectory() as folder:
        rows = asyncio.run(answered(suite, experiment, Path(folder)))
        if fault.startswith("gold_"):
            asked = [case for case in suite.cases if case.answerable]
            others = {case.query.query_id: other for case, other in zip(asked, [*asked[1:], asked[0]], strict=True)}
            new = {id_: altered(fault, was[id_], other) for id_, other in others.items()}
            acted = {id_ for id_ in good if new[id_] != was[id_]}
            suite.cases = [new.get(case.query.query_id, case) for case in suite.cases]
            rows = {id_: with_gold(row, new[id_]) if id_ in new else row for id_, row in rows.items()}
        else:
            acted = {id_ for id_ in good if not is_good(was[id_], rows[id_].llm_answer)}
        lines = {line.query_id: line for line in explained(suite, experiment, list(rows.values()), Path(folder))}
    now_has = {case.query.query_id: case for case in suite.cases}
    counts, wrong, examples = Counter[str](acted=len(acted)), Counter[str](), dict[str, str]()
    for id_ in sorted(acted):
        line, row = lines.get(id_), rows[id_]
        called_right = rightness(now_has[id_], row.llm_answer, row.abstained).right
        ok = line is not None and any(_is(line, cause, fine) for cause, fine, _ in FAULTS[fault])
        ok_remedy = line is not None and any(words in line.remedy for *_, words in FAULTS[fault])
        counts.update(named=ok, remedy=ok_remedy, both=ok and ok_remedy, unseen=line is None and called_right)
        name = f"{line.cause}: {line.detail}" if line else f"no cause{' (called right)' * called_right}"
        wrong.update({} if ok else {name: 1})
        told = {"suite": suite.data.name, "fault": fault, "query_id": id_, "ok": ok, "remedy_ok": ok_remedy}
        told |= {"name": name, "truth": now_has[id_].ground_truth, "true": was[id_].ground_truth}
        told |= {"before": before[id_], "answer": row.llm_answer, "line": line.model_dump() if line else None}
        print(json.dumps(told, ensure_ascii=False), file=log)
        if not ok:
            why = f"{line.evidence[:150]} | repaired by {line.repaired_by or 'nothing'}" if line else ""
            examples.setdefault(name, f"{id_}: {row.llm_answer[:90]!r}, gold {now_has[id_].ground_truth[:70]!r}; {why}")
    print(f"{fault:18} acted on {counts['acted']:3}  named {counts['named']:3}  remedy {counts['remedy']:3}", end="  ")
    print(", ".join(f"{n} {name}" for name, n in wrong.most_common()) or "-", flush=True)
    for name, example in list(examples.items())[:shown]:
        print(f"        {name} <- {example}")
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", choices=tuple(SUITES), action="append", help="default: both")
    parser.add_argument("--reader", choices=("simulated", "embedded"), default="simulated")
    parser.add_argument("--fault", choices=tuple(FAULTS), action="append", help="only these; default: all")
    parser.add_argument("--examples", type=int, default=0, help="wrong names of each fault that are shown with a trial")
    parser.add_argument("--log", type=Path, help="a line of JSON for each trial that a fault acted on")
    chosen = parser.parse_args()
    total = Counter[str]()
    with (chosen.log or Path("/dev/null")).open("w", encoding="utf-8") as log:
        for name in chosen.suite or SUITES:
            print(f"== {name}, {chosen.reader} reader")
            # Made anew for each fault: who explains closes the connections of the models.
            before = healthy(Suite(name, chosen.reader))
            for fault in chosen.fault or FAULTS:
                counts = planted(Suite(name, chosen.reader), fault, before, chosen.examples, log)
                total.update(Counter() if fault in NOT_IN_THE_SHARE else counts)
    acted, unseen = total["acted"], total["unseen"]
    print(f"\nof {acted} trials: cause {total['named'] / acted:.1%}, remedy {total['remedy'] / acted:.1%}", end=", ")
    print(f"both {total['both'] / acted:.1%}; without {unseen} that were called right:", end=" ")
    print(f"cause {total['named'] / (acted - unseen):.1%}, remedy {total['remedy'] / (acted - unseen):.1%}")


if __name__ == "__main__":
    main()
