"""What is kept of a calibrated confidence: ``reliability/<experiment>.json``, small enough to be reviewed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rag_harness.errors import DataError
from rag_harness.files.atomic import write_atomically
from rag_harness.judges.calibration.logistic import Logistic
from rag_harness.results.row import first_problem

_Share = Annotated[float, Field(ge=0, le=1)]


class _Saved(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class SavedPromise(_Saved):
    """Answers at or above ``threshold`` are wrong in at most ``risk`` of the cases, at 95 %; null: none is promised."""

    risk: _Share
    threshold: _Share | None = None
    tested: int = 0
    wrong: int = 0
    reason: str = ""


class HeldOut(_Saved):
    """How the probabilities did on answers about pages that neither fit nor threshold had seen."""

    n: int
    ece: float | None = None
    brier: float | None = None


class SavedConfidence(_Saved):
    """How signals become a probability that an answer is right.

    ``n`` answers were labelled by gold. A model is None where too few of them were its own. ``weights`` are α, β and γ
    of the formula as the labels would have them.
    ``made_of`` says of which models and documents the signals were; of others they mean something else.
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
    """Write it; digits beyond the sixth say nothing, and would differ between machines."""
    rounded = SavedConfidence.model_validate(_rounded(saved.model_dump(mode="json")))
    write_atomically(file, (rounded.model_dump_json(indent=1) + "\n").encode())


def read_confidence(file: Path) -> SavedConfidence | None:
    """Read it; None where there is no such file.

    Raises:
        DataError: the file is none; says what to do.
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
