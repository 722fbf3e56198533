"""Every option: its flag, its ini key, its variable, its default, and what it affects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import Field, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

from docs.made.markdown import MADE, code, prose
from rag_harness.core.settings import Settings, env_name, help_sentence, options, table
from rag_harness.core.settings.removed import RARE_TABLE, REMOVED
from rag_harness.core.settings.table import Affects, sentence
from rag_harness.frontends.pytest_plugin.options import SHORT

_GROUPS = {
    "data": "What is asked, and of which documents",
    "retrieval": "How documents are cut, embedded and searched",
    "reranking": "How what is found is ranked again",
    "generation": "Which model answers, and how",
    "judging": "Who judges answers, and on what",
    "golden": "The golden suite",
    "reliability": "The reliability engine",
    "nothing": "How a run is run, checked and shown",
}
"""A heading for each kind of effect, in the order of the page."""
_INTRODUCTION = """# Options

Every option of the plugin. An option can be set in five places; the first that has it wins:

1. the command line, `--rag-mode=replay`;
2. a variable of the environment, `RAG_MODE=replay`;
3. the same variable in a file `.env` beside `pytest.ini`;
4. the ini file, `rag_mode = replay`;
5. the [profile](../how-to/models.md).

Options of the first groups change answers or scores. They are part of a row's fingerprint: after a change, the trials
that it affects run again. Options of the last group change no result. On the command line a path is relative to the
current folder, elsewhere to the folder of the ini file. Give absolute paths with `=`: `--rag-output=/tmp/run`.

Models and addresses of roles are [tables of a profile](../how-to/roles.md). `pytest --help` has the options in groups;
the ten of the first are enough to begin. Keys and passwords come from variables alone and are never shown. Options of
your own are set with `--rag-define`.
"""


_RARE = """
## Rare options

These stand in `pyproject.toml` alone, beside the ini file:

```toml
[tool.rag_harness.settings]
max_answer = 100000
```

| name | |
|---|---|"""
_REMOVED = """
## Removed options

An option that was removed is refused, on the command line, in the ini file and as a variable, with what is used in its
place.

| removed | instead |
|---|---|"""


def page() -> str:
    """Return the page."""
    hints = get_type_hints(Settings, vars(table) | _only_checked())
    by_effect: dict[Affects, list[Field[Any]]] = {}
    for each in options():
        by_effect.setdefault(each.metadata["affects"], []).append(each)
    parts = [_INTRODUCTION]
    for effect in get_args(Affects):
        parts += [f"\n## {_GROUPS[effect]}\n"]
        parts += [_option(each, hints[each.name]) for each in by_effect.get(effect, [])]
    parts += [_RARE, *_rare_options(hints), _REMOVED]
    parts += [*(f"| `--rag-{_dashed(name)}` | {_inert(instead)} |" for name, instead in REMOVED.items()), ""]
    return MADE + "\n".join(parts)


def _rare_options(hints: dict[str, Any]) -> Iterator[str]:
    for each in fields(Settings):
        if each.metadata.get("place") == RARE_TABLE:
            hint = hints[each.name]
            values = f", of {', '.join(map(code, get_args(hint)))}" if get_origin(hint) is Literal else ""
            yield f"| `{each.name}` | {_inert(help_sentence(each))[:-1]}{values} |"


def _only_checked() -> dict[str, Any]:
    """Return names that the table imports for the type checker alone."""
    return dict.fromkeys(
        ("ConfigurationSpec", "DataSpec", "EndpointSpec", "JudgeTable", "OwnOption", "ReliabilityNumbers"), object
    )


def _option(each: Field[Any], hint: Any) -> str:
    about = each.metadata
    flag = f"--rag-{_dashed(each.name)}"
    facts = [_default(each, hint)]
    facts += [f"also {code(short)}" for short in SHORT.get(each.name, ())]
    facts.append(f"ini {code(f'rag_{each.name}')}")
    facts.append(f"variable {code(env_name(each))}")
    limits = [f"{_LIMIT[name]} {value}" for name, value in about.get("limits", {}).items() if name in _LIMIT]
    if limits:
        facts.append(" and ".join(limits))
    lines = [
        f"### {flag}\n",
        f"{_inert(sentence(about['help']))}\n",
        ". ".join(map(_capital, facts)) + ".",
    ]
    if pages := _pages_about(flag):
        lines.append(f"\nSee {', '.join(pages)}.")
    return "\n".join(lines) + "\n"


_MOST_PAGES = 4
_LIMIT = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}


def _default(each: Field[Any], hint: Any) -> str:
    values = f", of {', '.join(map(code, get_args(hint)))}" if get_origin(hint) is Literal else ""
    if each.default is False:
        return "off by default"
    if each.default == ():
        return "may be repeated"
    return (f"default {code(each.default)}" if each.default not in ("", None) else "not set by default") + values


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _inert(text: str) -> str:
    """Write what would be markup as text."""
    return re.sub(r"([*_<\[])", r"\\\1", text)


def _pages_about(flag: str) -> list[str]:
    """Return links to the pages that name a flag most often; the reference does not count."""
    named = re.compile(rf"{flag}(?![\w-])")
    times = {link: len(named.findall(text)) for link, text in prose().items()}
    return sorted(filter(times.get, times), key=lambda link: -times[link])[:_MOST_PAGES]
