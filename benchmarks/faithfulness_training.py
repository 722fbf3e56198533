"""Fit the embedded judge's models of faithfulness to RAGTruth, and say how good they are on sources they never saw.

    python benchmarks/faithfulness_training.py ../shared/data/ragtruth_dev --cache /tmp/faithfulness [--write]

The folder holds RAGTruth (Niu et al. 2024, MIT) as qa.jsonl, summary.jsonl and data2txt.jsonl: a source a line, with
its responses and the spans in them that people marked as hallucinated; what they marked as true although the source
does not say it (``implicit_true``) does not count. Folds are grouped by source. In each fold
everything is fitted to the others: the sentence model, the response model to its out-of-fold probabilities, the
threshold to the response model's. The control never reads the source: task, length and style of the response.
``--write`` fits all of it to all data and writes the judge's coefficients.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import numpy.typing as npt
from side_by_side import show
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold

from rag_harness.core.package import package_digest
from rag_harness.core.types import Pieces
from rag_harness.evaluation.judges.embedded.alignment import (
    Encoded,
    EncodedSource,
    Float32s,
    PiecesOf,
    encode,
    passage_of,
    split_text,
)
from rag_harness.evaluation.judges.embedded.features import RESPONSE_NAMES, SENTENCE_NAMES, features, response_features
from rag_harness.evaluation.judges.embedded.judgement import COEFFICIENTS_FILE, Logistic, standardised, with_missed
from rag_harness.evaluation.judges.embedded.unsupported_details import absent
from rag_harness.models.embedders import SentenceTransformersEmbedder

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

TASKS = ("qa", "summary", "data2txt")
FOLDS = 5
SENTENCE_C, RESPONSE_C, CONTROL_C = 0.01, 0.03, 0.1
_PASSAGE = re.compile(r"passage \d+:")


@dataclass(frozen=True)
class Response:
    """A response with what people marked in it."""

    task: str
    source: int
    question: str
    passages: tuple[str, ...]
    text: str
    marked: tuple[tuple[int, int], ...]


def responses(folder: Path) -> Iterator[Response]:
    """Yield the responses of RAGTruth in ``folder``."""
    for task in TASKS:
        for line in (folder / f"{task}.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            question, passages = asked(row["source"])
            for said in row["responses"]:
                marked = tuple((label["start"], label["end"]) for label in said["labels"] if not label["implicit_true"])
                yield Response(task, row["source_id"], question, passages, said["response"], marked)


def asked(source: Any) -> tuple[str, tuple[str, ...]]:
    """Return the question and the passages of a source; a structured one is a passage in JSON."""
    if isinstance(source, str):
        return "", (source,)
    if set(source) == {"question", "passages"}:
        parts = [part.strip() for part in _PASSAGE.split(source["passages"])]
        return source["question"], tuple(part for part in parts if part)
    return "", (json.dumps(source),)


@dataclass(frozen=True)
class Table:
    """All sentences, with the response that each belongs to."""

    rows: Doubles
    wrong: Ints
    response: Ints

    def of(self, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return which sentences belong to the ``chosen`` responses."""
        return chosen[self.response]


def table(found: Sequence[Response], pieces_of: PiecesOf, kept: Path) -> Table:
    """Return the features of all sentences of all responses; kept in a file, since they take minutes."""
    if kept.is_file():
        with np.load(kept) as file:
            return labelled(found, file["rows"], file["spans"], file["response"])
    rows: list[Float32s] = []
    spans: list[tuple[int, int]] = []
    numbers: list[int] = []
    sources: dict[tuple[str, ...], tuple[EncodedSource, Encoded]] = {}
    for number, response in enumerate(found):
        if response.passages not in sources:
            read = tuple(encode(passage_of(passage), pieces_of) for passage in response.passages)
            sources = {response.passages: (EncodedSource(read), encode(passage_of(response.question), pieces_of))}
        source, question = sources[response.passages]
        answer = encode(passage_of(response.text), pieces_of)
        if not len(answer.text.sentences):
            continue
        found_values, _ = features(answer, source, question)
        rows.append(found_values)
        spans += answer.text.sentences
        numbers += [number] * len(found_values)
        if number % 100 == 0:
            print(f"{number} of {len(found)} responses", flush=True)
    values: Doubles = np.concatenate(rows).astype(np.float64)
    kept.parent.mkdir(parents=True, exist_ok=True)
    np.savez(kept, rows=values, spans=np.array(spans), response=np.array(numbers))
    return labelled(found, values, np.array(spans), np.array(numbers))


def labelled(found: Sequence[Response], rows: Doubles, spans: Ints, numbers: Ints) -> Table:
    """Return the table of sentences: one is wrong that overlaps a marked span."""
    wrong = [overlaps((start, end), found[number].marked) for (start, end), number in zip(spans, numbers, strict=True)]
    return Table(rows, np.array(wrong, np.int64), numbers)


def overlaps(span: tuple[int, int], marked: Sequence[tuple[int, int]]) -> int:
    """Return 1 where a marked span begins, ends or lies in ``span``."""
    return int(any(start < span[1] and span[0] < end for start, end in marked))


def cached(inner: PiecesOf, folder: Path) -> PiecesOf:
    """Return ``inner`` with its hidden states kept in ``folder``, in half precision."""
    folder.mkdir(parents=True, exist_ok=True)

    def pieces_of(text: str, borders: Sequence[int]) -> Pieces:
        name = hashlib.sha256(json.dumps([text, list(borders)]).encode()).hexdigest()[:24]
        file = folder / f"{name}.npz"
        if not file.is_file():
            made = inner(text, borders)
            np.savez(file, ids=made.ids, spans=made.spans, vectors=made.vectors.astype(np.float16))
        with np.load(file) as kept:
            return Pieces(kept["ids"], kept["spans"], kept["vectors"].astype(np.float32))

    return pieces_of


def fitted(names: Sequence[str], rows: Doubles, wrong: Ints, strength: float) -> Logistic:
    """Fit a logistic model of standardised features (L2, scikit-learn's C)."""
    scale = rows.std(axis=0)
    mean, scale = rows.mean(axis=0), np.where(scale > 1e-9, scale, 1.0)
    model = LogisticRegression(C=strength, max_iter=2000).fit(standardised(rows, mean, scale), wrong)
    return Logistic(tuple(names), mean, scale, model.coef_[0], float(model.intercept_[0]))


def folds(groups: Ints, wrong: Ints) -> Iterator[tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]]:
    """Yield (training, test) of the responses, grouped by source."""
    for _, test in GroupKFold(FOLDS, shuffle=True, random_state=0).split(wrong, wrong, groups):
        chosen = np.zeros(len(wrong), bool)
        chosen[test] = True
        yield ~chosen, chosen


def smoothed_threshold(p: Doubles, wrong: Ints) -> float:
    """Return the threshold of the best F1, smoothed over 9 neighbours so that one response does not decide it."""
    grid = np.arange(0.02, 0.98, 0.01)
    scores = np.array([f1(p >= threshold, wrong) for threshold in grid])
    return float(round(grid[np.convolve(np.pad(scores, 4, mode="edge"), np.ones(9) / 9, mode="valid").argmax()], 2))


def f1(said: npt.NDArray[np.bool_], wrong: Ints) -> float:
    hits = float((said & (wrong == 1)).sum())
    return 2 * hits / max(float(said.sum() + wrong.sum()), 1.0)


Model = Callable[[npt.NDArray[np.bool_], npt.NDArray[np.bool_]], tuple[Doubles, Doubles]]
"""(training, test) responses -> out-of-fold p of all training responses, p of all test ones; of full length."""


@dataclass(frozen=True)
class Result:
    """What a recipe says of responses whose source it never saw."""

    p: Doubles
    said: npt.NDArray[np.bool_]


def cross_validated(model: Model, groups: Ints, wrong: Ints) -> Result:
    """Return what ``model`` says of each response by the fold that has not seen its source."""
    p, said = np.zeros(len(wrong)), np.zeros(len(wrong), bool)
    for training, test in folds(groups, wrong):
        within, beyond = model(training, test)
        p[test] = beyond[test]
        said[test] = beyond[test] >= smoothed_threshold(within[training], wrong[training])
    return Result(p, said)


class TwoModels:
    """The sentence model, then the response model; ``missed`` sentences of each response, by rules, beside them."""

    def __init__(self, sentences: Table, wrong: Ints, groups: Ints, missed: Ints) -> None:
        self.sentences, self.wrong, self.groups, self.missed = sentences, wrong, groups, missed

    def __call__(self, training: npt.NDArray[np.bool_], test: npt.NDArray[np.bool_]) -> tuple[Doubles, Doubles]:
        within = self.out_of_fold(training)
        rows = self.seen(within, training)
        response = fitted(RESPONSE_NAMES, rows[training], self.wrong[training], RESPONSE_C)
        sentence = self.sentence(training)
        beyond = self.seen(sentence.probabilities(self.sentences.rows), test)
        p = response.probabilities(rows)
        threshold = self.threshold(p, training)
        return self.with_rules(p, threshold), self.with_rules(response.probabilities(beyond), threshold)

    def threshold(self, p: Doubles, training: npt.NDArray[np.bool_]) -> float:
        """Return the threshold that rules lift a response above: the best of those that they touch nothing of."""
        untouched = training & (self.missed == 0)
        return smoothed_threshold(p[untouched], self.wrong[untouched])

    def with_rules(self, p: Doubles, threshold: float) -> Doubles:
        """Return P(hallucinated) of each response with what the rules add."""
        return with_missed(p, self.missed, threshold)

    def sentence(self, training: npt.NDArray[np.bool_]) -> Logistic:
        """Fit the sentence model."""
        chosen = self.sentences.of(training)
        return fitted(SENTENCE_NAMES, self.sentences.rows[chosen], self.sentences.wrong[chosen], SENTENCE_C)

    def out_of_fold(self, training: npt.NDArray[np.bool_]) -> Doubles:
        """Return P(unsupported) of every training sentence by a model that has not seen its source."""
        places = np.flatnonzero(training)
        p = np.zeros(len(self.sentences.wrong))
        for inner, other in folds(self.groups[places], self.wrong[places]):
            chosen, held_out = np.zeros(len(training), bool), np.zeros(len(training), bool)
            chosen[places[inner]], held_out[places[other]] = True, True
            here = self.sentences.of(held_out)
            p[here] = self.sentence(chosen).probabilities(self.sentences.rows[here])
        return p

    def seen(self, p: Doubles, of: npt.NDArray[np.bool_]) -> Doubles:
        """Return what the response model sees of each response; zeros for one without a sentence."""
        rows = np.zeros((len(of), len(RESPONSE_NAMES)))
        order = self.sentences.response
        for number in np.unique(order[of[order]]):
            rows[number] = response_features(p[order == number], self.sentences.rows[order == number])
        return rows


def missed(found: Sequence[Response]) -> Ints:
    """Return of each response in how many sentences the rules miss something in its source."""
    counts = [
        sum(
            map(
                bool,
                absent(
                    split_text(passage_of(each.text).text),
                    [split_text(passage_of(one).text) for one in each.passages],
                    each.question,
                ),
            )
        )
        for each in found
    ]
    return np.array(counts, np.int64)


def style(response: Response) -> list[float]:
    """Return what is to be seen of a response without its source."""
    text = response.text
    words, lines = text.split(), text.splitlines()
    counts = [
        len(re.findall(pattern, text)) for pattern in (r"\d", r"[A-Z]", ",", r'["“]', r"[.!?](?:\s|$)", r"[:;]", "!")
    ]
    listed = sum(bool(re.match(r"\s*(?:\d+[.)]|[-*•])\s", line)) for line in lines)
    hedges = len(
        re.findall(r"(?i)\b(?:overall|however|may|might|likely|some|various|based on|passages?|sure|note)\b", text)
    )
    unique = len({word.lower() for word in words}) / max(len(words), 1)
    long = sum(map(len, words)) / max(len(words), 1)
    return [np.log1p(len(words)), np.log1p(len(text)), len(lines), listed, hedges, unique, long,
            *map(np.log1p, counts), *(count / max(len(words), 1) for count in counts),
            *(float(response.task == task) for task in TASKS)]  # fmt: skip


def control(found: Sequence[Response], wrong: Ints) -> Model:
    """Return the model that never reads the source."""
    rows = np.array([style(response) for response in found], np.float64)

    def model(training: npt.NDArray[np.bool_], test: npt.NDArray[np.bool_]) -> tuple[Doubles, Doubles]:  # noqa: ARG001
        made = fitted([str(place) for place in range(rows.shape[1])], rows[training], wrong[training], CONTROL_C)
        p = made.probabilities(rows)
        return p, p

    return model


def line(name: str, result: Result, found: Sequence[Response], wrong: Ints) -> list[str]:
    """Return the row of a recipe."""
    low, high = interval(result, np.array([response.source for response in found]), wrong)
    tasks = np.array([response.task for response in found])
    by_task = [f"{100 * f1(result.said[tasks == task], wrong[tasks == task]):.1f}" for task in TASKS]
    areas = [f"{100 * roc_auc_score(wrong[tasks == task], result.p[tasks == task]):.1f}" for task in TASKS]
    whole = f"{100 * f1(result.said, wrong):.1f}"
    return [
        name,
        whole,
        f"{100 * low:.1f} to {100 * high:.1f}",
        f"{100 * roc_auc_score(wrong, result.p):.1f}",
        *by_task,
        *areas,
    ]


def interval(result: Result, groups: Ints, wrong: Ints) -> tuple[float, float]:
    """Bound F1: percentile bootstrap over sources."""
    random = np.random.default_rng(0)
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    draws = []
    for _ in range(2000):
        chosen = np.concatenate([members[place] for place in random.integers(0, len(members), len(members))])
        draws.append(f1(result.said[chosen], wrong[chosen]))
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(low), float(high)


def write(model: TwoModels, beyond: Doubles, folder: Path) -> None:
    """Fit everything to all data and write it; ``beyond`` is p of each response, out of fold."""
    everything = np.ones(len(model.wrong), bool)
    p = model.out_of_fold(everything)
    seen = model.seen(p, everything)
    said = {
        "data": {
            f"{task}.jsonl": hashlib.sha256((folder / f"{task}.jsonl").read_bytes()).hexdigest() for task in TASKS
        },
        "base": round(float(model.sentences.wrong.mean()), 6),
        "threshold": smoothed_threshold(beyond, model.wrong),
        "response": plain(fitted(RESPONSE_NAMES, seen, model.wrong, RESPONSE_C)),
        "sentence": plain(model.sentence(everything)),
    }
    text = json.dumps(said, indent=0)
    one_line = re.sub(r"\[\n([^\]]*)\n\]", lambda match: f"[{match[1].replace(chr(10), ' ')}]", text)
    COEFFICIENTS_FILE.write_text(f"{one_line}\n", encoding="utf-8")
    print(f"{COEFFICIENTS_FILE.name}: {COEFFICIENTS_FILE.stat().st_size:,} bytes, threshold {said['threshold']}")


def plain(model: Logistic) -> dict[str, Any]:
    columns = zip(model.names, model.mean, model.scale, model.weights, strict=True)
    return {
        "bias": round(model.bias, 6),
        "features": {name: [float(f"{v:.6g}") for v in values] for name, *values in columns},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="of RAGTruth: qa.jsonl, summary.jsonl, data2txt.jsonl")
    parser.add_argument("--cache", type=Path, required=True, help="keeps hidden states and features between runs")
    parser.add_argument("--write", action="store_true", help=f"fit all data and write {COEFFICIENTS_FILE.name}")
    options = parser.parse_args()
    found = list(responses(options.folder))
    wrong = np.array([int(bool(response.marked)) for response in found])
    groups = np.array([response.source for response in found])
    pieces_of = cached(SentenceTransformersEmbedder().pieces, options.cache / "pieces")
    sentences = table(found, pieces_of, options.cache / f"{package_digest()}.npz")
    model = TwoModels(sentences, wrong, groups, missed(found))
    judged = cross_validated(model, groups, wrong)
    rows = [
        line("control: never reads the source", cross_validated(control(found, wrong), groups, wrong), found, wrong),
        line("sentence model, then response model", judged, found, wrong),
    ]
    header = ["recipe", "F1", "95 %", "AUROC", *(f"F1 {task}" for task in TASKS), *(f"AUROC {task}" for task in TASKS)]
    show(f"{len(found)} responses, {wrong.sum()} hallucinated; {FOLDS} folds by source", header, rows)
    if options.write:
        write(model, judged.p, options.folder)


if __name__ == "__main__":
    main()
