"""Simulated users, by a script or by a model, who play a scenario of a conversation."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_harness.core.errors import ModelOutputError
from rag_harness.core.protocols import ChatModel
from rag_harness.core.registry import noting
from rag_harness.core.settings import Settings
from rag_harness.core.text.comparison import words_of
from rag_harness.core.text.language_detection import asked_language
from rag_harness.core.text.languages import ENGLISH
from rag_harness.core.text.terms import figures, stem, terms, tokens
from rag_harness.core.types import Answer, Decision, Expectation, Message, PipelineOutput, Query, Scenario
from rag_harness.models.prompts import EMPTY, Fault, Prompts, draft_until_right, json_of
from rag_harness.pipelines.trace import Trace
from rag_harness.records.expectations import AnswerSeen, looked_at, tells_by_words

GOAL = "the goal is reached"
GIVES_UP = "the user gives up"


@dataclass(frozen=True, slots=True)
class Exchange:
    """A turn that is over, as its user knows it.

    Attributes:
        said: the user's message.
        reply: what came back.
        declined: whether the reply says that it does not know.
        failed: whether the turn failed; the reply is then the error that a user gets.
        kept: the numbers, from 0, of the scenario's ``reached`` that the reply meets.
    """

    said: str
    reply: str
    declined: bool = False
    failed: bool = False
    kept: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class SayMove:
    """The user says this next."""

    text: str


@dataclass(frozen=True, slots=True)
class EndMove:
    """The conversation is over, with the reason. ``out_of_role``: the message did not follow from the scenario."""

    why: str
    out_of_role: bool = False


Move = SayMove | EndMove


def is_reached(scenario: Scenario, before: Sequence[Exchange]) -> bool:
    """Return whether some reply has met each expectation of ``reached``; False without any."""
    kept = frozenset[int]().union(*(each.kept for each in before))
    return bool(scenario.reached) and len(kept) == len(scenario.reached)


def ends_by_rules(scenario: Scenario, before: Sequence[Exchange], has_more: bool) -> Move | None:
    """Return the move that rules decide for every simulated user; None where the user has to write the next message.

    Args:
        scenario: the scenario.
        before: the turns that are over.
        has_more: whether the user may have questions beside the goal.
    """
    if not before:
        return SayMove(scenario.opening)
    if is_reached(scenario, before) and not has_more:
        return EndMove(GOAL)
    # Two questions may have one answer; a user who gets it three times is in a loop.
    if _replies_repeat(before, 3 if has_more else 2):
        return EndMove("the answers repeat each other")
    if not before[-1].failed:
        return None
    # The user sees that something went wrong, and asks again, once.
    failed_twice = len(before) > 1 and before[-2].failed
    return EndMove(f"{GIVES_UP}: two turns failed") if failed_twice else SayMove(before[-1].said)


def has_said(text: str, before: Sequence[Exchange]) -> bool:
    """Return whether the user has written these words in some turn, alone or among others."""
    wanted = _plain(text)
    return any(f" {wanted} " in f" {_plain(each.said)} " for each in before)


def _replies_repeat(before: Sequence[Exchange], times: int) -> bool:
    """Return whether the last replies are the same words so many times. What declines or failed does not count."""
    last = [each for each in before[-times:] if not (each.declined or each.failed)]
    return len(last) == times and len({_plain(each.reply) for each in last}) == 1


def questions_in(reply: str) -> Iterator[str]:
    """Yield the questions of a reply, each from the sentence before it on."""
    *asking, _ = reply.split("?")
    for part in asking:
        start = max(part.rfind(mark) for mark in ".!\n:")
        yield f"{part[start + 1 :].strip()}?"


def _plain(text: str) -> str:
    return " ".join(words_of(text))


# A user without a model: a script over the scenario. It says nothing but what the scenario says, word for word.
#
# It opens; gives the facts that an answer asks for; asks the next question when it has an answer; says a declined
# question once more, with all it knows; tells what nobody asked for; and ends at the goal, in a loop, or when nothing
# is left to say. The persona has no part in it.

_POLITE = ("anything else", "something else", "help you", "let you know", "like to know more", "more information",
           "other questions", "further questions", "does that help", "does this help")  # fmt: skip
"""Parts of questions that ask for nothing."""
_KINDS = tuple(
    (frozenset(asking.split()), frozenset(told.split()))
    for asking, told in (
        ("many much old long", "one two three four five six seven eight nine ten twelve"),
        ("when day days date dates", "monday tuesday wednesday thursday friday saturday sunday today tomorrow weekend "
         "january february march april may june july august september october november december"),
    )
)  # fmt: skip
"""Words that ask for a number or a day, and words that tell one. A figure tells both."""


def scripted(scenario: Scenario, before: Sequence[Exchange]) -> Move:
    """Return the user's next message after these turns, or the reason why the conversation is over."""
    asks = [each for each in scenario.asks if not has_said(each, before)]
    if found := ends_by_rules(scenario, before, bool(asks)):
        return found
    said = next(_moves(scenario, before, asks), None)
    return SayMove(said) if said else EndMove(_why_over(scenario, before[-1]))


def _moves(scenario: Scenario, before: Sequence[Exchange], asks: Sequence[str]) -> Iterator[str]:
    """Yield the possible next messages, the best first. None of them repeats an earlier one."""
    last, known = before[-1], [each for each in scenario.facts if not has_said(each[1], before)]
    facts = [fact for _, fact in known]
    asked = [] if last.declined else [each for each in questions_in(last.reply) if _asks_for_something(each)]
    if asked and facts:
        told = [fact for cue, fact in known if any(_is_asked_for(cue, fact, each) for each in asked)]
        yield ", ".join(told or facts[:1])
    if last.declined and facts:
        yield f"{last.said} {', '.join(facts)}"
    yield from asks
    if facts and scenario.reached and not is_reached(scenario, before):
        yield ", ".join(facts)


def _why_over(scenario: Scenario, last: Exchange) -> str:
    if last.declined:
        return f"{GIVES_UP}: the answer declines"
    if scenario.reached:
        return f"{GIVES_UP}: nothing is left to ask, and the goal is not reached"
    return "all is asked"


def _asks_for_something(question: str) -> bool:
    said = question.casefold()
    return bool(terms(said)) and not any(each in said for each in _POLITE)


def _is_asked_for(cue: str, fact: str, question: str) -> bool:
    """Return whether a question asks for a fact: by a word of its cue or of the fact, or for a number or a day."""
    if terms(question) & (terms(fact) | terms(cue)):
        return True
    asked, told = (frozenset(each.casefold() for each in tokens(text)) for text in (question, fact))
    has_figure = any(each[0].isdigit() for each in told)
    return not cue and any(asked & asking and (told & telling or has_figure) for asking, telling in _KINDS)


# Rules by which what a simulated user says follows from its scenario and from what was said before.
#
# They find numbers, names and addresses that stand nowhere there, the answer before anybody has given it, answers to
# questions of the user's own, and the voice of the assistant. The rule for names reads English alone. What else a text
# claims, only a judge can tell.

_OTHER_VOICE = (
    *("as an ai", "language model", "how can i help", "how can i assist", "how may i help", "how may i assist"),
    *("i'm here to help", "i am here to help", "[source", "user:", "assistant:", "person:"),
    *("according to the documents", "according to the context", "based on the documents"),
    *("simulated user", "the simulation", "the scenario", "my persona"),
)
"""What the assistant says, or somebody who reads out the instructions."""
_OWN_ANSWER = re.compile(r"\?\s{0,9}(?:(?:yes|no)\s?[,.:;!]|the answer (?:is|to)\b)", re.IGNORECASE)
_ADDRESS = re.compile(r"https?://|www\.|@")
_FROM_TWO = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_TENS = {"twenty": "20", "thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "ninety": "90", "hundred": "100"}
_NUMBERS = {word: str(number) for number, word in enumerate(_FROM_TWO, 2)} | _TENS
"""Numbers as words. "One" is mostly none: the bigger one."""
_NO_NAMES = frozenset(("i", "ok", "tv", "id", "asap", "btw", "fyi", "thanks"))
_BEGINS = ".!?:;\n\"'“‘(-–—*"
_TITLE = 0.6
"""Share of capitalised words from which a message is written in capitals throughout."""


def out_of_role(text: str, scenario: Scenario, before: Sequence[Exchange]) -> str:
    """Return what in a user's words follows from nothing, as far as rules can tell; empty where all of it does."""
    facts = [text for fact in scenario.facts for text in fact]
    own = [scenario.opening, scenario.persona, scenario.goal, *scenario.asks, *facts]
    heard = [said for each in before for said in (each.said, each.reply)]
    known = "\n".join([*own, *heard])
    found = (
        _another_voice(text, known, [fact for _, fact in scenario.facts]),
        _leaked(text, scenario, own, before),
        _unheard("the number", _numbers(text) - _numbers(known)),
        _unheard("the name", _unknown_names(text, known)),
        "it has an address that stands nowhere before" if _ADDRESS.search(text) and not _ADDRESS.search(known) else "",
    )
    return next(filter(None, found), "")


def _another_voice(text: str, known: str, facts: Sequence[str]) -> str:
    plain = text.casefold().replace("’", "'")
    voice = next((each for each in _OTHER_VOICE if each in plain and each not in known.casefold()), "")
    if voice:
        return f"it speaks as somebody else: “{voice}”"
    own = _OWN_ANSWER.search(text)
    # A user who asks again and adds what it knows answers nothing: "Can I return it? Yes, it was opened."
    told = own is not None and any(fact and text[own.start() + 1 :].lstrip().startswith(fact) for fact in facts)
    return "it answers its own question" if own and not told else ""


def _leaked(text: str, scenario: Scenario, own: Sequence[str], before: Sequence[Exchange]) -> str:
    """Return the parts of the answer that the user states before any reply has stated them."""
    heard = frozenset[int]().union(*(each.kept for each in before))
    for number, demand in enumerate(scenario.reached):
        if number in heard or not tells_by_words(demand) or any(_keeps(each, demand) for each in own):
            continue
        if _keeps(text, demand):
            return f"it says the answer before it is given: {demand}"
    truth = _plain(scenario.ground_truth)
    known = [*own, *(each.reply for each in before)]
    if truth and _in(truth, text) and not any(_in(truth, each) for each in known):
        return f"it says the answer before it is given: “{scenario.ground_truth[:80]}”"
    return ""


def _keeps(text: str, demand: Expectation) -> bool:
    return bool(looked_at([demand], AnswerSeen(text, explained=False))[0].kept)


def _in(words: str, text: str) -> bool:
    return f" {words} " in f" {_plain(text)} "


def _unheard(what: str, unknown: frozenset[str]) -> str:
    return next((f"it says {what} {each}, which stands nowhere before" for each in sorted(unknown)), "")


def _numbers(text: str) -> frozenset[str]:
    words = (each.casefold() for each in tokens(text))
    return frozenset(map(_value, figures(text))) | {_NUMBERS[word] for word in words if word in _NUMBERS}


def _value(figure: str) -> str:
    try:
        return f"{float(figure):g}"
    except ValueError:  # a time of day, 10:30
        return figure


def _unknown_names(text: str, known: str) -> frozenset[str]:
    """Return the capitalised words that do not begin a sentence, and that are not in ``known`` in any form."""
    if asked_language(text) != ENGLISH:
        return frozenset()
    words = [(found[0], text[: found.start()].rstrip()[-1:]) for found in re.finditer(r"[^\W\d_]{2,40}", text)]
    capital = [(word, behind) for word, behind in words if word[0].isupper()]
    if len(capital) > 3 and len(capital) > _TITLE * len(words):
        return frozenset()
    forms = {stem(word.casefold()) for word in tokens(known)} | _NO_NAMES
    names = (word for word, behind in capital if behind and behind not in _BEGINS)
    return frozenset(word for word in names if stem(word.casefold()) not in forms)


# A user that a model of role ``user`` plays. It is told the scenario without its gold, and what was said so far.
#
# Each of its moves is a pipeline: what the user says is the answer of a row. So its calls are recorded, limited, timed
# and paid for as all are.

LONGEST_SAID = 1_000
"""The most characters of what a user says."""
MOVE, SAYS, ENDS, LEAVES = "move", "says", "ends", "leaves its role"
"""The decision in the row of a move, and its outcomes."""
LEFT = "the simulated user left its role"
_LONGEST_WHY = 200
_AGAIN = 'That cannot be used: {fault}. Write the message again, as JSON: {"say": "...", "done": false}'
_FORMAT = {
    "type": "json_schema",
    "json_schema": {
        "name": "next_message",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"say": {"type": "string"}, "done": {"type": "boolean"}},
            "required": ["say", "done"],
            "additionalProperties": False,
        },
    },
}


def told_of(scenario: Scenario) -> str:
    """Return the part of a prompt about a scenario."""
    parts = [f"Writes: {scenario.persona}"] if scenario.persona else []
    parts += [f"Wants: {scenario.goal}"] if scenario.goal else []
    parts += [f"Knows: {cue}: {fact}" if cue else f"Knows: {fact}" for cue, fact in scenario.facts]
    parts += [f"Wants to ask: {each}" for each in scenario.asks]
    return "\n".join(parts) or "Wants an answer to the first question."


def so_far(before: Sequence[Exchange]) -> str:
    """Return the conversation as the person knows it."""
    return "\n\n".join(f"Person: {each.said}\n\nAssistant: {each.reply}" for each in before)


@dataclass(frozen=True, slots=True)
class ModelMove:
    """The next message of a model, as a pipeline.

    Attributes:
        chat: the model of role ``user``.
        prompts: its two templates: ``{context}`` is the person, ``{question}`` the conversation.
        scenario: its scenario.
        before: the turns that are over; at least one.
    """

    chat: ChatModel
    prompts: Prompts
    scenario: Scenario
    before: tuple[Exchange, ...]

    @property
    def text(self) -> str:
        """The prompt, in one text."""
        return f"The person:\n{told_of(self.scenario)}\n\nThe conversation so far:\n{so_far(self.before)}"

    async def answer(self, query: Query) -> PipelineOutput:  # noqa: ARG002 - its text is what the prompts have
        """Return the user's message. A message that leaves its role is requested again, twice at most.

        Raises:
            ModelOutputError: no reply could be read.
        """
        trace, messages = Trace(), self.prompts.filled(told_of(self.scenario), so_far(self.before))
        replies: list[tuple[str, SayMove | EndMove | _LeftRole | Fault]] = []

        async def ask(asked: Sequence[Message]) -> str:
            return (await trace.complete(self.chat, asked, _FORMAT, stage=SAYS, role="user")).text

        async def read(reply: str) -> SayMove | EndMove | Fault:
            move = self._move(reply)
            replies.append((reply, move))
            return Fault(move.why) if isinstance(move, _LeftRole) else move

        await draft_until_right(ask, messages, read, _AGAIN)
        reply, move = replies[-1]
        if isinstance(move, Fault):
            raise ModelOutputError(f"The model of role user has not said what comes next: {move.text}", reply)
        return _output(trace, move, reply)

    def _move(self, reply: str) -> SayMove | EndMove | _LeftRole | Fault:
        found = json_of(reply)
        text, done = (found or {}).get("say"), (found or {}).get("done")
        if not isinstance(text, str) or not isinstance(done, bool):
            return Fault('it is not JSON with a text "say" and true or false as "done"')
        text = " ".join(text.split())
        if done:
            return EndMove(f"the user ends it: {text[:_LONGEST_WHY] or 'without a word'}")
        if not text or len(text) > LONGEST_SAID:
            return Fault(f"it has more than {LONGEST_SAID} characters" if text else EMPTY)
        if has_said(text, self.before):
            return EndMove("the user repeats itself")
        why = out_of_role(text, self.scenario, self.before)
        return _LeftRole(text, why) if why else SayMove(text)


@dataclass(frozen=True, slots=True)
class _LeftRole:
    """A message that does not follow from the scenario, and why not."""

    text: str
    why: str


def _output(trace: Trace, move: SayMove | EndMove | _LeftRole, reply: str) -> PipelineOutput:
    outcome = SAYS if isinstance(move, SayMove) else ENDS if isinstance(move, EndMove) else LEAVES
    trace.decisions.append(Decision(MOVE, outcome, reason="" if isinstance(move, SayMove) else move.why))
    return trace.output(Answer(move.why if isinstance(move, EndMove) else move.text, raw=reply))


def move_of(outcome: str, text: str, reason: str) -> Move:
    """Return the move that a row has: the outcome of its decision, its answer, and the decision's reason."""
    if outcome == SAYS:
        return SayMove(text)
    return EndMove(reason) if outcome == ENDS else left_role(text, reason)


def left_role(text: str, why: str) -> EndMove:
    """Return the end of a conversation whose user wrote a message that does not follow from its scenario."""
    shown = text if len(text) <= _LONGEST_WHY else f"{text[:_LONGEST_WHY]}…"
    return EndMove(f"{LEFT}: {why}: “{shown}”", out_of_role=True)


SCRIPT = "a script"
"""Who plays the user without a model."""


@dataclass(frozen=True, slots=True)
class SimulatedUser:
    """Who plays the users of a run.

    Attributes:
        by: ``a script``, or the model's name.
        ingredients: the settings that decide the messages, by name; part of the experiment's fingerprint.
        code: the modules that say it.
    """

    by: str = SCRIPT
    ingredients: Mapping[str, Any] = field(default_factory=dict)
    code: Collection[str] = (scripted.__module__,)
    _model: tuple[ChatModel, Prompts] | None = None

    def known(self, scenario: Scenario, before: Sequence[Exchange]) -> Move | None:
        """Return the user's message, or the end; None where its model has to be asked."""
        return ends_by_rules(scenario, before, bool(scenario.asks)) if self._model else scripted(scenario, before)

    def move(self, scenario: Scenario, before: Sequence[Exchange]) -> ModelMove:
        """Return the pipeline that asks the model what comes next."""
        assert self._model is not None
        return ModelMove(*self._model, scenario, tuple(before))


def played_by(settings: Settings) -> str:
    """Return who plays the users of a run, for people."""
    return settings.user_model or SCRIPT


def simulated_user(settings: Settings, parts: Callable[[], Any]) -> SimulatedUser:
    """Return the user of a run. ``parts`` returns the run's parts, which only a user that is a model needs."""
    if not settings.user_model:
        return SimulatedUser()
    with noting() as made:
        chat, prompts = parts().chat("user"), parts().prompts("user")
    code = {ModelMove.__module__, *(module for each in made.code.values() for module in each)}
    return SimulatedUser(settings.user_model, dict(made.of), code, (chat, prompts))
