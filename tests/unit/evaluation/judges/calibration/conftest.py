from __future__ import annotations

import pytest

from rag_harness.stats.means import estimate


@pytest.fixture(autouse=True)
def _few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw 100 resamples and not 1,000, which are most of a calibration's time: no test here needs more."""
    assert estimate.__kwdefaults__
    monkeypatch.setitem(estimate.__kwdefaults__, "resamples", 100)
