"""``simulated/known-faults``: a simulated model that makes known faults at stated rates. Its answers are no real ones.

It knows the questions and their gold answers, and decides by digests which fault it makes. So the truth about each
answer is known, and what a judge or a diagnosis finds can be compared with it
(``docs/how-to/simulated.md``). The chat adapter opens it behind the OpenAI chat completions API; benchmarks call it.
Pipelines, judges and the diagnosis must never do so. It asks no model and no network. Begin reading with
``fault_rates.py``, then ``simulated_model.py``.
"""

from __future__ import annotations

from rag_harness.models.simulated.simulated_model import SimulatedAnswer, SimulatedModel

__all__ = ["SimulatedAnswer", "SimulatedModel"]
