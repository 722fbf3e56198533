"""Options that were removed, and the successor of each."""

from __future__ import annotations

from collections.abc import Mapping

from rag_harness.core.errors import SettingsError

RARE_TABLE = "[tool.rag_harness.settings]"
"""The table of pyproject.toml that holds options without a flag."""


def _of_role(role: str, field: str) -> str:
    return f"write {field} into [tool.rag_harness.profiles.<profile>.{role}] of pyproject.toml"


def _of_profile(key: str) -> str:
    return f"write {key} into [tool.rag_harness.profiles.<profile>] of pyproject.toml"


def _rare(name: str) -> str:
    return f"write {name} into {RARE_TABLE} of pyproject.toml"


def _folder(name: str) -> str:
    return f"the folder is {name}/ below the one that --rag-project names"


_ROLES = {"chat": "answer", "judge": "judge", "writer": "writer", "rewrite": "rewrite", "user": "user"}

REMOVED: Mapping[str, str] = {
    **{f"{begin}_model": _of_role(role, "model") for begin, role in _ROLES.items() if role != "judge"},
    **{f"{begin}_base_url": _of_role(role, "base_url") for begin, role in _ROLES.items()},
    "temperature": _of_role("answer", "temperature"),
    "seed": _of_role("answer", "seed"),
    "max_output_tokens": _of_role("answer", "max_tokens"),
    **{name: _of_profile(name) for name in ("embed_base_url", "rerank_model")},
    **{
        name: _rare(name)
        for name in (
            *("precision", "qdrant_cluster", "qdrant_graph", "ray_workers", "ray_gpus", "order_seed", "failed_turn"),
            *("max_answer", "max_contexts"),
        )
    },
    **{
        name: _folder(name)
        for name in ("baselines", "cassettes", "judges", "prompts", "reliability", "rubrics", "snapshots")
    },
    "threshold": "write it into [tool.rag_harness.reliability.thresholds] of pyproject.toml",
    "weight": "write it into [tool.rag_harness.reliability.weights] or [….formula] of pyproject.toml",
    "inconclusive": "it is called undecided",
    "qdrant_api_key": "the key comes from the variable QDRANT_API_KEY",
}
"""What is used in place of a removed option, by the option's name."""


def refuse_removed(said: str, name: str) -> None:
    """Refuse an option that was removed; ``said`` is how it was written.

    Raises:
        SettingsError: the option was removed. The message names its successor.
    """
    if instead := REMOVED.get(name):
        raise SettingsError(f"{said} is not an option any more: {instead}.")
