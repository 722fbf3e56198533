"""What is kept of a calibration: ``judges/<name>.json``, small enough to be reviewed and committed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rag_harness.errors import DataError
from rag_harness.files.atomic import write_atomically
from rag_harness.results.row import first_problem
from rag_harness.results.score import Author

_Finite = Annotated[float, Field(allow_inf_nan=False)]
_Share = Annotated[float, Field(ge=0, le=1)]
_NAME = re.compile(r"[\w.-]{1,80}")


class _Saved(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class JudgeIdentity(_Saved):
    """Whose scores were calibrated: how it judges, its model, the digest of its prompts or coefficients."""

    name: str
    model: str
    revision: str

    @property
    def author(self) -> Author:
        """The same, as scores name it."""
        return Author(self.name, self.model, self.revision)


class LabelledScore(_Saved):
    """What people said of one answer, as the mean of them, from 0 to 1, and the judge.

    ``row`` is the digest of what was judged; empty, as ``experiment`` is, for an answer that stands alone.
    """

    experiment: str = ""
    query_id: str
    human: _Share
    score: _Finite
    cluster: str = ""
    row: str = ""


class SavedEstimate(_Saved):
    """A statistic; null where it is not defined, without bounds where labels are too few, and then with a reason."""

    value: _Finite | None = None
    low: _Finite | None = None
    high: _Finite | None = None
    reason: str = ""


class SavedConfusion(_Saved):
    """How often the judge's verdict met the people's."""

    true_positive: int
    false_positive: int
    false_negative: int
    true_negative: int


class Calibration(_Saved):
    """One judge's measure, held against people.

    ``agreement`` is of the judge with people, ``humans`` of people with each other; ``confusion`` is null where people
    gave ratings. ``unscored`` counts the labels of answers that the judge has no score of.
    """

    schema_version: Literal[1] = 1
    name: str
    measure: str
    version: int
    judge: JudgeIdentity
    date: str
    threshold: _Finite = 0.5
    n: int
    clusters: int
    raters: int
    unscored: int = 0
    agreement: dict[str, SavedEstimate]
    confusion: SavedConfusion | None = None
    humans: dict[str, SavedEstimate] = {}
    labels: tuple[LabelledScore, ...] = Field(min_length=1)


def save_calibration(folder: Path, calibration: Calibration) -> Path:
    """Write it, one label a line, so that a review sees what changed; return the file.

    Raises:
        DataError: the name is no file name.
    """
    if not _NAME.fullmatch(calibration.name):
        raise DataError(f"--name {calibration.name!r} is no name: letters, digits, '.', '_' and '-' only.")
    content = calibration.model_dump(mode="json")
    labels = [json.dumps(label, ensure_ascii=False) for label in content.pop("labels")]
    head = json.dumps(content, ensure_ascii=False, indent=1).removesuffix("\n}")
    text = f'{head},\n "labels": [\n  ' + ",\n  ".join(labels) + "\n ]\n}\n"
    file = folder / f"{calibration.name}.json"
    write_atomically(file, text.encode())
    return file


def read_calibrations(folder: Path) -> list[Calibration]:
    """Read all calibrations of a folder, by their names; none where there is no folder.

    Raises:
        DataError: a file is no calibration; names the file and what is wrong.
    """
    return [_read(file) for file in sorted(folder.glob("*.json"))]


def _read(file: Path) -> Calibration:
    try:
        return Calibration.model_validate_json(file.read_bytes())
    except ValidationError as error:
        again = "Make it again: rag-harness judge calibrate LABELS.jsonl"
        raise DataError(f"{file}: no calibration of a judge: {first_problem(error)}. {again}") from error
