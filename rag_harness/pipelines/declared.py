"""A pipeline of a user's own as an experiment: a name, and the modules that its code is in."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from rag_harness.protocols import Experiment, Pipeline
from rag_harness.registry.own_parts import stated_fingerprint


def declared(name: str, pipeline: Pipeline, data: str, made_in: str = "") -> Experiment:
    """Return the experiment ``name`` of an object of the user's own, which declares nothing and is asked nothing.

    Its code is that of its class, and of the module ``made_in``, which made it. Its rows are reused only where it
    states a ``fingerprint``.
    """
    app = getattr(pipeline, "app", pipeline)
    answers = getattr(type(app), "answer", app if callable(app) else None)
    named = (written_in(answers), type(app).__module__, made_in)
    # With several conftest.py, the module name "conftest" may stand for another file.
    modules = tuple(dict.fromkeys(each for each in named if each and each != "conftest"))
    states = bool(stated_fingerprint(pipeline))
    return Experiment(name, pipeline, data=data, code={"pipeline": modules}, is_reusable=states)


def written_in(function: Any) -> str:
    """Return a function's module; its file if the module is at the top level, as a conftest.py is."""
    function = inspect.unwrap(function) if callable(function) else function
    module = str(getattr(function, "__module__", "") or "")
    file = getattr(getattr(function, "__code__", None), "co_filename", "")
    return file if module and "." not in module and Path(file).is_file() else module
