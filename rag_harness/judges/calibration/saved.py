"""Saved calibrations: ``judges/<name>.json``, small enough to be reviewed and committed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rag_harness.errors import DataError
from rag_harness.files.atomic import write_atomically
from rag_harness.results.row import first_problem
from rag_harness.results.score import Author

_Finite = Annotated[float, Field(allow_inf_nan=False)]
_Share = Annotated[float, Field(ge=0, le=1)]
_NAME = re.compile(r"[\w.-]{1,80}")


class _Saved(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="ignore")


class JudgeIdentity(_Saved):
    """The calibrated judge: its kind, its model, the digest of its prompts or coefficients."""

    name: str
    model: str
    revision: str

    @property
    def author(self) -> Author:
        """The same as scores name it."""
        return Author(self.name, self.model, self.revision)


class LabelledScore(_Saved):
    """One answer's label, the mean of its people's from 0 to 1, and the judge's score.

    ``row`` is the digest of the judged fields. It is empty for an answer outside any run, as is ``experiment``.
    """

    experiment: str = ""
    query_id: str
    human: _Share
    score: _Finite
    cluster: str = ""
    row: str = ""


class SavedEstimate(_Saved):
    """A statistic: null where undefined, and without bounds where there are too few labels; then with a reason."""

    value: _Finite | None = None
    low: _Finite | None = None
    high: _Finite | None = None
    reason: str = ""


class SavedConfusion(_Saved):
    """The confusion matrix of the judge's verdicts and people's."""

    true_positive: int
    false_positive: int
    false_negative: int
    true_negative: int


class Calibration(_Saved):
    """One judge's measure, compared with people's labels.

    ``agreement`` is between judge and people, ``humans`` is between people; ``confusion`` is null where people gave
    ratings. ``unscored`` counts labels of answers without a score of the judge.
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
    """Write the calibration, one label a line, so that a review shows changes; return the file.

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
        DataError: a file is no calibration; names the file and the fault.
    """
    return [_read(file) for file in sorted(folder.glob("*.json"))]


def _read(file: Path) -> Calibration:
    try:
        return Calibration.model_validate_json(file.read_bytes())
    except ValidationError as error:
        again = "Make it again: rag-harness judge calibrate LABELS.jsonl"
        raise DataError(f"{file}: no calibration of a judge: {first_problem(error)}. {again}") from error
