"""Variables in the texts of a config: ``{{name}}``. Filters, conditions and code are left to promptfoo."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_NAME = re.compile(r"\{\{[ \t]{0,20}([A-Za-z_][A-Za-z0-9_.]{0,80})[ \t]{0,20}\}\}")


class TemplateLeftError(ValueError):
    """A text asks for more than variables that are known."""


def filled(value: Any, variables: Mapping[str, Any]) -> Any:
    """Return a value with its variables filled in, also inside lists and objects.

    Raises:
        TemplateLeftError: a text has a filter, a condition or an unknown variable.
    """
    if isinstance(value, list):
        return [filled(each, variables) for each in value]
    if isinstance(value, dict):
        return {key: filled(each, variables) for key, each in value.items()}
    if not isinstance(value, str) or ("{{" not in value and "{%" not in value):
        return value
    parts = _NAME.split(value)
    texts = [_text(part, variables) if place % 2 else _checked(part) for place, part in enumerate(parts)]
    return "".join(texts)


def _text(name: str, variables: Mapping[str, Any]) -> str:
    if name not in variables or isinstance(variables[name], (list, dict)):
        raise TemplateLeftError(f"the variable {name!r} is no text of the test")
    return str(variables[name])


def _checked(text: str) -> str:
    if "{{" in text or "{%" in text:
        raise TemplateLeftError(f"the template {text[max(0, text.find('{')) :][:40]!r} is more than a variable")
    return text
