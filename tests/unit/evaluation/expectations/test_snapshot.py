"""An answer beside the one that was kept: what counts as the same, what is said of a change, and the file."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.extensions.amber import AmberSnapshotExtension

from rag_harness.core.errors import DataError, PrerequisiteError
from rag_harness.core.processes import checks_within
from rag_harness.core.types import Expectation
from rag_harness.evaluation.expectations.snapshots import read_snapshots, renewed, write_snapshots
from rag_harness.records import expectations
from rag_harness.records.expectations import (
    LONGEST,
    AnswerSeen,
    ExpectationKind,
    ExpectationResult,
    Finding,
    Source,
    expectations_of,
    kind_of,
    known_kinds,
    looked_at,
)
from tests.effort import bounded
from tests.long_answers import LONG_ANSWERS

LAMP = "You can return a lamp within 45 days, if it is unopened."


def demand(was: str | None, **options: object) -> Expectation:
    (found,) = expectations_of([{"snapshot": True, **options}])[0]
    return replace(found, was=was)


def look(was: str | None, now: str, **options: object) -> ExpectationResult:
    (found,) = looked_at([demand(was, **options)], AnswerSeen(now))
    return found


@pytest.mark.parametrize(
    "now",
    [
        "You can return a lamp within 45 days [Source 1], if it is unopened [Sources 1, 2].",
        "you  CAN return\na lamp within 45 days ,if it is unopened.",
    ],
)
def test_marks_blanks_and_case_do_not_count(now: str) -> None:
    assert look(LAMP, now).kept
    assert look(now, LAMP).kept


@pytest.mark.parametrize(
    ("now", "said", "place"),
    [
        (LAMP.replace("45", "30"), "“…lamp within 45 days,…” became “…lamp within 30 days,…”", "30"),
        (LAMP.replace(" within 45 days", ""), "“…a lamp within 45 days, if…” became “…a lamp, if…”", "lamp"),
        (LAMP + " Ask us.", "“…unopened.” became “…unopened. Ask us.”", "Ask us."),
        (
            LAMP.replace("45", "4.5"),
            "“…lamp within 45 days,…” became “…lamp within 4.5 days,…”",
            "4.5",
        ),
        ("No.", "“You can return a lamp within 45 days, if it is…” became “No.”", "No"),
        ("", "the answer is empty", ""),
    ],
)
def test_a_change_is_shown_with_the_words_beside_it_and_its_place(now: str, said: str, place: str) -> None:
    found = look(LAMP, now)
    assert (found.kept, found.said) == (False, said)
    assert (now[found.start : found.end] if found.start >= 0 else "") == place


def test_case_counts_where_that_is_asked_for() -> None:
    assert look("A lamp.", "a lamp.").kept
    assert look("A lamp.", "a lamp.", case=True).said == "“A lamp.” became “a lamp.”"


def test_without_a_snapshot_nothing_is_kept_or_broken() -> None:
    found = look(None, LAMP)
    assert (found.kept, found.said) == (None, "no snapshot yet: pytest --snapshot-update")


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ({"not": {"snapshot": True}}, "it has no opposite"),
        ({"snapshot": "45 days"}, 'write true: the text is that of an answer. A text of your own is {"equals": "…"}'),
        ({"snapshot": False}, "write true"),
    ],
)
def test_what_is_refused(raw: dict[str, object], problem: str) -> None:
    assert problem in expectations_of([raw])[1][0]


words = st.lists(st.sampled_from(["a", "b", "1.5", "[Source 2]", ".", "Ä", "ß"]), max_size=12).map(" ".join)


@given(words, words)
def test_an_update_makes_it_kept_and_a_second_one_changes_nothing(was: str, now: str) -> None:
    after = renewed(demand(was), now)
    if now.strip():
        assert looked_at([after], AnswerSeen(now))[0].kept
    assert renewed(after, now) == after
    # What says the same stays as it was written: a review shows only what has changed.
    assert renewed(demand(now), now + " [Source 9]").was == now


@given(words, words)
def test_what_differs_is_the_same_from_both_sides(one: str, other: str) -> None:
    assert look(one, other).kept == look(other, one).kept


@pytest.mark.parametrize("now", ["", " \n", "x" * (LONGEST + 1)])
def test_an_empty_answer_and_one_that_nobody_looks_at_are_not_kept(now: str) -> None:
    assert renewed(demand("before"), now).was == "before"
    assert renewed(demand(None), now).was is None


def test_two_long_answers_are_compared_in_a_moment() -> None:
    one, other = "word " * 39_000 + "a", "word " * 39_000 + "b"
    with bounded(10):
        assert look(one, other).said == "“…word word a” became “…word word b”"
        assert len(look("あ" * 100_000, "い" * 100_000).said) < 500


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60).filter(
    lambda text: bool(text.strip())
)


@given(st.dictionaries(st.from_regex(r"[a-z0-9]{1,6}-[A-Za-z0-9_.#-]{1,8}", fullmatch=True), texts, max_size=4))
def test_what_is_written_says_the_same_when_it_is_read(answers: dict[str, str]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "new" / "e3.ambr"
        write_snapshots(file, answers)
        found = read_snapshots(file)
        assert found.keys() == answers.keys()
        for name, text in answers.items():
            assert look(found[name], text).kept, (found[name], text)


def test_syrupy_reads_the_file_and_writes_one_that_is_read(tmp_path: Path) -> None:
    file, extension = tmp_path / "e3.ambr", AmberSnapshotExtension()
    write_snapshots(file, {"e3-q2": "b\n\nc", "e3-q1": "# name: x"})
    assert file.read_text(encoding="utf-8").startswith("# serializer version: 1\n# name: e3-q1\n  # name: x\n# ---\n")
    collection = extension.read_snapshot_collection(snapshot_location=str(file))
    assert {each.name: each.data for each in collection} == {"e3-q1": "# name: x", "e3-q2": "b\n\nc"}
    extension.delete_snapshots(str(file), {"e3-q1"})
    assert read_snapshots(file) == {"e3-q2": "b\n\nc"}
    write_snapshots(file, {})
    assert not file.exists()
    assert read_snapshots(file) == {}


@pytest.mark.parametrize("content", [b"", b"# serializer version: 99\n", b"hello", b"\xff\xfe", b"# name:\n"])
def test_another_file_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "e3.ambr"
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"e3\.ambr "):
        read_snapshots(file)


def test_without_syrupy_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "syrupy.extensions.amber.serializer", None)
    with pytest.raises(PrerequisiteError, match=r"pip install 'pytest-rag-harness\[snapshots\]'"):
        read_snapshots(tmp_path / "e3.ambr")


# Long answers: what looks at one lasts no longer than an answer may take, and what did not end is a reason.

DEADLINE = 10.0
LATE = "not checked within 1 s. Allow more: --rag-deadline"
SLOW = Expectation("regex", r"[\w\W]{3000}x")
"""A pattern of the linear engine that takes 15 s for 200,000 characters, and holds the interpreter meanwhile."""
WANTED: dict[str, Any] = {
    **dict.fromkeys(("links", "is_json", "declines", "answers", "cited", "valid_citations", "snapshot"), True),
    **dict.fromkeys(("contains", "equals", "starts_with", "ends_with", "context_contains"), "45 zebras"),
    **{kind: ["45 zebras", "one more"] for kind in ("contains_any", "contains_all", "one_of")},
    **dict.fromkeys(("cites", "retrieves"), "d1.md"),
    **{kind: ["d1.md"] for kind in ("cites_any", "cites_all", "cites_only")},
    **dict.fromkeys(("max_words", "min_words", "max_chars", "min_chars", "max_sentences", "max_ms", "max_tokens"), 3),
    **{"rouge_l": "zebra stripes " * 100, "regex": "(a|b)*c[0-9]+$", "language": "en", "json": {"uniqueItems": True}},
    **{"number": 45, "date": "2024-03-12", "decides": "pass", "min_confidence": 0.5, "max_usd": 1, "finishes": "stop"},
    **{"rubric": "It is polite.", "similar": "zebras"},
}
SOURCES = [Source(f"d{number}.md", "The lamp can be returned within 45 days.") for number in range(5)]


def seen(text: str) -> AnswerSeen:
    return AnswerSeen(text, sources=SOURCES, cited=(1, 2, 3, 4, 5))


class Own(ExpectationKind):
    """A kind of a user's own."""

    def __init__(self) -> None:
        self.asked = 0

    def problem(self, demand: Expectation) -> str:
        return ""

    def look(self, answer: AnswerSeen, demand: Expectation) -> Finding:
        self.asked += 1
        return Finding(True, "it was looked at here")


def test_a_check_that_outlasts_the_time_is_a_reason_and_code_of_a_users_own_stays_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = Own()
    monkeypatch.setattr(expectations, "kind_of", lambda name: own if name == "own" else kind_of(name))
    expected = [Expectation("contains", "ab"), SLOW, Expectation("own", True)]
    with checks_within(1):
        began = time.monotonic()
        first, slow, mine = looked_at(expected, seen("ab" * 100_000))
        took = time.monotonic() - began
        again = looked_at([SLOW], seen("ab" * 100_000))
    assert (first.kept, slow.kept, mine.kept) == (True, None, True)
    assert slow.said == again[0].said == LATE
    assert own.asked == 1
    assert took < 60, "the process takes a while to start where others work"


def test_an_answer_as_long_as_one_may_be_is_looked_at_as_a_short_one() -> None:
    snapshot = Expectation("snapshot", True)
    for text in ("Lamps cost 9.90 €. " * 1_000, "Lamps cost 9.90 €. " * 2_000):
        found = looked_at([Expectation("contains", "9.90"), Expectation("max_words", 5)], seen(text))
        assert [each.kept for each in found] == [True, False]
        assert renewed(snapshot, text).was == text
        assert renewed(replace(snapshot, was=text.lower()), text).was == text.lower()


@pytest.mark.long
def test_no_kind_outlasts_the_deadline_on_any_long_answer() -> None:
    assert WANTED.keys() == set(known_kinds())
    options: dict[str, dict[str, Any]] = {
        "rouge_l": {"at_least": 0.5},
        "similar": {"at_least": 0.5},
        "number": {"unit": "euros"},
    }
    expected = [Expectation(kind, wanted, options.get(kind, {})) for kind, wanted in WANTED.items()]
    with checks_within(DEADLINE):
        looked_at(expected, seen("a" * 20_001))  # the process starts
        for name, text in LONG_ANSWERS.items():
            asked = [replace(each, was=text[:-1]) if each.kind == "snapshot" else each for each in expected]
            began = time.monotonic()
            found = looked_at(asked, seen(text))
            assert time.monotonic() - began < DEADLINE + 1, name
            assert len(found) == len(asked)
