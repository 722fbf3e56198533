"""Writes the chosen configuration as a file for ``--rag-config``, with what is known of it as comments."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from rag_harness.derived.tuning.contenders import Contender
from rag_harness.derived.tuning.outcome import RaceOutcome
from rag_harness.derived.tuning.outcome_text import sentences
from rag_harness.files.atomic import write_atomically
from rag_harness.settings.configuration_spec import ParameterValue
from rag_harness.settings.configurations import OF_SERVICE


def write_tuned(file: Path, outcome: RaceOutcome, winner: Contender) -> None:
    """Write ``file``. All values are written out, so that it stays what it is where options change."""
    lines = [*_comments(outcome, file), *_content(winner)]
    write_atomically(file, "".join(f"{line}\n" for line in lines).encode())


def _comments(outcome: RaceOutcome, file: Path) -> Iterator[str]:
    yield f"# Found by rag-harness tune {outcome.space}. An experiment: pytest --rag-config={file.name}"
    for sentence in sentences(outcome):
        yield f"# {_on_one_line(sentence)}"


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _content(winner: Contender) -> Iterator[str]:
    if winner.spec.experiment:
        yield f"experiment = {_toml(winner.spec.experiment)}"
    yield ""
    yield "[parameters]"
    values = winner.spec.by_name if winner.spec.experiment else winner.values
    for name, value in sorted(values.items()):
        yield f"{_key(name)} = {_toml(value)}"


def _key(name: str) -> str:
    return name if name.startswith(OF_SERVICE) or name.isidentifier() else _toml(name)


def _toml(value: ParameterValue) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    # A text of JSON is one of TOML, too, as long as no character is written as two.
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
