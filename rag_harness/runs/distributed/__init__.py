"""Trials, judging and ingest on the machines of a Ray cluster.

``dispatch`` replaces the work of this process, ``worker`` answers on a node, ``ledger`` grants calls and money for the
whole run. Plugin and commands call it. Only ``cluster`` and ``ingest`` import Ray. Begin reading with ``dispatch.py``.
"""

from __future__ import annotations

from rag_harness.runs.distributed.dispatch import RayWorkplace
from rag_harness.runs.distributed.ledger import LeasedMeter
from rag_harness.runs.distributed.messages import Carried, carry

__all__ = ["Carried", "LeasedMeter", "RayWorkplace", "carry"]
