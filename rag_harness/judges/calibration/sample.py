"""Samples answers for people to label: a blind sheet that shows neither the experiment nor the judge's score."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path

from rag_harness.errors import DataError
from rag_harness.files.atomic import write_atomically
from rag_harness.judges.calibration.scored_answers import Item, ScoredAnswers
from rag_harness.judges.calibration.sheet_key import ENDING, write_key
from rag_harness.results.row import ExperimentResult
from rag_harness.shown.cells import cell as inert

SHEET_COLUMNS = ("item", "question", "contexts", "answer", "human", "rater", "comment")


def sample_of_answers(scored: ScoredAnswers, n: int, seed: int = 0) -> list[Item]:
    """Pick ``n`` answers, or all where there are fewer: equally many of each experiment, in random order.

    Within an experiment all answers are equally likely, as PPI++ needs. The sample is systematic: every k-th answer in
    the order of the judge's scores. Answers whose judgement gave no score cannot be compared, and are not picked.

    Raises:
        DataError: n is below 1.
    """
    if n < 1:
        raise DataError(f"-n is a number of answers, 1 or more; got {n}.")
    rng = random.Random(seed)
    by_experiment: dict[str, list[Item]] = {}
    for item in scored.scores or [item for item in scored.rows if item not in scored.missing]:
        by_experiment.setdefault(item[0], []).append(item)
    shares = _shares({name: len(items) for name, items in by_experiment.items()}, n)
    chosen = [item for name, share in shares.items() for item in _spread(by_experiment[name], share, scored, rng)]
    rng.shuffle(chosen)
    return chosen


def write_sheet(prefix: Path, items: Sequence[Item], rows: Mapping[Item, ExperimentResult]) -> list[Path]:
    """Write ``prefix``.csv and .jsonl, to be filled in, and .key.json with the row of each item; return all paths.

    Raises:
        DataError: one of the files exists: it may contain people's work.
    """
    files = [prefix.with_name(prefix.name + ending) for ending in (".csv", ".jsonl", ENDING)]
    for file in files:
        if file.exists():
            raise DataError(f"{file} is there already and may hold labels. Name another sheet with -o NAME.")
    named = {f"a{number:0{len(str(len(items)))}}": item for number, item in enumerate(items, 1)}
    write_atomically(files[0], _csv(named, rows).encode("utf-8-sig"))
    write_atomically(files[1], (line.encode() for line in _jsonl(named, rows)))
    write_key(files[2], named)
    return files


def _shares(sizes: Mapping[str, int], n: int) -> dict[str, int]:
    """Distribute ``n`` one by one over the experiments that have answers left."""
    shares = dict.fromkeys(sorted(sizes), 0)
    for _ in range(min(n, sum(sizes.values()))):
        left = [name for name in shares if shares[name] < sizes[name]]
        shares[min(left, key=shares.__getitem__)] += 1
    return shares


def _spread(items: Sequence[Item], share: int, scored: ScoredAnswers, rng: random.Random) -> Iterator[Item]:
    mixed = rng.sample(sorted(items), len(items))
    mixed.sort(key=lambda item: scored.scores.get(item, 0.0))
    start = rng.random()
    return (mixed[int((start + number) * len(mixed) / share)] for number in range(share))


def _jsonl(named: Mapping[str, Item], rows: Mapping[Item, ExperimentResult]) -> Iterator[str]:
    for name, item in named.items():
        yield json.dumps(dict(zip(SHEET_COLUMNS, _cells(name, rows[item]), strict=True)), ensure_ascii=False) + "\n"


def _csv(named: Mapping[str, Item], rows: Mapping[Item, ExperimentResult]) -> str:
    text = StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(SHEET_COLUMNS)
    for name, item in named.items():
        writer.writerow(_as_text(cell) for cell in _cells(name, rows[item]))
    return text.getvalue()


def _cells(name: str, row: ExperimentResult) -> tuple[str, str, list[str], str, None, str, str]:
    return name, row.query, [chunk.text for chunk in row.retrieved_chunks], row.llm_answer, None, "", ""


def _as_text(cell: str | list[str] | None) -> str:
    text = "\n\n".join(f"[{n}] {chunk}" for n, chunk in enumerate(cell, 1)) if isinstance(cell, list) else cell or ""
    return inert(text)
