"""The files of a Hugging Face data set in a folder: ``configs`` in the YAML at the top of its README.md say which."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rag_harness.dataset.records.json_records import MOST_JSON
from rag_harness.dataset.records.reading import READERS
from rag_harness.dataset.records.source_text import text_of
from rag_harness.dataset.records.yaml_values import read_yaml
from rag_harness.errors import DataError
from rag_harness.files.referenced_files import reference_fault, referenced_files

_FENCE = "---"
_USUAL = "test"
"""The split that questions are taken from where several are there."""


class _Split(NamedTuple):
    subset: str
    name: str
    patterns: Sequence[str]


def files_of_dataset(folder: Path, subset: str = "", split: str = "") -> list[Path]:
    """Return the data files of one split of a data set.

    Args:
        folder: a clone or a snapshot of its repository.
        subset: the name of a configuration; "": the default one, or the only one.
        split: its name; "": the only one, else ``test``.

    Raises:
        DataError: the README cannot be read, several subsets or splits could be meant, or a file is not there.
    """
    stated = [*_stated(folder)]
    if not stated:
        return _unstated(folder, subset or split)
    named = _chosen(folder, "--subset", subset or _default(folder), {each.subset: None for each in stated})
    splits = {each.name: each for each in stated if each.subset == named}
    usual = _USUAL if len(splits) > 1 and _USUAL in splits else ""
    found = splits[_chosen(folder, "--split", split or usual, splits)]
    files = [file for pattern in found.patterns for file in _matching(folder, pattern)]
    return [*dict.fromkeys(files)]


def _chosen(folder: Path, option: str, name: str, known: dict[str, Any]) -> str:
    if not name and len(known) == 1:
        return next(iter(known))
    if name not in known:
        said = f"no {name!r} among" if name else "it is to be said which of"
        raise DataError(f"{folder}: {said} {', '.join(known)}. Say which: {option} {next(iter(known))}")
    return name


def _stated(folder: Path) -> Iterator[_Split]:
    """Yield the splits that the README states."""
    for config in _configs(folder):
        subset = str(config.get("config_name") or "default")
        files = config.get("data_files")
        entries = files if isinstance(files, list) else [files]
        if isinstance(files, dict):
            entries = [{"split": name, "path": path} for name, path in files.items()]
        plain = [each for each in entries if isinstance(each, str)]
        if plain:
            yield _Split(subset, "train", plain)
        for each in entries:
            if isinstance(each, dict):
                paths = each.get("path") or []
                listed = paths if isinstance(paths, list) else [paths]
                yield _Split(subset, str(each.get("split") or "train"), listed)


def _configs(folder: Path) -> list[dict[str, Any]]:
    readme = folder / "README.md"
    if not readme.is_file():
        return []
    lines = text_of(readme, MOST_JSON).split("\n")
    fences = [number for number, line in enumerate(lines) if line.rstrip() == _FENCE]
    if len(fences) < 2 or fences[0] != 0:
        return []
    # A line for the fence, so that lines of messages are those of the file.
    card = read_yaml("\n" + "\n".join(lines[1 : fences[1]]), str(readme)).value
    configs = card.get("configs") if isinstance(card, dict) else None
    return [each for each in configs if isinstance(each, dict)] if isinstance(configs, list) else []


def _default(folder: Path) -> str:
    configs = _configs(folder)
    marked = [each for each in configs if each.get("default") is True] or configs
    names = [str(each.get("config_name") or "default") for each in marked]
    return names[0] if len(names) == 1 or names[:1] == ["default"] else "default" if "default" in names else ""


def _unstated(folder: Path, asked: str) -> list[Path]:
    named = sorted(each for each in folder.rglob("*") if each.suffix.lower() in READERS)
    files = [each for each in named if not reference_fault(each, _repository(folder))]
    if len(files) == 1 and not asked:
        return files
    listed = ", ".join(each.relative_to(folder).as_posix() for each in files[:10]) or "none that is read"
    raise DataError(f"{folder}: no README.md that states configs. Name one of its files: {listed}")


def _matching(folder: Path, pattern: Any) -> Sequence[Path]:
    try:
        return referenced_files(folder, str(pattern), within=_repository(folder))
    except DataError as error:
        raise DataError(f"{folder / 'README.md'}: {error}") from None


def _repository(folder: Path) -> Path:
    """Return where files of a data set may lie: in the cache of the hub, those of a snapshot are links to blobs."""
    is_snapshot = folder.absolute().parent.name == "snapshots"
    return folder.absolute().parent.parent if is_snapshot else folder
