"""Makes a space of the causes of a run: what is tried is what its failures ask for, and a comment says why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from os.path import relpath
from pathlib import Path
from typing import Any, NamedTuple

from rag_harness.errors import DataError, SettingsError
from rag_harness.files.atomic import write_atomically
from rag_harness.results.causes import CAUSES, CauseLine, read_causes
from rag_harness.results.manifest import read_manifest
from rag_harness.settings.loading import load_settings
from rag_harness.shown.hidden import escaped

_MISS, _LOGIC = "Retrieval Miss", "Logic Failure"
_NOT_FOUND, _BELOW, _CUT = (_MISS, "not found"), (_MISS, "found but ranked below k"), (_MISS, "cut by a chunk border")
_WITHOUT, _RERANKED = (_MISS, "the page came without the passage"), (_MISS, "lost in reranking")
_DISTRACTED, _UNREAD = (_LOGIC, "distracted"), (_LOGIC, "not read where it stood")


class _Asked(NamedTuple):
    """A parameter, and the causes that ask for it."""

    name: str
    causes: tuple[tuple[str, str], ...]


_ASKED = (
    _Asked("retriever", (_NOT_FOUND,)),
    _Asked("chunk_size", (_NOT_FOUND, _CUT, _WITHOUT)),
    _Asked("chunk_overlap", (_CUT,)),
    _Asked("rerank", (_BELOW, _RERANKED, _DISTRACTED, _UNREAD)),
    _Asked("candidates", (_BELOW, _RERANKED)),
    _Asked("top_k", (_BELOW, _RERANKED, _DISTRACTED, _UNREAD)),
)
_MORE, _FEWER = {_BELOW, _RERANKED}, {_DISTRACTED, _UNREAD}


def suggest_space(output: Path, file: Path, schema: Path | None = None) -> int:
    """Write a space for the causes of the run in ``output``; return the number of trials that ask for something.

    ``schema`` is the file by which editors complete a space; the written one begins with it.

    Raises:
        SettingsError: the file is there already.
        DataError: nobody has looked for the causes, or none of them is of what a configuration changes.
    """
    if file.exists():
        raise SettingsError(f"{file} is there already. Name another file: -o space.toml")
    settings = read_manifest(output).settings
    if not (output / CAUSES).is_file():
        raise DataError(
            f"{output / CAUSES} is not there: why trials of this run failed was not looked into. Run it with "
            f"--rag-attribute, or rag-harness explain {output}."
        )
    lines = read_causes(output)
    known = Counter((line.reviewed_cause or line.cause, line.detail) for line in lines)
    wanted = {cause for each in _ASKED for cause in each.causes if known[cause]}
    if not wanted:
        found = ", ".join(f"{n} of {_said(cause)}" for cause, n in known.most_common(3)) or "no trial failed"
        raise DataError(
            f"{output}: none of its {len(lines)} causes is of what a configuration changes ({found}). "
            f"What to do about them: rag-harness explain {output}."
        )
    completed = [f"#:schema {_from_beside(schema, file)}"] if schema is not None else []
    text = "".join(f"{line}\n" for line in [*completed, *_content(output, lines, known, settings)])
    write_atomically(file, text.encode())
    return sum(known[cause] for cause in wanted)


def _from_beside(schema: Path, file: Path) -> str:
    """Return the path of a schema as it is seen from a file."""
    found = Path(relpath(schema, file.parent)).as_posix()
    return found if found.startswith("..") else f"./{found}"


def _content(
    output: Path, lines: Iterable[CauseLine], known: Mapping[tuple[str, str], int], settings: Mapping[str, Any]
) -> Iterator[str]:
    names = ", ".join(dict.fromkeys(line.experiment for line in lines))
    yield f"# {escaped(f'Suggested by rag-harness tune --suggest {output}: by why trials of {names} failed.')}"
    yield 'objective = "evidence_recall"'
    yield ""
    yield "[parameters]"
    for each in _ASKED:
        causes = [cause for cause in each.causes if known[cause]]
        if causes:
            yield f"# {'; '.join(f'{_trials(known[cause])} {_said(cause)}' for cause in causes)}"
            yield f"{each.name} = {_values(each.name, set(causes), settings)}"


def _values(name: str, causes: set[tuple[str, str]], settings: Mapping[str, Any]) -> str:
    """Return the values of a parameter as TOML: today's, and those that the causes ask for."""
    defaults = load_settings({}, {})
    of_run = {key: settings.get(key) or getattr(defaults, key) for key in ("chunk_size", "top_k", "candidates")}
    size, top, deep = (int(of_run[key]) for key in ("chunk_size", "top_k", "candidates"))
    if name == "retriever":
        return '["dense", "bm25", "hybrid"]'
    if name == "rerank":
        return "[false, true]"
    if name == "chunk_size":
        return _listed([size, 2 * size, *([size // 2] if _NOT_FOUND in causes else [])])
    if name == "chunk_overlap":
        return _listed([int(settings.get("chunk_overlap") or 0), size // 8, size // 4])
    if name == "candidates":
        return f"{{ values = {_listed([deep, 2 * deep])}, if = {{ rerank = true }} }}"
    more, fewer = [2 * top] if causes & _MORE else [], [max(1, top // 2)] if causes & _FEWER else []
    return _listed([top, *more, *fewer])


def _listed(values: Iterable[int]) -> str:
    return f"[{', '.join(map(str, sorted(set(values))))}]"


def _trials(count: int) -> str:
    return "1 trial:" if count == 1 else f"{count} trials:"


def _said(cause: tuple[str, str]) -> str:
    return ", ".join(filter(None, cause))
