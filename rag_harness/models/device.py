"""The device of local models."""

from __future__ import annotations

from rag_harness.errors import PrerequisiteError
from rag_harness.settings.removed import RARE_TABLE


def there(device: str) -> str:
    """Return ``device``, after checking that torch has it on this machine.

    Raises:
        PrerequisiteError: there is no such device.
    """
    import torch

    known = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not known[device]:
        raise PrerequisiteError(
            f"--rag-device={device}, and torch {torch.__version__} sees no such GPU in this process. Install a build "
            f"of torch that has it; workers of a Ray cluster see the GPUs that ray_gpus in {RARE_TABLE} gives them."
        )
    return device
