"""Calls of tools that a record expects, as ``tools`` of a line has them: ``{"name": …, "args": {…}}``.

ragas writes ``name`` and ``args``, deepeval ``name`` and ``input_parameters``, both in JSON or as Python prints it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_harness.authoring.importing.messages import structured
from rag_harness.authoring.importing.notes import Notes
from rag_harness.dataset.expected_tools import tools_of

_ARGUMENTS = ("args", "input_parameters", "inputParameters", "arguments")
_ABOUT = ("description", "reasoning", "type", "id")
"""What says nothing of the call itself."""
_RESULT = "output"


def wanted_tools(value: Any, name: str, where: str, notes: Notes) -> list[dict[str, Any]]:
    """Return the calls that a field ``name`` lists, in their order; none where it lists none.

    If one of them cannot be read, none is taken over: a line with some of the calls would expect another thing.
    """
    stated = structured(value)
    if stated == []:
        # Tools write it where nothing is said, and a line with it says that nothing is to be looked up.
        notes.tell(f'{name}: an empty list is left out. Where no tool is to be called, write "tools": []', where)
    if stated in (None, "", []):
        return []
    calls = stated if isinstance(stated, list) else [stated]
    made = [_call(structured(each)) for each in calls]
    _, problems = tools_of(made)
    if problems:
        notes.lose(f"{name}: {problems[0]}", where)
        return []
    if any(isinstance(each, Mapping) and each.get(_RESULT) is not None for each in calls):
        notes.lose(f"{name}: what a tool is to return: a line says which calls are expected, and with what", where)
    return made


def _call(stated: Any) -> Any:
    """Return a call with our names. What else it says stays, so that it is named as unknown."""
    if isinstance(stated, str):
        return {"name": stated}
    if not isinstance(stated, Mapping):
        return stated
    call = {key: value for key, value in stated.items() if key not in (*_ARGUMENTS, *_ABOUT, _RESULT)}
    given = next((args for key in _ARGUMENTS if (args := structured(stated.get(key))) not in (None, "")), None)
    return call if given is None else {**call, "args": given}
