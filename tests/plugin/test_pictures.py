"""Pictures show what is shown now: their words, in made.json, are compared with replays. Colours and layout are not."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from docs.made import IMAGES
from docs.made.recorded import CONVERSATION, RECORDED, TRIAL, chat_of
from docs.made.small_pictures import MOST_BYTES
from rag_harness.page.report import write_report
from rag_harness.page.run import read_run
from tests.plugin.study import ROOT, replay

SHOWN: dict[str, list[str]] = json.loads((IMAGES / "made.json").read_text(encoding="utf-8"))
BEST = "Which is best"
TAKE = "take the pictures again: python -m docs.made.screenshots"


_UNSEEN = ("head", "style", "script", "details", "title", "desc")


class Words(HTMLParser):
    """The words of a page that are seen before anything is opened, in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _UNSEEN:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._open and self._open[-1] == tag:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        words = " ".join(data.split())
        if words and not self._open:
            self.found.append(words)


def spaced(*texts: str) -> str:
    """Return texts with single spaces: a browser breaks them where it likes."""
    return " ".join(" ".join(texts).split())


@pytest.fixture(scope="module")
def first_words(study: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The words of the report of the four experiments."""
    file = tmp_path_factory.mktemp("report") / "report.html"
    write_report([study / "out"], file, "html")
    page = Words()
    page.feed(file.read_text(encoding="utf-8"))
    return page.found


@pytest.mark.parametrize("name", ["report-first-screen.png", "report-dark.png", "report-narrow.png"])
def test_the_first_screen_is_that_of_the_study(first_words: list[str], name: str) -> None:
    # Of the links above the heading a telephone shows the first: the others are scrolled to.
    shown, now = (words[words.index(BEST) :] for words in (SHOWN[name], first_words))
    assert SHOWN[name][0] in first_words
    assert shown[-1].startswith(("The interval says how far", "26 gates passed"))
    assert shown == now[: len(shown)], TAKE


def test_the_trial_is_that_of_the_study(study: Path) -> None:
    run, shown = read_run(study / "out"), spaced(*SHOWN["report-trial.png"])
    (row,) = [row for row in map(json.loads, _lines(study / "out" / run.suites["e3"].file)) if row["query_id"] == TRIAL]
    (cause,) = [each for each in run.causes.values() if (each.experiment, each.query_id) == ("e3", TRIAL)]
    scores = map(json.loads, _lines(study / "out" / "scores" / run.suites["e3"].file))
    (judged,) = [each for each in scores if (each["query_id"], each["measure"]) == (TRIAL, "factuality")]
    claims = [f"{claim['value']:.3f} {claim['text']}" for claim in judged["detail"]["claims"]]
    said = [row["query"], row["ground_truth"], cause.cause, cause.detail, cause.evidence, cause.remedy, *claims]
    assert [each for each in said if spaced(each) not in shown] == [], TAKE
    assert len(claims) == 2


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


@pytest.mark.long
def test_the_conversation_is_that_of_the_study(tmp_path: Path, started_python: str) -> None:
    result = replay(tmp_path, "-m", "c1", "--rag-run=c1", "-k", CONVERSATION, python=started_python)
    assert result.returncode == 0, result.stdout[-2000:]
    assert chat_of(tmp_path / "out") == RECORDED["chat"], TAKE


def test_every_picture_is_on_a_page_and_small() -> None:
    pictures = sorted(file.name for file in IMAGES.iterdir() if file.suffix in (".png", ".svg"))
    pages = "".join(file.read_text(encoding="utf-8") for file in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    assert [name for name in pictures if not re.search(rf"!\[[^\]]{{20,200}}\]\([./a-z]*images/{name}\)", pages)] == []
    assert [name for name in pictures if (IMAGES / name).stat().st_size > MOST_BYTES] == []
    assert sorted(SHOWN) == [name for name in pictures if name.endswith(".png")]
