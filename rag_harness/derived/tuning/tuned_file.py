"""Writes the chosen configuration as a file for ``--rag-config``, with what is known of it as comments."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rag_harness.derived.tuning.contenders import Contender
from rag_harness.derived.tuning.outcome import RaceOutcome
from rag_harness.derived.tuning.outcome_text import sentences
from rag_harness.errors import SettingsError
from rag_harness.files.atomic import write_atomically
from rag_harness.pipelines import known_experiments
from rag_harness.settings import Settings
from rag_harness.settings.configuration_spec import ParameterValue
from rag_harness.settings.endpoint_checks import check_name


def check_tuned(file: Path, settings: Settings) -> None:
    """Make sure, before a race, that its result can be written to ``file`` and used as an experiment.

    Raises:
        SettingsError: the file is a folder, or its name is none for an experiment, or that of another one.
    """
    if file.is_dir():
        raise SettingsError(f"-o {file} is a folder. Name a file in it: -o {file / 'tuned.toml'}")
    check_name(file.stem, f"-o {file}")
    others = known_experiments(replace(settings, configurations=()))
    if file.stem in others:
        raise SettingsError(f"-o {file}: {file.stem!r} is the name of an experiment that there is. Choose another.")


def write_tuned(file: Path, outcome: RaceOutcome, winner: Contender) -> None:
    """Write ``file``. All values are written out, so that it stays what it is where options change."""
    lines = [*_comments(outcome, file), *_content(winner)]
    write_atomically(file, "".join(f"{line}\n" for line in lines).encode())


def _comments(outcome: RaceOutcome, file: Path) -> Iterator[str]:
    said = f"Found by rag-harness tune {outcome.space}. An experiment: pytest --rag-config={file.name}"
    for sentence in (said, *sentences(outcome)):
        yield f"# {_on_one_line(sentence)}"


def _on_one_line(text: str) -> str:
    """Return a text as a comment may have it: TOML allows no control characters in it."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def _content(winner: Contender) -> Iterator[str]:
    if winner.spec.experiment:
        yield f"experiment = {_toml(winner.spec.experiment)}"
    yield ""
    yield "[parameters]"
    values = winner.spec.by_name if winner.spec.experiment else winner.values
    for name, value in sorted(values.items()):
        yield f"{_key(name)} = {_toml(value)}"


def _key(name: str) -> str:
    # In quotes a dot parts no tables, so "body.values" stays one name.
    return name if name.isascii() and name.isidentifier() else _toml(name)


def _toml(value: ParameterValue) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    # A text of JSON is one of TOML, too, as long as no character is written as two.
    # It allows every character of JSON but one.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f") if isinstance(value, str) else repr(value)
