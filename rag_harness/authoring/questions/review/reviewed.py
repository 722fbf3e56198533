"""The loop of a review in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rag_harness.authoring.questions.review.file import ReviewFile
from rag_harness.authoring.questions.review.review_terminal import Keyboard
from rag_harness.authoring.questions.review.session import Session
from rag_harness.authoring.questions.review.showing import Showing
from rag_harness.authoring.questions.review.view import show


def review(file: ReviewFile, numbers: Sequence[int], showing: Showing, by: str) -> Session:
    """Show questions and read keys until the reviewer quits. Then restore the screen."""
    from rich.console import Console

    console = Console(highlight=False)
    with Keyboard() as keyboard, console.screen(hide_cursor=False):
        session = Session(file, numbers, showing, by, keyboard.ask, keyboard.edit)
        show(session, console)
        while session.press(keyboard.read()):
            show(session, console)
    return session
