"""What a model thought, apart from what it answered.

Servers without a parser of reasoning send both as one text: ``<think>…</think>`` before the answer (DeepSeek, Qwen,
gpt-oss behind Ollama and vLLM), or the closing mark alone where the template has the opening one.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_NAMES = "think|thinking|thought|reasoning|reflection"
_OPEN = re.compile(rf"\s*(?:<({_NAMES})>|\[(THINK)\]|◁(think)▷)", re.IGNORECASE)
_OPENING = re.compile(rf"<(?:{_NAMES})>", re.IGNORECASE)
_CLOSE = re.compile(rf"</(?:{_NAMES})>|\[/THINK\]|◁/think▷", re.IGNORECASE)


class Parted(NamedTuple):
    """A reply in its two parts."""

    thought: str
    answer: str


def parted(reply: str) -> Parted:
    """Return what stands between the marks of reasoning, and what is behind them.

    Reasoning that never closes is all that the model said. Marks in the middle of an answer belong to the answer.
    """
    if "<" not in reply and "[" not in reply and "◁" not in reply:
        return Parted("", reply)
    thoughts, rest = list[str](), reply
    while opened := _OPEN.match(rest):
        closed = _CLOSE.search(rest, opened.end())
        thoughts.append(rest[opened.end() : closed.start() if closed else len(rest)].strip())
        rest = rest[closed.end() :] if closed else ""
    if not thoughts and (closed := _closed_alone(reply)):
        thoughts, rest = [reply[: closed.start()].strip()], reply[closed.end() :]
    return Parted("\n\n".join(filter(None, thoughts)), rest.lstrip()) if thoughts else Parted("", reply)


def _closed_alone(reply: str) -> re.Match[str] | None:
    """Return the first closing mark at the end of a line, where no opening one stands before it."""
    closed = _CLOSE.search(reply)
    if closed is None or ("<" in reply[: closed.start()] and _OPENING.search(reply, 0, closed.start())):
        return None
    behind = reply[closed.end() : closed.end() + 1]
    return closed if behind in ("", "\n", "\r", "{") else None
