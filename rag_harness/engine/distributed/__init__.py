"""Trials and judging on the machines of a Ray cluster; the only room that knows Ray.

RayWorkplace    what the engine runs its jobs on, in place of this process
carry           experiment -> what a worker builds it from
LeasedMeter     budget and rate limits of a worker's calls, granted by the ledger of the run
"""

from __future__ import annotations

from rag_harness.engine.distributed.carrying import carry
from rag_harness.engine.distributed.leases import LeasedMeter
from rag_harness.engine.distributed.run_messages import Carried
from rag_harness.engine.distributed.workplace import RayWorkplace

__all__ = ["Carried", "LeasedMeter", "RayWorkplace", "carry"]
