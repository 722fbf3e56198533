"""Trials, judging and ingest on the machines of a Ray cluster."""

from __future__ import annotations

from rag_harness.runs.distributed.ledger import LeasedMeter
from rag_harness.runs.distributed.messages import Carried, carry
from rag_harness.runs.distributed.workplace import RayWorkplace

__all__ = ["Carried", "LeasedMeter", "RayWorkplace", "carry"]
