"""A user that a model of role ``user`` plays. It is told the scenario without its gold, and what was said so far.

Each of its moves is a pipeline: what the user says is the answer of a row. So its calls are recorded, limited, timed
and paid for as all are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_harness.errors import ModelOutputError
from rag_harness.models.prompts import Prompts
from rag_harness.models.replies import json_of
from rag_harness.models.until_right import EMPTY, REMEMBERED, TRIES, Fault
from rag_harness.pipelines.trace import Trace
from rag_harness.protocols import ChatModel
from rag_harness.types import Answer, Decision, Message, PipelineOutput, Query, Scenario
from rag_harness.users.moves import Ends, Exchange, Move, Says, has_said
from rag_harness.users.role import out_of_role

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
    """Return what a model is told of a scenario."""
    parts = [f"Writes: {scenario.persona}"] if scenario.persona else []
    parts += [f"Wants: {scenario.goal}"] if scenario.goal else []
    parts += [f"Knows: {cue}: {fact}" if cue else f"Knows: {fact}" for cue, fact in scenario.facts]
    parts += [f"Wants to ask: {each}" for each in scenario.asks]
    return "\n".join(parts) or "Wants an answer to the first question."


def so_far(before: Sequence[Exchange]) -> str:
    """Return the conversation as the person sees it."""
    return "\n\n".join(f"Person: {each.said}\n\nAssistant: {each.reply}" for each in before)


@dataclass(frozen=True, slots=True)
class ModelMove:
    """What a model says next, as a pipeline.

    Attributes:
        chat: the model of role ``user``.
        prompts: its two templates: ``{context}`` is the person, ``{question}`` the conversation.
        scenario: what it plays.
        before: the turns that are over; at least one.
    """

    chat: ChatModel
    prompts: Prompts
    scenario: Scenario
    before: tuple[Exchange, ...]

    @property
    def text(self) -> str:
        """What the model is told, in one text."""
        return f"The person:\n{told_of(self.scenario)}\n\nThe conversation so far:\n{so_far(self.before)}"

    async def answer(self, query: Query) -> PipelineOutput:  # noqa: ARG002 - its text is what the prompts have
        """Return what the user says. A message that leaves its role is asked for again, twice at most.

        Raises:
            ModelOutputError: no reply could be read.
        """
        trace, messages = Trace(), self.prompts.filled(told_of(self.scenario), so_far(self.before))
        reply, move = "", self._move("")
        for _ in range(TRIES):
            reply = (await trace.complete(self.chat, messages, _FORMAT, stage=SAYS, role="user")).text
            move = self._move(reply)
            fault = move.text if isinstance(move, Fault) else move.why if isinstance(move, _Left) else ""
            if not fault:
                break
            again = Message("user", _AGAIN.replace("{fault}", fault))
            messages = [*messages, Message("assistant", reply[:REMEMBERED] or "(nothing)"), again]
        if isinstance(move, Fault):
            raise ModelOutputError(f"The model of role user has not said what comes next: {move.text}", reply)
        return _output(trace, move, reply)

    def _move(self, reply: str) -> Says | Ends | _Left | Fault:
        found = json_of(reply)
        text, done = (found or {}).get("say"), (found or {}).get("done")
        if not isinstance(text, str) or not isinstance(done, bool):
            return Fault('it is no JSON with a text "say" and true or false as "done"')
        text = " ".join(text.split())
        if done:
            return Ends(f"the user ends it: {text[:_LONGEST_WHY] or 'without a word'}")
        if not text or len(text) > LONGEST_SAID:
            return Fault(f"it has more than {LONGEST_SAID} characters" if text else EMPTY)
        if has_said(text, self.before):
            return Ends("the user repeats itself")
        why = out_of_role(text, self.scenario, self.before)
        return _Left(text, why) if why else Says(text)


@dataclass(frozen=True, slots=True)
class _Left:
    """A message that does not follow from the scenario, and why not."""

    text: str
    why: str


def _output(trace: Trace, move: Says | Ends | _Left, reply: str) -> PipelineOutput:
    outcome = SAYS if isinstance(move, Says) else ENDS if isinstance(move, Ends) else LEAVES
    trace.decisions.append(Decision(MOVE, outcome, reason="" if isinstance(move, Says) else move.why))
    return trace.output(Answer(move.why if isinstance(move, Ends) else move.text, raw=reply))


def move_of(outcome: str, text: str, reason: str) -> Move:
    """Return the move that a row has: the outcome of its decision, its answer, and the decision's reason."""
    if outcome == SAYS:
        return Says(text)
    return Ends(reason) if outcome == ENDS else left_role(text, reason)


def left_role(text: str, why: str) -> Ends:
    """Return the end of a conversation whose user said what does not follow from its scenario."""
    shown = text if len(text) <= _LONGEST_WHY else f"{text[:_LONGEST_WHY]}…"
    return Ends(f"{LEFT}: {why}: “{shown}”", out_of_role=True)
