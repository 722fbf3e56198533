"""What a person hands over as a pipeline -> an experiment: a function, an object, an ``Experiment``, or a name."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rag_harness.errors import SettingsError
from rag_harness.pipelines.calling import called
from rag_harness.pipelines.declared import declared
from rag_harness.pipelines.returned import output_of
from rag_harness.protocols import Experiment
from rag_harness.registry.own_parts import is_reusable, stated_fingerprint, stated_truth
from rag_harness.settings.endpoint_checks import check_name
from rag_harness.types import PipelineOutput, Query
from rag_harness.work.lasting_loop import lasting_loop

Loop = asyncio.AbstractEventLoop
_WANTED = (
    "a function of a question, an object with a method answer(query), an Experiment, or the name of an experiment or "
    "endpoint"
)


class AskedApp:
    """A function, or an object with ``answer``, as a pipeline.

    Args:
        app: what is asked. A function gets the text of a question, or the ``Query`` where its parameter says so.
        name: what messages call it.
        loop: where what is ``async`` is asked; None: on the loop of this process that outlives an evaluation.
    """

    def __init__(self, app: Any, name: str, loop: Loop | None = None) -> None:
        self.app, self._name, self._loop = app, name, loop
        self._ask: Callable[[Any], Any] = app if _is_function(app) else app.answer
        self._takes_query = not _is_function(app) or _says_query(app)

    @property
    def fingerprint(self) -> str:
        """What the app says of its version; empty where it says nothing."""
        return stated_fingerprint(self.app)

    @property
    def retrieves(self) -> bool | None:
        """Whether the app says that it retrieves; None where it does not say."""
        return stated_truth(self.app, "retrieves")

    async def answer(self, query: Query) -> PipelineOutput:
        """Answer a query.

        Raises:
            TypeError: the app returned something that is no answer.
        """
        given = query if self._takes_query else query.text
        return output_of(await called(self._ask, given, self._name, self._loop or lasting_loop()), self._name)


def own_pipeline(pipeline: object, name: str, version: str, loop: Loop | None = None) -> Experiment:
    """Return the experiment of a function, an object or an ``Experiment``.

    Args:
        pipeline: one of these.
        name: of the experiment; by default that of the function or class.
        version: says that answers of this version are the same; needed where nobody can see the code.
        loop: where what is ``async`` is asked; None: on the loop of this process that outlives an evaluation.

    Raises:
        SettingsError: it is none of these, or cannot be called with one question; or the name is none.
    """
    if isinstance(pipeline, Experiment):
        reusable = pipeline.is_reusable and is_reusable(pipeline.pipeline, pipeline.code)
        named = replace(pipeline, id=name or pipeline.id, is_reusable=reusable)
        check_name(named.id, "evaluate")
        return _with_version(named, version)
    function = pipeline if _is_function(pipeline) else getattr(pipeline, "answer", None)
    if isinstance(pipeline, type) or not callable(function):
        raise SettingsError(f"evaluate: the pipeline is {pipeline!r:.80}: expected {_WANTED}.")
    called_name = _name_of(pipeline)
    _check_parameters(function, called_name)
    name = name or called_name.removesuffix(".answer")
    check_name(name, "evaluate: the name of the pipeline, name=")
    is_function = _is_function(pipeline)
    is_wrapped = is_function or loop is not None or inspect.iscoroutinefunction(function)
    asked: Any = AskedApp(pipeline, f"{called_name}()", loop) if is_wrapped else pipeline
    return _with_version(declared(name, asked, ""), version)


def _with_version(made: Experiment, version: str) -> Experiment:
    if not version:
        return made
    return replace(made, is_reusable=True, ingredients={**made.ingredients, "version": version})


def _is_function(pipeline: object) -> bool:
    return callable(pipeline) and not callable(getattr(pipeline, "answer", None)) and not isinstance(pipeline, type)


def _name_of(pipeline: object) -> str:
    if not _is_function(pipeline):
        return f"{type(pipeline).__name__}.answer"
    name = getattr(pipeline, "__name__", type(pipeline).__name__)
    return "pipeline" if name == "<lambda>" else str(name)


def _check_parameters(function: Any, name: str) -> None:
    """Refuse what cannot be called with one question.

    Raises:
        SettingsError: names the parameters.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # of C code, which says so when it is called
    try:
        signature.bind("")
    except TypeError as error:
        raise SettingsError(
            f"evaluate: {name}{signature} cannot be called with one question: {error}. Give it one parameter, the "
            f"question; functools.partial gives it the others."
        ) from None


def _says_query(function: Any) -> bool:
    """Whether the first parameter of a function is annotated as a ``Query``."""
    try:
        first = next(iter(inspect.signature(function).parameters.values()))
    except (StopIteration, TypeError, ValueError):
        return False
    said = first.annotation
    return said is Query or (isinstance(said, str) and said.strip("'\"").rpartition(".")[2] == Query.__name__)
