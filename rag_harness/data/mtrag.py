"""MTRAG and MTRAG-UN: conversations whose turns ask a corpus of passages (Katsis et al. 2025)."""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_harness.core.errors import DataError
from rag_harness.core.types import NEGATIVE, Case, Document, Query
from rag_harness.data.beir import UNREADABLE, BeirDataset, Folder, judgements, objects, refuse
from rag_harness.data.query_lines import turn_id

# Where the files of MTRAG and MTRAG-UN lie in a clone of IBM/mt-rag-benchmark; corpora are read out of their zips.

MTRAG, MTRAG_UN = "mtrag", "mtragun"
LAST_TURN, REWRITE, QUESTIONS = VARIANTS = ("lastturn", "rewrite", "questions")
"""Texts of a query: the user's last turn, a person's rewrite of it that stands alone, all turns of the user."""
_CLONE = "git clone https://github.com/IBM/mt-rag-benchmark"
_POINTER = b"version https://git-lfs"


@dataclass(frozen=True, slots=True)
class MtragPlace:
    """One domain of one of the two benchmarks, in a clone.

    Attributes:
        benchmark: MTRAG or MTRAG_UN.
        clone: the folder of the clone.
        domain: clapnq, cloud, fiqa or govt.
        variant: one of VARIANTS.
    """

    benchmark: str
    clone: Path
    domain: str
    variant: str = LAST_TURN

    @property
    def top(self) -> Path:
        """The folder of the benchmark's own files."""
        return self.clone / f"{self.benchmark}-human"

    @property
    def qrels(self) -> Path:
        """The judgements."""
        tasks = self.top / "retrieval_tasks"
        return tasks / self.domain / "qrels/dev.tsv" if self.benchmark == MTRAG else tasks / f"qrels/{self.domain}.tsv"

    @property
    def tasks(self) -> Path:
        """The generation tasks with their reference passages, of all domains."""
        return self.top / "generation_tasks/reference.jsonl"

    def queries(self, variant: str) -> Path:
        """Return the file of a variant's queries; only MTRAG has them."""
        return self.top / "retrieval_tasks" / self.domain / f"{self.domain}_{variant}.jsonl"

    @property
    def domains(self) -> list[str]:
        """The domains that the clone has judgements for."""
        pattern = "*/qrels/dev.tsv" if self.benchmark == MTRAG else "qrels/*.tsv"
        found = (self.top / "retrieval_tasks").glob(pattern)
        return sorted(file.parent.parent.name if self.benchmark == MTRAG else file.stem for file in found)


def place_of(benchmark: str, path: Path) -> MtragPlace:
    """Return the place that ``CLONE/DOMAIN`` or ``CLONE/DOMAIN/VARIANT`` names.

    Raises:
        DataError: the clone, domain or variant does not exist. The message lists what exists.
    """
    variant = path.name if path.name in VARIANTS else LAST_TURN
    named = path.parent if path.name in VARIANTS else path
    place = MtragPlace(benchmark, named.parent, named.name, variant)
    if not place.domains:
        above = MtragPlace(benchmark, named, "").domains
        hint = f" Name one of its domains, too: {benchmark}:{named}/{above[0]}" if above else f" To get one: {_CLONE}"
        raise DataError(
            f"No {place.top}/retrieval_tasks with judgements: {place.clone} is not a clone of "
            f"IBM/mt-rag-benchmark.{hint}"
        )
    if place.domain not in place.domains:
        shape = f"{benchmark}:CLONE/DOMAIN, and behind it /{', /'.join(VARIANTS)} if not the last turn is the query"
        raise DataError(f"No {place.qrels}. Domains there: {', '.join(place.domains)}. Name {shape}.")
    if variant == REWRITE and benchmark == MTRAG_UN:
        raise DataError("MTRAG-UN has no rewrites of its questions. Name lastturn or questions.")
    return place


@contextmanager
def corpus_of(place: MtragPlace) -> Iterator[Folder]:
    """Yield the file of a domain's passages, unpacked or inside its zip.

    The qrels name passages, so the corpus at the level of documents is not looked at.

    Raises:
        DataError: there is none, it is a pointer of Git LFS, or it cannot be read.
    """
    folder = place.clone / "corpora/passage_level"
    plain, packed = folder / f"{place.domain}.jsonl", folder / f"{place.domain}.jsonl.zip"
    file = plain if plain.is_file() else packed
    if not file.is_file():
        raise DataError(
            f"No {plain} and no {packed.name}: without its passages nothing can be retrieved. They are in "
            f"the repository as zips: {_CLONE}. The passages of the tasks alone are a collection, too, though not "
            f"one to compare with published figures: {place.benchmark}:{place.tasks}"
        )
    try:
        with file.open("rb") as stream:
            if stream.read(len(_POINTER)) == _POINTER:
                raise DataError(f"{file} is a pointer of Git LFS. Get the file itself: git lfs pull")
        if file == plain:
            yield plain
            return
        with zipfile.ZipFile(packed) as archive:
            yield _member(archive, packed, plain.name)
    except UNREADABLE as error:
        raise DataError(f"{file} cannot be read: {error}. Get it again: {_CLONE}") from error


def _member(archive: zipfile.ZipFile, packed: Path, name: str) -> Folder:
    top = zipfile.Path(archive)
    # A Mac adds such a folder to zips.
    inner = [each for each in top.iterdir() if each.name != "__MACOSX" and each.is_dir()]
    file = next((each / name for each in (top, *inner) if (each / name).is_file()), None)
    if file is None:
        raise DataError(f"{packed} holds no {name}. Get it again: {_CLONE}")
    return file


def there(file: Path) -> Path:
    """Return the file.

    Raises:
        DataError: there is none.
    """
    if not file.is_file():
        raise DataError(f"No {file}. It is in the repository: {_CLONE}")
    return file


TYPES = {
    "ANSWERABLE": "direct",
    "PARTIAL": "partial",
    "UNANSWERABLE": NEGATIVE,
    "CONVERSATIONAL": "conversational",
    "UNDERSPECIFIED": "underspecified",
}
"""The type of a case by its answerability. The right reply to what is underspecified asks back; only ``negative`` is
declined."""
HAS_PASSAGES = ("direct", "partial")
"""Types whose passages answer them: those that the benchmarks' judgements cover."""
_NAME = re.compile(r"([\w.\-]{1,100})(?:<::>|::)([1-9][0-9]{0,3})")


@dataclass(frozen=True, slots=True)
class MtragTurn:
    """A turn by its conversation's id and its number there, from 1."""

    conversation: str
    number: int

    @property
    def case_id(self) -> str:
        return turn_id(self.conversation, self.number)


@dataclass(frozen=True, slots=True)
class GenerationTask:
    """One task. ``said`` are the turns of user and agent up to the question, which is the last."""

    turn: MtragTurn
    collection: str
    query_type: str
    said: tuple[str, ...]
    passages: tuple[Document, ...]
    reply: str
    labels: Mapping[str, str]

    def query(self, variant: str) -> Query:
        """Return the question: the last turn, or all of the user's turns, a line each."""
        text = "\n".join(self.said[::2]) if variant == QUESTIONS else self.said[-1]
        roles = ["user", "assistant"] * len(self.said)
        history = [{"role": role, "content": each} for role, each in zip(roles, self.said[:-1], strict=False)]
        return query_of(self.turn, text, history)

    def case(self, variant: str, qrels: Mapping[str, int] | None) -> Case:
        """Return the case, with the judgements of the benchmark; None: its passages are the relevant ones."""
        found = dict.fromkeys((each.doc_id for each in self.passages), 1) if qrels is None else qrels
        kept = found if self.query_type in HAS_PASSAGES else {}
        return Case(
            self.query(variant), self.query_type, self.reply, kept,
            answerable=self.query_type != NEGATIVE, metadata=self.labels,
        )  # fmt: skip


def query_of(turn: MtragTurn, text: str, history: Sequence[Mapping[str, str]]) -> Query:
    """Return the query of a turn; ``history`` are messages with ``role`` and ``content``."""
    before = {"history": [*history]} if history else {}
    return Query(turn.case_id, text, {"conversation": turn.conversation, "turn": turn.number, **before})


def turn_of(name: object) -> MtragTurn | None:
    """Return the turn that an id names, ``conversation<::>7`` or ``conversation::7``; None if it names none."""
    found = _NAME.fullmatch(name) if isinstance(name, str) else None
    return MtragTurn(found[1], int(found[2])) if found else None


# Reader of MTRAG's generation tasks: a question, what was said before it, its reference passages and its reply.
#
# {"task_id": "18ef<::>7", "turn": "7", "Collection": "fiqa", "answerability": ["PARTIAL"],
#  "input": [{"speaker": "user", "text": "…"}, {"speaker": "agent", "text": "…"}, …],
#  "contexts": [{"document_id": "162428-0-349", "text": "…"}], "targets": [{"speaker": "agent", "text": "…"}]}

_ROLES = {"user": "user", "agent": "assistant"}


def read_tasks(file: Path, domain: str = "") -> list[GenerationTask]:
    """Read the tasks of a domain, or all. The turns of a conversation are together, in their order.

    Raises:
        DataError: the file is missing, a task is malformed, or the domain has none; lists the first 20 problems.
    """
    problems: list[str] = []
    found: dict[str, GenerationTask] = {}
    for where, row in objects(there(file), problems):
        task = _task(row)
        if isinstance(task, str):
            problems.append(f"{where}: {task}")
        elif task.turn.case_id in found:
            problems.append(f"{where}: task {row['task_id']!r} stands already on a line above.")
        elif domain in task.collection:
            found[task.turn.case_id] = task
    refuse(problems)
    if not found:
        raise DataError(f"{file} holds no task{f' of {domain}' if domain else ''}.")
    first = {each.turn.conversation: place for place, each in reversed(list(enumerate(found.values())))}
    return sorted(found.values(), key=lambda each: (first[each.turn.conversation], each.turn.number))


def passages_of(tasks: Sequence[GenerationTask]) -> list[Document]:
    """Return the passages of all tasks, each once.

    Raises:
        DataError: two passages have one id.
    """
    found: dict[str, Document] = {}
    problems = []
    for task in tasks:
        for each in task.passages:
            if found.setdefault(each.doc_id, each).text != each.text:
                problems.append(f"Task {task.turn.case_id}: passage {each.doc_id!r} has another text in a task before.")
    refuse(problems)
    return [*found.values()]


def passage_of_row(row: Mapping[str, Any], name: object) -> Document | str:
    """Return a passage, or its fault. Its text begins with its title, so that is not put before it."""
    text, title, url = (_given(row.get(key)) for key in ("text", "title", "url"))
    if not isinstance(name, str) or not name:
        return "a passage without an id. Judgements name passages by it"
    if not isinstance(text, str) or not isinstance(title, str | None):
        return f"passage {name!r} needs a string text; its title is a string"
    return Document(name, text.strip(), title or name, {"url": url} if url and isinstance(url, str) else {})


def _given(value: object) -> object:
    """Return a value; None for NaN, which pandas writes for a missing value."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _task(row: Mapping[str, Any]) -> GenerationTask | str:
    """Return the task, or its fault."""
    turn, kind = turn_of(row.get("task_id")), _first(row.get("answerability", row.get("Answerability")))
    if turn is None:
        return f"task_id is {row.get('task_id')!r:.80}, expected CONVERSATION<::>TURN."
    if kind not in TYPES:
        return f"answerability is {row.get('answerability')!r:.80}, expected one of {', '.join(TYPES)}."
    said = _said(row.get("input"))
    if isinstance(said, str):
        return said
    if len(said) != 2 * turn.number - 1 or str(_given(row.get("turn")) or turn.number) != str(turn.number):
        count = (len(said) + 1) // 2
        return f"turn {turn.number} by its task_id, {row.get('turn')!r:.20} by its turn, {count} by its input."
    found = [passage_of_row(each, each.get("document_id")) for each in _objects(_given(row.get("contexts")))]
    wrong = next((each for each in found if isinstance(each, str)), "")
    if wrong:
        return f"contexts: {wrong}."
    reply = next((_given(each.get("text")) for each in _objects(_given(row.get("targets")))), "")
    return GenerationTask(
        turn,
        str(_given(row.get("Collection", row.get("collection"))) or ""),
        TYPES[kind],
        said,
        tuple(each for each in found if isinstance(each, Document)),
        reply if isinstance(reply, str) else "",
        dict(_labels(row, kind)),
    )


def _said(value: object) -> tuple[str, ...] | str:
    """Return the messages of user and agent in turn, or their fault."""
    texts = [(_ROLES.get(str(each.get("speaker"))), _given(each.get("text"))) for each in _objects(_given(value))]
    wanted = ["user", "assistant"] * len(texts)
    for place, ((role, text), expected) in enumerate(zip(texts, wanted, strict=False), 1):
        if role != expected:
            return f"input: message {place} is not the {'user' if expected == 'user' else 'agent'}'s: turns alternate."
        if not isinstance(text, str) or not text.strip():
            return f"input: message {place} has no text."
    if not len(texts) % 2:
        return "input: a list of messages that ends with the user's question was expected."
    return tuple(str(text).strip() for _, text in texts)


def _labels(row: Mapping[str, Any], kind: str) -> Iterator[tuple[str, str]]:
    yield "answerability", kind.lower()
    for label, key in (("question_kind", "Question Type"), ("multi_turn", "Multi-Turn")):
        value = _given(row.get(key))
        named = value if isinstance(value, list) else [value]
        said = ", ".join(str(each) for each in named if each and each != "N/A")
        if said:
            yield label, said
    yield "collection", str(_given(row.get("Collection", row.get("collection"))) or "")


def _first(value: object) -> str:
    return str(value[0]) if isinstance(value, list) and value else str(value)


def _objects(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


# Reader of MTRAG and MTRAG-UN: conversations whose turns ask a corpus of passages (Katsis et al. 2025).

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
    """Return the judged queries in the order of their file, with the user's earlier questions."""
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
    """Return the texts of a file by turn, each with its place. The turns of a conversation are in their order."""
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
    """Return the text of a message, without the mark of its speaker."""
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
