"""Values of YAML from outside, as YAML 1.2 has them: ``yes``, ``12:30`` and ``2024-03-01`` are texts.

PyYAML reads YAML 1.1, where these are true, 750 and a date: an assertion ``contains: no`` would ask for ``False``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from rag_harness.errors import DataError
from rag_harness.files.json_text import DEEPEST_JSON

MOST_YAML = 32 << 20
"""The most bytes of a YAML file."""
_MOST_NODES = 2_000_000
"""The most values, each counted as often as an alias names it."""
_RESOLVED = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?", "-+0123456789."),
    ("merge", r"<<", "<"),
)


class YamlText(NamedTuple):
    """A value, and the node that it was made of, which knows the lines of its parts."""

    value: Any
    node: Any

    def line_of(self, *path: str | int) -> int:
        """Return the line, from 1, of the part below ``path``, or of the last part on the way that there is."""
        node = self.node
        for step in path:
            node = _below(node, step) or node
        return int(node.start_mark.line) + 1 if node else 1


def read_yaml(text: str, where: str) -> YamlText:
    """Return what ``text`` says; ``where`` it stands begins a message.

    Raises:
        DataError: it is no YAML, nested too deeply, or says more by its aliases than memory should hold.
    """
    import yaml

    loader = _loader()
    try:
        _check_depth(yaml.parse(text, loader), where)
        made = loader(text)
        try:
            node = made.get_single_node()
            if node is None:
                return YamlText(None, None)
            if _count(node, {}) > _MOST_NODES:
                raise DataError(f"{where}: its aliases stand for more than {_MOST_NODES:,} values. Write them out.")
            return YamlText(made.construct_document(node), node)
        finally:
            made.dispose()
    except (yaml.YAMLError, ValueError, TypeError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise DataError(f"{where}{line}: no YAML: {getattr(error, 'problem', None) or error}.") from None


@lru_cache(1)
def _loader() -> Any:
    import yaml

    loader: Any = type("Yaml12Loader", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {})
    loader.yaml_implicit_resolvers = {}
    for kind, pattern, first in _RESOLVED:
        tag, compiled = f"tag:yaml.org,2002:{kind}", re.compile(rf"(?:{pattern})\Z")
        loader.add_implicit_resolver(tag, compiled, [*first.replace("\0", ""), *([""] if "\0" in first else [])])
    return loader


def _check_depth(events: Any, where: str) -> None:
    """Refuse what is nested too deeply, before a recursive function walks through it."""
    depth = 0
    for event in events:
        name = type(event).__name__
        depth += name.endswith("StartEvent") - name.endswith("EndEvent")
        if depth > DEEPEST_JSON:
            raise DataError(f"{where}:{event.start_mark.line + 1}: nested deeper than {DEEPEST_JSON} levels.")


def _count(node: Any, known: dict[int, int]) -> int:
    """Return how many values a node has with all aliases followed; a node that holds itself has too many."""
    if id(node) in known:
        return known[id(node)]
    known[id(node)] = _MOST_NODES + 1
    found = 1 + sum(_count(each, known) for each in _parts(node))
    known[id(node)] = found
    return found


def _parts(node: Any) -> Sequence[Any]:
    if node.id == "mapping":
        return [part for pair in node.value for part in pair]
    return node.value if node.id == "sequence" else ()


def _below(node: Any, step: str | int) -> Any:
    if node is None:
        return None
    if isinstance(step, int):
        return node.value[step] if node.id == "sequence" and step < len(node.value) else None
    if node.id != "mapping":
        return None
    return next((value for key, value in node.value if key.value == step), None)
