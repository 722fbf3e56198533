"""The page of errors has messages that are raised through a name, a function, or a list of problems."""

from __future__ import annotations

import ast

import pytest

from docs.made import DOCS
from docs.made.errors import _raised
from docs.made.messages import Messages

HINT = 'HINT = "Name another place."\n'
TELL = 'def told(file) -> str:\n    """It says."""\n    return f"{file} is a folder, and no file. {HINT}"\n'


def messages(code: str, others: str = "") -> list[str]:
    trees = {"a.py": ast.parse(code), "b.py": ast.parse(others)}
    return [said for _, said in _raised(trees["a.py"], "a.py", Messages(trees))]


@pytest.mark.parametrize(
    ("code", "others", "said"),
    [
        (f'{HINT}raise DataError(f"{{x}}: {{HINT}}")', "", ["…: Name another place."]),
        (f"{HINT}{TELL}raise DataError(told(x))", "", ["… is a folder, and no file. Name another place."]),
        ("raise DataError(told(x))", f"{HINT}{TELL}", ["… is a folder, and no file. Name another place."]),
        ('raise DataError("It is here" if x else "It is there")', "", ["It is here", "It is there"]),
        (
            'raise DataError(f"{x} says all that is needed by itself: {told(x)}")',
            TELL,
            ["… says all that is needed by itself: …"],
        ),
        ("raise DataError(a_b(x))", "", ["…"]),
    ],
)
def test_a_message_is_read_from_what_makes_it(code: str, others: str, said: list[str]) -> None:
    assert messages(code, others) == said


def test_problems_that_are_listed_are_found_where_they_are_made() -> None:
    code = (
        'def wrong(x) -> list[str]:\n    """Say it."""\n    return [f"{x} stands there twice. Rename it.", "key"]\n'
        'def read(x):\n    """Read. All."""\n    problems = wrong(x)\n    raise DataError("\\n".join(problems))\n'
    )
    assert messages(code) == ["…", "… stands there twice. Rename it."]


def test_an_error_that_a_function_makes_says_what_each_call_hands_it() -> None:
    code = (
        'SIGNS = (">=", "<")\n'
        "def wrong(text: str, problem: str) -> SettingsError:\n"
        '    return SettingsError(f"{text.strip()}: {problem}.")\n'
        "raise wrong(x, f\"{y!r} is no comparison; use one of {' '.join(SIGNS)}\")\n"
    )
    assert messages(code) == ["…: ….", "…: … is no comparison; use one of >= <."]


@pytest.mark.parametrize(
    "said",
    [
        "… … is no page of ….…",
        r"… is no comparison; use one of \>= \<= \> \<.",
        "it must return a PipelineOutput or the answer as a string.",
    ],
)
def test_the_page_has_what_a_reader_searched_for(said: str) -> None:
    assert said in (DOCS / "dev" / "errors.md").read_text(encoding="utf-8")
