"""What an evaluation refuses before anything is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from rag_harness.dataset.data import Data
from rag_harness.errors import DataError, SettingsError
from rag_harness.pipelines import data_of, endpoints_of, known_experiments
from rag_harness.pipelines.history_names import is_own_name, is_played_name
from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment
from rag_harness.settings import Settings, access_of
from rag_harness.types import GOLDEN, Case

_SNAPSHOT = "snapshot"


def check_named(named: str, settings: Settings, has_own_name: bool) -> None:
    """Refuse experiments of which only a run of pytest can ask, and a name or version beside one.

    Raises:
        SettingsError: it is one of these.
    """
    if has_own_name:
        raise SettingsError(
            f"evaluate: {named} is an experiment with a name and a version: leave name= and version= out."
        )
    if named == GOLDEN or is_played_name(named) or (is_own_name(named) and named not in known_experiments(settings)):
        raise SettingsError(f"evaluate: {named} is asked by a run of pytest: pytest --rag-run={named}")


def check_questions(named: str, settings: Settings) -> None:
    """Refuse questions beside an experiment that has data of its own.

    Raises:
        SettingsError: it has.
    """
    if named and (data := data_of(named, settings)):
        raise SettingsError(
            f"evaluate: {named} is asked about the data {data!r} of pyproject.toml. Leave the questions out, or those "
            f"data."
        )


def check_cases(cases: Sequence[Case], data: Data, asked: Experiment, settings: Settings) -> None:
    """Refuse questions of which only a run of pytest can ask.

    Raises:
        DataError: there is none, or only scenarios.
        SettingsError: turns are to follow the pipeline's own answers, or answers are compared with kept ones.
    """
    if not cases:
        why = "only scenarios, which pytest plays" if data.scenarios else "no question"
        raise DataError(f"evaluate: there is {why} in {data.queries_file}.")
    spec = endpoints_of(settings).get(asked.id)
    keeps_conversations = spec is not None and bool(spec.session)
    if any(case.query.place for case in cases) and (keeps_conversations or settings.history != "gold"):
        raise SettingsError(
            f"evaluate: turns of {data.queries_file.name} are to follow the answers of {asked.id} itself, which are "
            f"asked one after the other by a run of pytest: pytest --rag-run={asked.id}"
        )
    if snapshot := next((each for each in cases if any(one.kind == _SNAPSHOT for one in each.expect)), None):
        raise SettingsError(
            f"evaluate: {snapshot.query.query_id} expects its snapshot, which a run of pytest keeps and compares."
        )


def check_service(asked: Experiment, parts: RunParts, cases: Sequence[Case]) -> None:
    """Refuse a service that cannot be asked; other experiments pass.

    Raises:
        PrerequisiteError: nothing listens at its address; or nothing is recorded, and the mode may not ask.
    """
    spec = endpoints_of(parts.settings).get(asked.id)
    if spec is not None:
        from rag_harness.pipelines.endpoint.pipeline import EndpointPipeline
        from rag_harness.pipelines.endpoint.ready import check_ready

        queries = [case.query for case in cases]
        check_ready(spec, cast("EndpointPipeline", asked.pipeline), queries, access_of(parts.settings))
