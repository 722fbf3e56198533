"""The simulated model ``simulated/known-faults``, which makes known faults at stated rates."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from rag_harness.core.errors import DataError
from rag_harness.core.text.terms import without_marks
from rag_harness.data.query_lines import rows_of_table
from rag_harness.data.record_files import is_table
from rag_harness.models.reader import Receive, RequestError, Scope, Send
from rag_harness.models.reader_prompt import content_text, parse_prompt

__all__ = ["SimulatedAnswer", "SimulatedModel"]


# The faults of the simulated model and their rates. The numbers were chosen before anybody had looked at a verdict.
#
# They are round, and large enough that 200 questions show each fault. They describe no real model.

WRONG_MEMORY = "wrong memory"
INVENTED = "invented"
IGNORED = "ignored the context"
MIXED = "mixed sources"
GUESSED = "answered without evidence"
DECLINED = "declined in spite of evidence"


@dataclass(frozen=True, slots=True)
class FaultRate:
    """How often a fault is made where it is possible.

    Attributes:
        rate: share of the answers to prompts that ask for no reasoning.
        reasoned: share of the answers to prompts that ask for reasoning steps.
        possible: where the fault is possible.
        made: what the answer is then.
    """

    rate: float
    reasoned: float
    possible: str
    made: str


FAULTS = {
    WRONG_MEMORY: FaultRate(
        0.55,
        0.55,
        "the model answers from memory, and the documents answer the question",
        "the gold answer with another number, another name or a turned negation, or the answer to another question",
    ),
    INVENTED: FaultRate(
        0.70,
        0.70,
        "the model answers from memory, and no document answers the question",
        "the answer to another question, changed in the same way; otherwise it declines",
    ),
    IGNORED: FaultRate(0.20, 0.08, "the prompt has a context", "an answer from memory, without a citation"),
    MIXED: FaultRate(
        0.20,
        0.08,
        "the context has all evidence, and a source of another page",
        "the gold answer, and a sentence of the other page, cited as if it stood on the right one",
    ),
    GUESSED: FaultRate(
        0.40,
        0.12,
        "the context lacks evidence, or no document answers the question",
        "the nearest sentence of the context with another number, another name or a turned negation, cited",
    ),
    DECLINED: FaultRate(0.10, 0.05, "the context has all evidence", "I don't know"),
}
"""Each fault with its rates. Without a fault, the model gives the gold answer and cites the sources of its evidence
where the context has all of it, and declines where it has not."""


def fault_rate(fault: str, reasons: bool) -> float:
    """Return the rate of ``fault`` for a prompt that asks for reasoning, or for one that does not."""
    return FAULTS[fault].reasoned if reasons else FAULTS[fault].rate


# Draws by digest: the same words give the same number, on every machine and in every version of Python.

_T = TypeVar("_T")
_NAME = "known-faults"


def drawn(*words: object) -> float:
    """Return a number of at least 0 and less than 1, evenly spread over different ``words``."""
    said = "\0".join([_NAME, *map(str, words)])
    digest = blake2b(said.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def one_of(items: Sequence[_T], *words: object) -> _T:
    """Return one of ``items``, which must not be empty."""
    return items[int(drawn(*words) * len(items))]


Sources = Sequence[tuple[str, str]]
"""A context: the file and the text of each source, in the order of the prompt."""


@dataclass(frozen=True, slots=True)
class KnownQuestion:
    """A question with its gold.

    Attributes:
        text: the question.
        answer: the gold answer.
        pages: the files that answer it; empty where no document does.
        quotes: file and text of each quote that the answer needs.
        topic: the category of the question; empty for none.
    """

    text: str
    answer: str
    pages: frozenset[str]
    quotes: tuple[tuple[str, str], ...]
    topic: str

    def evidence_in(self, context: Sources) -> list[int]:
        """Return the numbers of the sources that hold the evidence, from 1; none unless all evidence is there.

        A question without quotes has its evidence where a source of each of its pages is.
        """
        if not self.quotes:
            found = [n for n, (file, _) in enumerate(context, 1) if file in self.pages]
            return found if self.pages <= {context[n - 1][0] for n in found} else []
        holding = list[int]()
        sources = [(n, name, _one_line(text)) for n, (name, text) in enumerate(context, 1)]
        for file, quote in self.quotes:
            where = [n for n, name, text in sources if name == file and _one_line(quote) in text]
            if not where:
                return []
            holding += where[:1]
        return sorted(set(holding))


def question_key(text: str) -> str:
    """Return the form in which questions are looked up: case and white space do not count."""
    return " ".join(text.casefold().split())


def read_questions(file: Path, mapped: Mapping[str, str] = MappingProxyType({})) -> dict[str, KnownQuestion]:
    """Return the questions of a ``queries.jsonl`` by ``question_key``. Lines that are not questions are left out.

    Args:
        file: the lines, or a table of questions.
        mapped: the column of each field of a table, where its name is another one.

    Raises:
        DataError: the file cannot be read.
    """
    rows = (_row(line) for line in _lines(file, mapped))
    found = [_question(row) for row in rows if isinstance(row.get("query"), str) and row.get("ground_truth")]
    return {question_key(each.text): each for each in found}


def _lines(file: Path, mapped: Mapping[str, str]) -> Iterable[str]:
    if is_table(file):
        return (each.text for each in rows_of_table(file, mapped))
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"The simulated model knows the questions of {file}, which cannot be read: {error}") from error


def _row(line: str) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}


def _question(row: Mapping[str, Any]) -> KnownQuestion:
    pages = row.get("context_reference") or ()
    quotes = tuple((each["filename"], each["quote"]) for each in row.get("evidence") or ())
    named = frozenset([pages] if isinstance(pages, str) else pages) | {file for file, _ in quotes}
    topic = str((row.get("metadata") or {}).get("category", ""))
    return KnownQuestion(row["query"], str(row["ground_truth"]), named, quotes, topic)


def _one_line(text: str) -> str:
    return " ".join(without_marks(text).split())


_NUMBER = re.compile(r"(?<![\w.,:/-])(\d{1,3}(?:,\d{3})+|\d+)(?![\w:/-]|[.,:]\d)")
_PROPER_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}(?: [A-Z][a-z]+)*")
_VERDICT = re.compile(r"\A(Yes|No)\b")
_TURNED = {"Yes": "No", "No": "Yes"}
_NOT = re.compile(r"\b(is|are|can|may|must|will|does|do|has|have) not\b|\b(can)not\b|\b(can)['’]t\b")
_VERB = re.compile(r"\b(is|are|can|may|must|will|has|have)\b")
_MARKS = re.compile(r"[*_`>#|]|^\s*(?:[-+]|\d{1,3}[.)])\s+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_WORD = re.compile(r"\w{4,}")
_SHORTEST, _LONGEST = 20, 300


def changed(text: str, names: Sequence[str], *draw: object) -> str:
    """Return ``text`` with one thing changed; unchanged where it has no number, no name and nothing to negate.

    Args:
        text: a right statement.
        names: names to put in place of one in the text.
        draw: what the choice is drawn by.
    """
    ways: list[Callable[[], str]] = [
        lambda: _other_number(text, *draw),
        lambda: _other_name(text, names, *draw),
        lambda: _negated(text),
    ]
    made = [new for new in (way() for way in ways) if new != text]
    return one_of(made, *draw, "way") if made else text


def names_in(texts: Iterable[str]) -> list[str]:
    """Return the names in ``texts``: words with a capital letter that begin no sentence."""
    return sorted({name for text in texts for name in _PROPER_NAME.findall(text)})


def nearest_sentence(question: str, context: Sources) -> tuple[str, int]:
    """Return the sentence that shares most words with ``question``, and its source's number; "" and 0 without any."""
    asked = _words(question)
    found = [(sentence, n) for n, (_, text) in enumerate(context, 1) for sentence in _sentences(text)]
    return max(found, key=lambda each: len(asked & _words(each[0])), default=("", 0))


def _other_number(text: str, *draw: object) -> str:
    found = _NUMBER.search(text)
    if found is None:
        return text
    value = int(found[1].replace(",", ""))
    is_year = 1900 <= value < 2100 and "," not in found[1]
    others = [value - 1, value + 1, value + 2] if is_year else [2 * value, 3 * value, value + max(1, value // 2)]
    other = one_of([each for each in others if each != value] or [value + 1], *draw, "number")
    return f"{text[: found.start()]}{other:{',' if ',' in found[1] else ''}}{text[found.end() :]}"


def _other_name(text: str, names: Sequence[str], *draw: object) -> str:
    found = _PROPER_NAME.search(text)
    others = [name for name in names if found and name != found[0]]
    if found is None or not others:
        return text
    return f"{text[: found.start()]}{one_of(others, *draw, 'name')}{text[found.end() :]}"


def _negated(text: str) -> str:
    if _VERDICT.match(text):
        return _VERDICT.sub(lambda said: _TURNED[said[1]], text, count=1)
    if _NOT.search(text):
        return _NOT.sub(lambda said: said[1] or said[2] or said[3], text, count=1)
    return _VERB.sub(r"\1 not", text, count=1)


def _sentences(text: str) -> list[str]:
    """Return the sentences of the running text. Headings, tables and questions are left out."""
    lines = (line.strip() for line in text.splitlines())
    prose = (_MARKS.sub("", line).strip() for line in lines if not line.startswith(("#", "|")))
    found = (" ".join(sentence.split()) for line in prose for sentence in _SENTENCE_END.split(line))
    return [each for each in found if _SHORTEST <= len(each) <= _LONGEST and each[-1] in ".!"]


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


I_DONT_KNOW = "I don't know."
"""What the model says when it declines."""


@dataclass(frozen=True, slots=True)
class SimulatedAnswer:
    """An answer, and the truth about it.

    Attributes:
        text: the reply.
        outcome: whether that is right, wrong, or no answer. An answer with a false part or a wrong citation is wrong.
        fault: the fault that was planted, a key of ``FAULTS``; empty for none.
        steps: reasoning steps. They name the sources that were used, and no fault.
    """

    text: str
    outcome: Literal["right", "wrong", "declined"]
    fault: str = ""
    steps: tuple[str, ...] = ()


class SimulatedModel:
    """A model that knows questions and their gold, and makes faults at the rates of ``FAULTS``.

    Whether a question meets a fault is drawn once a seed and question, whatever the context is. So two experiments
    differ only in what their contexts hold, and in the lower rates of reasoning.

    Args:
        questions: the questions by ``question_key``.
    """

    def __init__(self, questions: Mapping[str, KnownQuestion]) -> None:
        self._questions = questions
        self._answered = [each for each in questions.values() if each.pages]
        self._names = names_in(each.answer for each in self._answered)

    @classmethod
    def reading(cls, queries: Path, mapped: Mapping[str, str] = MappingProxyType({})) -> SimulatedModel:
        """Return a model that knows the questions of a ``queries.jsonl``, or of a table by the columns of ``mapped``.

        Raises:
            DataError: the file cannot be read.
        """
        return cls(read_questions(queries, mapped))

    def answer(self, question: str, context: Sources = (), *, seed: int = 7, reasons: bool = False) -> SimulatedAnswer:
        """Answer a question from ``context``, or from memory where that is empty. A strange question is declined.

        Args:
            question: a question of the file that the model knows.
            context: file and text of each source.
            seed: another seed makes other faults.
            reasons: whether the prompt asks for reasoning steps, with which the model makes fewer faults.
        """
        known = self._questions.get(question_key(question))
        if known is None:
            return SimulatedAnswer(I_DONT_KNOW, "declined", steps=_steps(context, ()))
        return _Trial(self, known, context, seed, reasons).answer()

    def from_memory(self, known: KnownQuestion, seed: int) -> SimulatedAnswer:
        """Return the answer from the model's memory. It is the same each time."""
        key = question_key(known.text)
        fault = WRONG_MEMORY if known.pages else INVENTED
        is_wrong = drawn(seed, key, fault) < fault_rate(fault, reasons=False)
        if not is_wrong:
            return SimulatedAnswer(known.answer, "right") if known.pages else SimulatedAnswer(I_DONT_KNOW, "declined")
        other = self._other_answer(known, seed)
        said = changed(known.answer if known.pages else other, self._names, seed, key, fault)
        is_other = known.pages and (drawn(seed, key, "other question") < 0.25 or said == known.answer)
        return SimulatedAnswer(other if is_other else said, "wrong", fault)

    def changed(self, sentence: str, *draw: object) -> str:
        """Return a sentence with one thing changed."""
        return changed(sentence, self._names, *draw)

    def _other_answer(self, known: KnownQuestion, seed: int) -> str:
        others = [each for each in self._answered if not each.pages & known.pages and each.answer != known.answer]
        alike = [each for each in others if each.topic == known.topic] or others
        return one_of(alike, seed, question_key(known.text), "other").answer if alike else "Certainly."


@dataclass(frozen=True, slots=True)
class _Trial:
    """One question with one context."""

    model: SimulatedModel
    known: KnownQuestion
    context: Sources
    seed: int
    reasons: bool

    def answer(self) -> SimulatedAnswer:
        if not self.context:
            return self._remembered("")
        if self._makes(IGNORED):
            return self._remembered(IGNORED)
        holding = self.known.evidence_in(self.context)
        return self._read(holding) if holding else self._without_evidence()

    def _makes(self, fault: str) -> bool:
        return drawn(self.seed, question_key(self.known.text), fault) < fault_rate(fault, self.reasons)

    def _remembered(self, fault: str) -> SimulatedAnswer:
        found = self.model.from_memory(self.known, self.seed)
        return SimulatedAnswer(found.text, found.outcome, fault or found.fault, _steps(self.context, ()))

    def _read(self, holding: list[int]) -> SimulatedAnswer:
        if self._makes(DECLINED):
            return SimulatedAnswer(I_DONT_KNOW, "declined", DECLINED, _steps(self.context, ()))
        said = f"{self.known.answer} {' '.join(f'[Source {n}]' for n in holding)}"
        pages = {self.context[n - 1][0] for n in holding}
        # Sources of the right pages keep their number, and have no text, so that no sentence of theirs is taken.
        strange = [(file, "" if file in pages else text) for file, text in self.context]
        sentence, _ = nearest_sentence(self.known.text, strange)
        if sentence and self._makes(MIXED):
            mixed = f"{said} {sentence} [Source {holding[0]}]"
            return SimulatedAnswer(mixed, "wrong", MIXED, _steps(self.context, holding))
        return SimulatedAnswer(said, "right", "", _steps(self.context, holding))

    def _without_evidence(self) -> SimulatedAnswer:
        sentence, number = nearest_sentence(self.known.text, self.context)
        if not sentence or not self._makes(GUESSED):
            return SimulatedAnswer(I_DONT_KNOW, "declined", "", _steps(self.context, ()))
        said = self.model.changed(sentence, self.seed, question_key(self.known.text), GUESSED)
        return SimulatedAnswer(f"{said} [Source {number}]", "wrong", GUESSED, _steps(self.context, [number]))


def _steps(context: Sources, used: list[int] | tuple[int, ...]) -> tuple[str, ...]:
    sources = ", ".join(map(str, used)) or "none"
    return (f"Simulated step: {len(context)} sources were read.", f"Simulated step: sources used: {sources}.")


# The ASGI app of the simulated model, with the interface of OpenAI's chat completions. It is called in process.

MODEL = "simulated/known-faults"
_SEED = 7
_KEYS = {"reasoning_steps", "answer"}


class SimulatedApp:
    """Serves POST …/chat/completions with the answers of ``model``. The body of the reply does not name the fault."""

    def __init__(self, model: SimulatedModel) -> None:
        self._model = model

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if scope["type"] != "http" or not str(scope["path"]).endswith("/chat/completions"):
                raise RequestError(404, f"The simulated model has no {scope.get('path')!r}, only /v1/chat/completions.")
            body = _parsed(await _content(receive))
            status, kind, parts = 200, b"application/json", _replies(body, self._said(body))
        except RequestError as error:
            status, kind, parts = error.status, b"application/json", iter([json.dumps(error.body)])
        else:
            kind = b"text/event-stream; charset=utf-8" if body.get("stream") else kind
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", kind)]})
        await send({"type": "http.response.body", "body": "".join(parts).encode()})

    def _said(self, body: Mapping[str, Any]) -> str:
        keys, messages = _wanted_keys(body), body["messages"]
        prompt, seed = parse_prompt(messages), body.get("seed", _SEED)
        sources = [(source.filename, source.text) for source in prompt.sources]
        reasons = "reasoning_steps" in keys
        found = self._model.answer(prompt.question, sources, seed=seed, reasons=reasons)
        return _in_form(found, reasons) if keys else found.text


def _in_form(found: SimulatedAnswer, reasons: bool) -> str:
    steps = {"reasoning_steps": list(found.steps)} if reasons else {}
    return json.dumps({**steps, "answer": found.text}, ensure_ascii=False)


async def _content(receive: Receive) -> bytes:
    content, more = b"", True
    while more:
        event = await receive()
        content, more = content + event.get("body", b""), event.get("more_body", False)
    return content


def _parsed(content: bytes) -> dict[str, Any]:
    try:
        body: Any = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise RequestError(400, f"The request body is not valid JSON: {error}.") from error
    if not isinstance(body, dict):
        raise RequestError(400, "The request body must be a JSON object.")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(each, dict) for each in messages):
        raise RequestError(400, "'messages' must be a non-empty list of objects.", param="messages")
    if body.get("model") != MODEL:
        raise RequestError(404, f"There is no model {body.get('model')!r} here, only {MODEL!r}.", "model_not_found")
    return body


def _wanted_keys(body: Mapping[str, Any]) -> set[str]:
    """Return the keys of the requested JSON object; none means plain text."""
    form = body.get("response_format")
    described = form.get("json_schema") if isinstance(form, Mapping) else None
    schema = described.get("schema") if isinstance(described, Mapping) else None
    if schema is None:
        return set()
    keys = set(schema.get("properties") or ()) if isinstance(schema, Mapping) else set[str]()
    if "answer" not in keys or not keys <= _KEYS:
        message = f"The simulated model fills the properties {sorted(_KEYS)}; the schema has {sorted(keys)}."
        raise RequestError(400, message, param="response_format")
    return keys


def _replies(body: Mapping[str, Any], said: str) -> Iterator[str]:
    """Yield the reply: one JSON object, or the events of a stream. The answer is one event: recordings stay small."""
    is_streamed = bool(body.get("stream"))
    deciding = json.dumps([body["model"], body["messages"], body.get("response_format"), body.get("seed")])
    kind = f"chat.completion{'.chunk' * is_streamed}"
    identity = hashlib.sha256(deciding.encode()).hexdigest()[:16]
    reply = {"id": f"chatcmpl-{identity}", "object": kind, "created": 0, "model": MODEL}
    where = "delta" if is_streamed else "message"
    reply["choices"] = [{"index": 0, where: {"role": "assistant", "content": said}, "finish_reason": "stop"}]
    reply["usage"] = _usage(body["messages"], said)
    text = json.dumps(reply, ensure_ascii=False)
    yield from [f"data: {text}\n\n", "data: [DONE]\n\n"] if is_streamed else [text]


def _usage(messages: list[dict[str, Any]], said: str) -> dict[str, int]:
    """Estimate tokens at four characters each, as for the baseline reader. They cost nothing."""
    prompt = sum(-(-len(content_text(message.get("content"))) // 4) for message in messages)
    completion = -(-len(said) // 4)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
