"""The comment on a pull request names conversations that got worse; their names make it neither long nor active."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from rag_harness.page.comment import comment_of
from rag_harness.stats import means
from tests.browser.talks import LAMP, Talks, hostile_talk
from tests.hostile import WHOLE
from tests.unit.core.escaping.active import in_markdown
from tests.unit.page.runs import gate, read, summarise
from tests.unit.page.test_comment_markdown import checked, sound

_REPORT = "https://ci.example/report.html"
_LINK = f"[`now/c1-own-lamp#3`]({_REPORT}#trials?open=now%2Fc1-own-lamp%233)"


def two_runs(folder: Path, now: Talks, before: Talks) -> tuple[Path, Path]:
    return now.write(folder / "now"), before.write(folder / "before")


def worse(text: str) -> list[str]:
    return [line for line in text.splitlines() if "got worse in" in line]


def test_what_it_says_of_conversations(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    assert checked(*two_runs(tmp_path, Talks(worse=[f"{LAMP}#3", f"{LAMP}#4"]), Talks())) == snapshot


def test_each_experiment_names_what_got_worse_with_a_link_to_the_first_turn(tmp_path: Path) -> None:
    talks = Talks(("c1", "c1-own"), worse=[f"{LAMP}#3", f"{LAMP}#4"])
    lines = worse(comment_of(read(*two_runs(tmp_path, talks, Talks(("c1", "c1-own")))), _REPORT))
    assert lines[1] == f"- ❔ 1 of 2 conversations of c1-own got worse in correct: lamp from turn 3. See {_LINK}"
    assert len(lines) == 2


def test_a_run_where_none_got_worse_says_nothing(tmp_path: Path) -> None:
    assert worse(checked(*two_runs(tmp_path, Talks(), Talks(worse=[f"{LAMP}#3"])))) == []


def test_it_stays_short_whatever_many_conversations_are_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(means, "DRAWS", 100)  # most of the time, and no bound is looked at
    # As many lines or conversations too many would not fit. Of each experiment the comment names four.
    experiments = [f"x{n:02}-own" for n in range(20)]
    questions = {f"{text}{n}": ["How?", "And?"] for n, text in enumerate(WHOLE[::30])}
    both = [
        Talks(experiments, questions, [f"{name}#2" for name in questions] if is_now else ()) for is_now in (True, False)
    ]
    outputs = two_runs(tmp_path, *both)
    summarise(outputs[0], *(gate(f"{name}: recall@5 >= 0.7", "failed") for name in experiments))
    text = sound(comment_of(read(*outputs), _REPORT), _REPORT)
    assert worse(text)
    assert [each for each in in_markdown(text) if "href" not in each and each != "<a>"] == []


@pytest.mark.parametrize("report", ["", _REPORT])
def test_hostile_turns_do_nothing(tmp_path: Path, report: str) -> None:
    bad = hostile_talk()
    outputs = two_runs(tmp_path, Talks(questions=bad, worse=["bad#2"]), Talks(questions=bad))
    assert worse(sound(comment_of(read(*outputs), report), report))
