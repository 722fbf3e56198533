"""Reader of MTRAG and MTRAG-UN: conversations whose turns ask a corpus of passages (Katsis et al. 2025)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rag_harness.dataset.beir import BeirDataset, judgements
from rag_harness.dataset.beir_files import Folder, objects, refuse
from rag_harness.dataset.mtrag_files import LAST_TURN, MTRAG, QUESTIONS, MtragPlace, corpus_of, place_of, there
from rag_harness.dataset.mtrag_tasks import passage_of_row, passages_of, read_tasks
from rag_harness.dataset.mtrag_turns import HAS_PASSAGES, MtragTurn, query_of, turn_of
from rag_harness.types import Case, Document, Query

_SAYS = "|user|: "


@dataclass(frozen=True)
class MtragDataset(BeirDataset):
    """A domain of MTRAG or MTRAG-UN. Ids of queries are those of turns: ``conversation#turn``.

    Attributes:
        tasks: the file of its generation tasks.
        domain: the domain whose tasks are its cases; empty for all of the file.
        variant: which text of a query is asked.
        excerpt: whether its documents are the passages of its tasks alone.
    """

    tasks: Path
    domain: str = ""
    variant: str = LAST_TURN
    excerpt: bool = False

    def cases(self) -> list[Case]:
        """Read the generation tasks as cases.

        Raises:
            DataError: the file is missing, or a task is malformed.
        """
        found = read_tasks(self.tasks, self.domain)
        return [
            each.case(self.variant, None if self.excerpt else self.qrels.get(each.turn.case_id, {})) for each in found
        ]


def read_mtrag(benchmark: str, path: Path) -> MtragDataset:
    """Read a domain of a clone of IBM/mt-rag-benchmark, as it is; or the passages of a file of generation tasks alone.

    Args:
        benchmark: ``mtrag`` or ``mtragun``.
        path: ``CLONE/DOMAIN``, ``CLONE/DOMAIN/VARIANT``, or a file ``….jsonl`` of generation tasks.

    Raises:
        DataError: a file is missing or malformed; lists the first 20 problems as ``file:line: …``.
    """
    if path.suffix == ".jsonl":
        return read_excerpt(path)
    place = place_of(benchmark, path)
    queries, qrels = judged_queries(place)
    problems: list[str] = []
    with corpus_of(place) as corpus:
        documents = _documents(corpus, problems)
    if not problems and not any(name in documents for judged in qrels.values() for name in judged):
        problems.append(f"{place.clone}: the corpus holds none of the passages that {place.qrels} judges.")
    refuse(problems)
    return MtragDataset([*documents.values()], queries, qrels, place.tasks, place.domain, place.variant)


def judged_queries(place: MtragPlace) -> tuple[list[Query], dict[str, dict[str, int]]]:
    """Read a domain's judged queries, and the relevance of passages by query.

    Raises:
        DataError: a file is missing or malformed; lists the first 20 problems as ``file:line: …``.
    """
    problems: list[str] = []
    qrels = _by_turn(place, problems)
    queries = (_queries if place.benchmark == MTRAG else _queries_of_tasks)(place, qrels, problems)
    refuse(problems)
    return queries, qrels


def read_excerpt(file: Path) -> MtragDataset:
    """Read a file of generation tasks as a collection of its own: its documents are the passages of its tasks.

    So few passages are found easily: figures are comparable with others of the same excerpt alone.

    Raises:
        DataError: the file is missing, or a task is malformed; lists the first 20 problems.
    """
    tasks = read_tasks(file)
    asked = [each for each in tasks if each.query_type in HAS_PASSAGES and each.passages]
    qrels = {each.turn.case_id: dict.fromkeys((one.doc_id for one in each.passages), 1) for each in asked}
    queries = [each.query(LAST_TURN) for each in asked]
    return MtragDataset(passages_of(tasks), queries, qrels, file, excerpt=True)


def _by_turn(place: MtragPlace, problems: list[str]) -> dict[str, dict[str, int]]:
    """Return the judgements by the id of a turn."""
    found: dict[str, dict[str, int]] = {}
    for name, judged in judgements(place.qrels, problems).items():
        turn = turn_of(name)
        if turn is None:
            problems.append(f"{place.qrels}: query-id {name!r:.80}, expected CONVERSATION<::>TURN.")
        else:
            found[turn.case_id] = judged
    return found


def _queries(place: MtragPlace, judged: Collection[str], problems: list[str]) -> list[Query]:
    """Return the judged queries in the order of their file, with what the user had asked before."""
    asked = _texts(place.queries(QUESTIONS), problems)
    texts = asked if place.variant == QUESTIONS else _texts(place.queries(place.variant), problems)
    found: dict[str, Query] = {}
    for turn, (where, text) in () if problems else texts.items():
        at, said = asked.get(turn, (where, ""))
        before = said.split(f"\n{_SAYS}")
        if turn not in asked:
            problems.append(
                f"{where}: {turn.case_id} is not in {place.queries(QUESTIONS).name}, which has its history."
            )
        elif len(before) != turn.number:
            problems.append(f"{at}: turn {turn.number} of {turn.conversation} has {len(before)} questions.")
        elif turn.case_id in judged:
            history = [{"role": "user", "content": _plain(each)} for each in before[:-1]]
            found[turn.case_id] = query_of(turn, _plain(text), history)
    return [*_all_of(judged, found, place, place.queries(place.variant), problems)]


def _queries_of_tasks(place: MtragPlace, judged: Collection[str], problems: list[str]) -> list[Query]:
    tasks = read_tasks(place.tasks, place.domain)
    found = {each.turn.case_id: each.query(place.variant) for each in tasks if each.turn.case_id in judged}
    return [*_all_of(judged, found, place, place.tasks, problems)]


def _all_of(
    judged: Collection[str], found: Mapping[str, Query], place: MtragPlace, file: Path, problems: list[str]
) -> Iterable[Query]:
    """Return the queries that were found. Unless other problems explain it, a judged one that is missing is one."""
    if not problems:
        missing = (name for name in judged if name not in found)
        problems += [f"{place.qrels}: {name} is judged and {file.name} lacks it." for name in missing]
    return found.values()


def _texts(file: Path, problems: list[str]) -> Mapping[MtragTurn, tuple[str, str]]:
    """Return the texts of a file by turn, each with its place. The turns of a conversation stand in their order."""
    found: dict[MtragTurn, tuple[str, str]] = {}
    last: dict[str, int] = {}
    for where, row in objects(there(file), problems):
        turn, text = turn_of(row.get("_id")), row.get("text")
        if turn is None:
            problems.append(f"{where}: _id is {row.get('_id')!r:.80}, expected CONVERSATION<::>TURN.")
        elif not isinstance(text, str) or not text.removeprefix(_SAYS).strip():
            problems.append(f"{where}: {turn.case_id} has no text, but {text!r:.40}.")
        elif turn in found:
            problems.append(f"{where}: {turn.case_id} stands already at {found[turn][0]}.")
        elif turn.number < last.get(turn.conversation, 0):
            problems.append(
                f"{where}: turn {turn.number} of {turn.conversation} comes after turn {last[turn.conversation]}."
            )
        else:
            found[turn] = where, text
            last[turn.conversation] = turn.number
    return found


def _plain(text: str) -> str:
    """Return what was said, without the mark of who says it."""
    return "\n".join(line.removeprefix(_SAYS).strip() for line in text.split(f"\n{_SAYS}"))


def _documents(file: Folder, problems: list[str]) -> dict[str, Document]:
    documents: dict[str, Document] = {}
    for where, row in objects(file, problems):
        found = passage_of_row(row, row.get("_id", row.get("id")))
        if isinstance(found, str):
            problems.append(f"{where}: {found}.")
        elif found.doc_id in documents:
            problems.append(f"{where}: _id {found.doc_id!r} stands already on a line above. Ids name one passage each.")
        else:
            documents[found.doc_id] = found
    return documents
