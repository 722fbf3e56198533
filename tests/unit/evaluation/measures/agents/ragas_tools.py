"""RAGAS' own scores of calls of tools: cases on stdin, scores on stdout. Run by an interpreter that has it.

    pip install "ragas==0.4.3" "langchain-community<0.4.2"

Knows nothing of the harness. A case is the expected calls and those that were made, name and arguments each.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from ragas.messages import AIMessage, HumanMessage, ToolCall
from ragas.metrics.collections import ToolCallAccuracy, ToolCallF1


def calls(raw: list[Any]) -> list[Any]:
    """Return calls as RAGAS has them."""
    return [ToolCall(name=name, args=args) for name, args in raw]


async def scored(expected: list[Any], made: list[Any]) -> list[float]:
    """Return accuracy and F1."""
    said = [HumanMessage(content="?"), AIMessage(content="", tool_calls=calls(made))]
    found = [await each.ascore(user_input=said, reference_tool_calls=calls(expected)) for each in METRICS]
    return [float(each.value) for each in found]


METRICS = (ToolCallAccuracy(), ToolCallF1())


async def main() -> None:
    """Score all cases."""
    sys.stdout.write(json.dumps([await scored(*case) for case in json.load(sys.stdin)]) + "\n")


asyncio.run(main())
