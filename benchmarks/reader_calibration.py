"""Choose the baseline reader's support threshold on one half of MTRAG-UN, and report what it does on the other.

    python benchmarks/reader_calibration.py

MTRAG-UN (IBM, Apache-2.0) lies in ../shared/data; the script skips where it is absent. Its unanswerable tasks come
without passages, so every task gets what E3 gives: five passages of its collection (its own, filled up with BM25's best
of all the other tasks' and MTRAG's). The answer was not in the whole collection, so these do not hold it either.

Customers wrap their question into a story; MTRAG's users do not. So each task is asked three times: the last turn
alone, after the user's earlier turns, and inside a letter written for this script. A hash of the task id halves the
tasks.
The rule: of the thresholds 0.05 apart whose balanced accuracy on the development half, all three forms together, is
within one standard error of the best, take the lowest. (A tie goes to fewer refusals; what noise explains is a tie.)
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import bm25s

from rag_harness.evaluation.measures.answers import normalised
from rag_harness.models.prompts import load_prompts
from rag_harness.models.reader import MIN_SUPPORT, ReaderAnswer, reader_answer

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared/data"
TASKS = DATA / "mtragun/reference.jsonl"
MORE = DATA / "mtrag_human/reference_subset_with_human_evaluations.json"
TOP_K = 5
GRID = [step / 20 for step in range(21)]
FORMS = ("alone", "after turns", "in a letter")
LETTERS = (
    (
        "Hello there, I hope you are having a good week. My sister gave me one of your parcels for my birthday on "
        "14 May, and since we moved to a new flat in Leeds last month everything is still in boxes and I only found "
        "the receipt yesterday, order 48213.",
        "Thanks a lot in advance, Maria",
    ),
    (
        "Hi team! Long-time customer here, I have bought from you at least six times since 2019 and was always happy. "
        "My husband says I should just call, but the line was busy for 25 minutes this morning while our toddler was "
        "screaming.",
        "I would be grateful for a quick reply. Best regards, Tom",
    ),
    (
        "Good evening. I am a bit frustrated, to be honest. Last Tuesday I spent the whole afternoon on the phone with "
        "my neighbour Karen about this, she swears by one thing and my colleague at work swears by another, and the "
        "website kept logging me out on my old iPad.",
        "Sorry for the long message!",
    ),
    (
        "Hey, quick one. We are redecorating before my parents arrive from Norway on Friday, the kitchen is a mess and "
        "the dog already chewed one box.",
        "Cheers",
    ),
    (
        "Dear Sir or Madam, I am writing on behalf of my grandmother, who is 82 and does not use email. She saw your "
        "leaflet at the library, wrote everything down on a piece of paper and asked me to find out.",
        "Kind regards, A. Petersen, 0151 496 0000",
    ),
)


@dataclass(frozen=True, slots=True)
class Task:
    """A task of MTRAG-UN; ``context`` holds (document id, text), best first."""

    id: str
    kind: str
    turns: tuple[str, ...]
    reference: str
    context: tuple[tuple[str, str], ...]

    @property
    def held_out(self) -> bool:
        return hashlib.sha256(self.id.encode()).digest()[0] % 2 == 1

    def asked(self) -> dict[str, str]:
        """Return the question in each of FORMS."""
        last = _ended(self.turns[-1])
        before, after = LETTERS[hashlib.sha256(self.id.encode()).digest()[1] % len(LETTERS)]
        told = " ".join([*map(_ended, self.turns[:-1]), self.turns[-1]])
        return dict(zip(FORMS, (self.turns[-1], told, f"{before} {last} {after}"), strict=True))


def _ended(turn: str) -> str:
    return turn if turn.endswith((".", "?", "!")) else f"{turn}."


Answers = Mapping[tuple[str, str], list[tuple[Task, ReaderAnswer]]]
"""Readings by (form, kind of task)."""


def tasks() -> Iterator[Task]:
    rows = [json.loads(line) for line in TASKS.read_text(encoding="utf-8").splitlines()]
    pools = passages(rows)
    indexes = {name: indexed(pool) for name, pool in pools.items()}
    for row in rows:
        turns = tuple(said["text"].strip() for said in row["input"] if said["speaker"] == "user")
        pool = pools[row["Collection"]]
        ranked = ranking(indexes[row["Collection"]], sorted(pool), turns[-1])
        own = {passage["document_id"] for passage in row["contexts"]}
        kept = set(sorted(ranked, key=lambda name: name not in own)[:TOP_K])
        context = tuple((name, pool[name]) for name in ranked if name in kept)
        yield Task(row["task_id"], row["answerability"][0].lower(), turns, row["targets"][0]["text"], context)


def passages(rows: list[dict[str, Any]]) -> dict[str, dict[str, str]]:
    """Return every known passage by collection and id."""
    pools: dict[str, dict[str, str]] = defaultdict(dict)
    for row in rows:
        pools[row["Collection"]].update({p["document_id"]: p["text"].strip() for p in row["contexts"]})
    more = json.loads(MORE.read_text(encoding="utf-8"))
    texts = {document["document_id"]: document["text"].strip() for document in more["documents"]}
    for task in more["tasks"]:
        collection = task["Collection"].split("-")[2]
        pools[collection].update({p["document_id"]: texts[p["document_id"]] for p in task["contexts"]})
    return pools


def indexed(pool: Mapping[str, str]) -> Any:
    index = bm25s.BM25()
    texts = [pool[name] for name in sorted(pool)]
    index.index(bm25s.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)
    return index


def ranking(index: Any, names: list[str], question: str) -> list[str]:
    words = bm25s.tokenize([question], stopwords="en", return_ids=False, show_progress=False)[0]
    scores = index.get_scores(words) if words else [0.0] * len(names)
    return [name for _, name in sorted(zip((-float(score) for score in scores), names, strict=True))]


def answers(half: list[Task]) -> Answers:
    found: dict[tuple[str, str], list[tuple[Task, ReaderAnswer]]] = defaultdict(list)
    for task in half:
        for form, question in task.asked().items():
            found[form, task.kind].append((task, reader_answer(messages(task, question))))
    return found


def messages(task: Task, question: str) -> list[dict[str, str]]:
    """Write the prompt of E3."""
    prompts = load_prompts("e3")
    context = "\n\n".join(f"[Source {n}: {name}] {text}" for n, (name, text) in enumerate(task.context, 1))
    user = prompts.user.replace("{question}", question).replace("{context}", context)
    return [{"role": "system", "content": prompts.system}, {"role": "user", "content": user}]


def supports(found: Answers, kind: str, *forms: str) -> list[float]:
    return [reading.support for form in forms for _, reading in found[form, kind]]


def refused(found: Answers, kind: str, threshold: float, *forms: str) -> float:
    return fmean(support < threshold for support in supports(found, kind, *forms))


def balanced(found: Answers, threshold: float, *forms: str) -> float:
    right = 1 - refused(found, "answerable", threshold, *forms)
    return (right + refused(found, "unanswerable", threshold, *forms)) / 2


def chosen(found: Answers) -> float:
    """Apply the rule. The standard error counts a task once: its three forms are no independent draws."""
    best = max(balanced(found, threshold, *FORMS) for threshold in GRID)
    top = next(threshold for threshold in GRID if balanced(found, threshold, *FORMS) == best)
    rates = {kind: refused(found, kind, top, *FORMS) for kind in ("answerable", "unanswerable")}
    variance = sum(p * (1 - p) / len(found[FORMS[0], kind]) for kind, p in rates.items())
    return next(threshold for threshold in GRID if balanced(found, threshold, *FORMS) >= best - variance**0.5 / 2)


def area(found: Answers, *forms: str) -> float:
    """Return the area under the ROC curve of the support: what no threshold can change."""
    good, bad = (supports(found, kind, *forms) for kind in ("answerable", "unanswerable"))
    return fmean((one > other) + 0.5 * (one == other) for one in good for other in bad)


def token_f1(said: str, right: str) -> float:
    ours, theirs = normalised(said), normalised(right)
    return 2 * (Counter(ours) & Counter(theirs)).total() / max(1, len(ours) + len(theirs))


def f1(found: Answers, *forms: str) -> float:
    """Return the mean over the answerable tasks that were answered."""
    given = [pair for form in forms for pair in found[form, "answerable"] if pair[1].supported]
    return fmean([token_f1(reading.answer, task.reference) for task, reading in given] or [0.0])


def report(name: str, found: Answers, threshold: float) -> None:
    kinds = ("answerable", "unanswerable", "partial", "underspecified")
    sizes = ", ".join(f"{len(found[FORMS[0], kind])} {kind}" for kind in kinds)
    print(f"\n{name}: {sizes}; threshold {threshold:.2f}")
    print(f"{'':12} refused: {'  '.join(kinds)}   balanced accuracy   AUC   token F1")
    for form in [*FORMS, "all"]:
        forms = FORMS if form == "all" else (form,)
        rates = "".join(f"{refused(found, kind, threshold, *forms):14.3f}" for kind in kinds)
        scores = f"{balanced(found, threshold, *forms):15.3f}{area(found, *forms):12.3f}{f1(found, *forms):9.3f}"
        print(f"{form:12}{rates}{scores}")


def milliseconds(half: list[Task]) -> float:
    """Return the median time of one reading."""
    took = []
    for task in half:
        prompt = messages(task, task.asked()["in a letter"])
        start = perf_counter()
        reader_answer(prompt)
        took.append(1000 * (perf_counter() - start))
    return median(took)


def main() -> None:
    for path in (TASKS, MORE):
        if not path.is_file():
            print(f"skipped: {path} is absent")
            return
    everything = list(tasks())
    development = answers([task for task in everything if not task.held_out])
    held_out = answers([task for task in everything if task.held_out])
    rule = chosen(development)
    print(f"The rule chooses {rule:.2f}; the reader uses {MIN_SUPPORT:.2f}.")
    report("development half", development, MIN_SUPPORT)
    report("held-out half", held_out, MIN_SUPPORT)
    size = median(sum(len(text) for _, text in task.context) for task in everything)
    print(f"\nmedian prompt {size / 1000:.1f} kB, read in {milliseconds(everything):.1f} ms")


if __name__ == "__main__":
    main()
