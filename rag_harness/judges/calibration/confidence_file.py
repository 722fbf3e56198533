"""Saved calibrated confidences: ``reliability/<experiment>.json``, small enough for a review."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rag_harness.errors import DataError
from rag_harness.files.atomic import write_atomically
from rag_harness.judges.calibration.logistic import Logistic
from rag_harness.results.row import first_problem

_Share = Annotated[float, Field(ge=0, le=1)]


class _Saved(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="ignore")


class SavedPromise(_Saved):
    """With 95 % confidence at most ``risk`` of the answers from ``threshold`` up are wrong; null: no promise."""

    risk: _Share
    threshold: _Share | None = None
    tested: int = 0
    wrong: int = 0
    reason: str = ""


class HeldOut(_Saved):
    """The quality of the probabilities on answers about pages that were used for neither fit nor threshold."""

    n: int
    ece: float | None = None
    brier: float | None = None


class SavedConfidence(_Saved):
    """How signals become a probability that an answer is right.

    ``n`` answers were labelled by gold. A model is None where too few of the answers were of its kind. ``weights`` are
    α, β and γ of the formula, as estimated from the labels. ``made_of`` names the models and documents behind the
    signals; with others the signals mean something else.
    """

    schema_version: Literal[1] = 1
    experiment: str
    n: int
    answered: Logistic | None
    declined: Logistic | None
    weights: dict[str, float] = {}
    promise: SavedPromise
    tested: HeldOut
    made_of: dict[str, Any] = {}

    def model(self, declined: bool) -> Logistic | None:
        """Return the model of answers, or that of declining."""
        return self.declined if declined else self.answered


def save_confidence(file: Path, saved: SavedConfidence) -> None:
    """Write the file with six digits: further ones carry no information, and would differ between machines."""
    rounded = SavedConfidence.model_validate(_rounded(saved.model_dump(mode="json")))
    write_atomically(file, (rounded.model_dump_json(indent=1) + "\n").encode())


def read_confidence(file: Path) -> SavedConfidence | None:
    """Read the file; None where there is none.

    Raises:
        DataError: the file has another format; says what to do.
    """
    try:
        return SavedConfidence.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        again = "Make it again: rag-harness reliability calibrate OUTPUT"
        raise DataError(f"{file}: no calibrated confidence: {first_problem(error)}. {again}") from error


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return round(value, 6) if isinstance(value, float) else value
