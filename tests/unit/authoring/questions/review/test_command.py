"""``rag-harness queries review``: what it refuses, and a review in a real terminal."""

from __future__ import annotations

import os
import platform
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from rag_harness.__main__ import CANNOT_RUN, main
from rag_harness.authoring.questions.review.alone import alone_with
from rag_harness.authoring.questions.review.reviewed_rows import accepted, rejected
from rag_harness.commands.review import _who
from rag_harness.errors import SettingsError
from tests.unit.authoring.questions.review.drafts import ROWS, drafted, read, row

SECONDS = 60
_CODE = "import sys; from rag_harness.__main__ import main; sys.exit(main(sys.argv[1:]))"
_EDITS = "import sys; p=sys.argv[1]; t=open(p).read(); open(p,'w').write(t.replace('9 days.','Nine days.'))"
_EDITOR = f'{sys.executable} -c "{_EDITS}"'


class Terminal:
    """A review in a terminal of its own."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        self.seen = b""
        self._end, end = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", _CODE, "queries", "review", *arguments],
            stdin=end,
            stdout=end,
            stderr=end,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "40", **environment},
        )
        os.close(end)

    def wait_for(self, text: str) -> str:
        """Read until a text has come; return all since the last time."""
        end = time.monotonic() + SECONDS
        while text.encode() not in self.seen:
            assert time.monotonic() < end, self.seen.decode()
            if select.select([self._end], [], [], 1)[0]:
                self.seen += os.read(self._end, 65_536)
        found, self.seen = self.seen.decode("utf-8", "replace"), b""
        return found

    def press(self, keys: str) -> None:
        os.write(self._end, keys.encode())


def test_a_review_in_a_terminal(tmp_path: Path) -> None:
    file = drafted(tmp_path)
    terminal = Terminal(str(file), "--by", "Ada", VISUAL=_EDITOR)
    shown = terminal.wait_for("q quit")
    assert "How long are island parcels held?" in shown
    assert "delivery.md › Delivery" in shown
    terminal.press("e")
    terminal.wait_for("Kept as edited")
    terminal.press("a")
    terminal.wait_for("2 of 4")
    terminal.press("r")
    terminal.wait_for("leaves it as it is: ")
    terminal.press("odd\n")
    terminal.wait_for("3 of 4")
    # As it is on disk when nobody had the chance to tidy up: killed, not ended.
    terminal.process.kill()
    assert terminal.process.wait(SECONDS) == -signal.SIGKILL
    first, *others = read(file)
    assert (first["ground_truth"], first["metadata"]["reviewed_by"]) == ("Nine days.", "Ada")
    assert others == list(ROWS[2:])
    assert read(file.with_name("queries.rejected.jsonl")) == [rejected(ROWS[1], "Ada", "odd")]


def test_esc_leaves_a_question_as_it_was(tmp_path: Path) -> None:
    file = drafted(tmp_path)
    before = file.read_bytes()
    terminal = Terminal(str(file), "--by", "Ada", VISUAL="", EDITOR="")
    terminal.wait_for("q quit")
    terminal.press("e")
    terminal.wait_for("kind: direct")
    terminal.press("direct\n")
    terminal.wait_for("question: How long")
    terminal.press("other words\x1b[D\x1b[D\x1b")
    terminal.wait_for("Nothing was changed.")
    terminal.press("r")
    terminal.wait_for("leaves it as it is: ")
    terminal.press("odd\x1b")
    terminal.wait_for("1 of 4")
    assert file.read_bytes() == before
    assert not file.with_name("queries.rejected.jsonl").exists()
    terminal.press("e")
    typed = {"kind: ": "\n", "question: ": "For how lon?\x1b[Dg\n", "answer: ": "\x1b[A\n", "quote of ": "\n"}
    for about, keys in typed.items():
        terminal.wait_for(about)
        terminal.press(keys)
    terminal.wait_for("Kept as edited")
    terminal.press("q")
    assert terminal.process.wait(SECONDS) == 0
    assert read(file)[0]["query"] == "For how long?"
    assert read(file)[0]["ground_truth"] == ROWS[0]["ground_truth"], "the arrow up brought no line typed before"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "this is no terminal. Run it in one, or review as a page: --page review.html"),
        (["--sample", "0"], "--sample 0 would show nothing."),
        (["--page", "review.txt"], "is no HTML file"),
        (["--page", "my_docs/review.html"], "lies among the documents, and would be read as one."),
        (["--page", "no/such/review.html"], "No folder no/such to write review.html into."),
        (
            ["--page", "x.html", "--kind", "odd"],
            "No question is of the kind 'odd'. There are: direct, multi_hop, negative.",
        ),
        (["--page", "x.html", "--kb", "nowhere"], "in nowhere. Name their folder: --kb DIR"),
    ],
)
def test_what_it_refuses(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    why: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["queries", "review", str(drafted(tmp_path)), *arguments]) == CANNOT_RUN
    assert why in capsys.readouterr().err


def test_no_file_a_folder_and_no_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in (tmp_path / "no.jsonl", tmp_path):
        assert main(["queries", "review", str(name), "--page", "x.html"]) == CANNOT_RUN
        assert "Name a file of questions" in capsys.readouterr().err
    file = drafted(tmp_path, pages={})
    assert main(["queries", "review", str(file), "--page", str(tmp_path / "x.html")]) == CANNOT_RUN
    assert "Name their folder: --kb DIR" in capsys.readouterr().err


def test_all_reviewed_already(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = drafted(tmp_path, accepted(row(1), "Ada"))
    page = tmp_path / "x.html"
    assert main(["queries", "review", str(file), "--page", str(page), "--only", "unreviewed"]) == 0
    assert "none of its 1 questions is unreviewed. There is nothing to review." in capsys.readouterr().out
    assert not page.exists()


def test_a_second_review_of_a_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = drafted(tmp_path)
    with alone_with(file):
        assert main(["queries", "review", str(file), "--take", "got.jsonl"]) == CANNOT_RUN
    said = f"is open in another review: process {os.getpid()} on {platform.node()}. End that one first"
    assert said in capsys.readouterr().err


def test_who_reviews(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _who("  Ada   L. ") == "Ada L."
    with pytest.raises(SettingsError, match="--by NAME"):
        _who("Ada\x1b[31m")
    monkeypatch.setattr("subprocess.run", lambda *_, **__: SimpleNamespace(stdout="Grace\n"))
    assert _who(None) == "Grace"
    monkeypatch.setattr("subprocess.run", lambda *_, **__: SimpleNamespace(stdout=""))
    monkeypatch.setattr("getpass.getuser", lambda: "root")
    assert _who(None) == "root"


def test_documents_that_the_questions_are_not_about_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = drafted(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.md").write_text("# A\n\nText.\n", encoding="utf-8")
    page = tmp_path / "review.html"
    assert main(["queries", "review", str(file), "--kb", str(tmp_path / "other"), "--page", str(page)]) == CANNOT_RUN
    assert "delivery.md, say. Name their folder: --kb DIR" in capsys.readouterr().err
    assert main(["queries", "review", str(file), "--kb", str(file.parent), "--page", str(page)]) == 0
    assert f"review {file} --kb {file.parent} --take DOWNLOADED" in capsys.readouterr().out


@pytest.mark.parametrize("how", [["--page", "out/r.html"], ["--take", "taken.jsonl"], []])
def test_a_table_is_told_with_what_makes_lines_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], how: list[str]
) -> None:
    """What a review writes back are lines, and a table would have lost its form."""
    monkeypatch.chdir(tmp_path)
    for folder in ("kb", "out"):
        (tmp_path / folder).mkdir()
    (tmp_path / "kb" / "a.md").write_text("# A\n\nText that says so.\n")
    (tmp_path / "q.csv").write_text("id,question,documents\nq1,Why?,a.md\n")
    assert main(["queries", "review", "q.csv", "--kb", "kb", *how]) == CANNOT_RUN
    said = capsys.readouterr().err
    assert "q.csv is a table" in said
    assert "rag-harness queries import q.csv -o queries.jsonl" in said
