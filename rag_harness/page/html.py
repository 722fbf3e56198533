"""The report as one HTML file that loads nothing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from rag_harness.core.escaping import html_text, page_policy, page_script, page_style
from rag_harness.page.charts import stylesheet
from rag_harness.page.content import Section
from rag_harness.page.estimates import kind_class
from rag_harness.page.payload import Packing, Payload

_STYLES = ("page.css", "trials.css")
_SCRIPTS = ("conversation.js", "steps.js", "page.js")
_ABOVE_TRIALS = ("first", "diff", "race", "decisions", "differences", "failures")
"""What a reader wants before the list of trials: which is better, and what failed."""


def html_of(title: str, sections: Sequence[Section], payload: Payload | None, packing: Packing | None = None) -> str:
    """Return the page.

    Args:
        title: title of the page.
        sections: sections in their order.
        payload: every trial, as input of the script; None for a page without trials, which needs no script.
        packing: packs the payload, and may have begun; by default as gzip.
    """
    style, script = page_style("\n".join(map(_asset, _STYLES)), before=stylesheet()), _script() if payload else ""
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            title=title,
            sections=sections,
            split=_split(sections),
            blocks=_blocks(payload, packing or Packing()) if payload else [],
            sampled=payload.sampled if payload else "",
            style=Markup(style),
            script=Markup(script),
            policy=page_policy(style, script),
        )
    )


def _split(sections: Sequence[Section]) -> int:
    """Return how many sections stand above the list of trials."""
    return max((n for n, section in enumerate(sections, 1) if section.ident in _ABOVE_TRIALS), default=0)


def _blocks(payload: Payload, packing: Packing) -> list[tuple[str, str, Markup]]:
    """Return name, packing and text of each block of data."""
    with packing:
        return [(name, packing.how, Markup(text)) for name, text in packing.of(payload)]


def _script() -> str:
    """Return the script without comment lines and indentation. Its files share a scope that is theirs alone."""
    own = "\n".join(map(_asset, _SCRIPTS))
    lines = map(str.strip, page_script(f"(() => {{\n{own}\n}})();").splitlines())
    return "\n".join(line for line in lines if line and not line.startswith(("//", "/**")))


def _asset(name: str) -> str:
    return files("rag_harness.page").joinpath("assets", name).read_text(encoding="utf-8")


def _shown(value: object) -> object:
    """Return a value in the form for the template: our own markup is not escaped."""
    return html_text(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("rag_harness.page", "assets"),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["kind"] = lambda block: type(block).__name__
    environment.filters["drawn"] = Markup
    environment.filters["kind_class"] = kind_class
    return environment
