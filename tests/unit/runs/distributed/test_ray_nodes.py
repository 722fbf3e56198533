"""Messages to a user about a cluster that is unfit. No cluster is started."""

from __future__ import annotations

from typing import Any

import pytest

from rag_harness.core.errors import PrerequisiteError
from rag_harness.core.settings import Settings

ray_nodes = pytest.importorskip("rag_harness.runs.distributed.cluster", reason="no Ray", exc_type=ImportError)


@pytest.fixture
def said_by_ray(monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """Have Ray refuse to connect with what is put here."""
    errors: list[Exception] = []

    def init(**_: Any) -> None:
        raise errors[0]

    monkeypatch.setattr(ray_nodes, "_check_reachable", lambda _: None)
    monkeypatch.setattr(ray_nodes.ray, "init", init)
    return errors


def test_versions_that_differ_are_named_with_the_address(said_by_ray: list[Exception]) -> None:
    # The words of ray._private.utils.check_version_info.
    said_by_ray.append(
        RuntimeError("Version mismatch: The cluster was started with:\n    Ray: 2.60.0\n    Python: 3.12.1\n")
    )
    with pytest.raises(PrerequisiteError) as refused:
        ray_nodes.RayNodes(Settings(ray_address="10.0.0.1:6379"))
    said = str(refused.value)
    assert "the cluster at 10.0.0.1:6379 cannot be used" in said
    assert "Python: 3.12.1" in said


def test_an_address_without_a_cluster_says_how_to_start_one(said_by_ray: list[Exception]) -> None:
    said_by_ray.append(ConnectionError("Could not find any running Ray instance."))
    with pytest.raises(PrerequisiteError, match=r"no Ray cluster at auto.*`ray start --head`"):
        ray_nodes.RayNodes(Settings(ray_address="auto"))


def test_a_token_that_is_not_there_is_named_in_rays_words(said_by_ray: list[Exception]) -> None:
    said_by_ray.append(ray_nodes.ray.exceptions.AuthenticationError("no authentication token was found"))
    with pytest.raises(PrerequisiteError, match=r"the cluster at 10.0.0.1:6379 cannot be used: no authentication"):
        ray_nodes.RayNodes(Settings(ray_address="10.0.0.1:6379"))


def test_a_cluster_that_does_not_answer_may_want_a_token(said_by_ray: list[Exception]) -> None:
    said_by_ray.append(ConnectionError("Failed to connect to Ray cluster at 10.0.0.1:6379"))
    with pytest.raises(PrerequisiteError, match=r"RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN or ~/\.ray/auth_token"):
        ray_nodes.RayNodes(Settings(ray_address="10.0.0.1:6379"))
