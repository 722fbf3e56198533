"""A person confirms or corrects, and both are compared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rag_harness.core.errors import DataError
from rag_harness.diagnosis.cause_lines import review, review_agreement
from rag_harness.diagnosis.failures import TOP_LEVEL
from rag_harness.records.scores import read_causes, write_causes
from tests.unit.diagnosis.test_causes_text import line


def saying(*answers: str) -> Callable[[str], str]:
    each = iter(answers)

    def ask(_: str) -> str:
        try:
            return next(each)
        except StopIteration:
            raise EOFError from None

    return ask


def test_each_answer_is_kept_at_once_and_what_was_reviewed_is_not_asked_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_causes(tmp_path, [line(1), line(2), line(3), line(4)])
    noise = str(TOP_LEVEL.index("Noise") + 1)
    assert review(tmp_path, "ada", saying("", "99", noise, "s", "q")) == 0
    found = read_causes(tmp_path)
    assert [each.reviewed_cause for each in found] == ["Retrieval Miss", "Noise", "", ""]
    assert [each.reviewed_by for each in found] == ["ada", "ada", "", ""]
    said = capsys.readouterr().out
    assert "'99' is none of these." in said
    assert "2 reviewed: 50% agree, Cohen's κ 0.00" in said
    assert "  1 × Retrieval Miss -> Noise" in said
    review(tmp_path, "bob", saying("y"))
    assert [each.reviewed_by for each in read_causes(tmp_path)] == ["ada", "ada", "bob", ""]


def test_kappa_of_machine_and_person() -> None:
    pairs = [("Noise", "Noise"), ("Noise", "Noise"), ("Noise", "Outdated Info"), ("Outdated Info", "Outdated Info")]
    seen = [line(n, cause=cause, reviewed_cause=said) for n, (cause, said) in enumerate(pairs)]
    # By hand: 3 of 4 agree; by chance (3·2 + 1·2) / 16 = 0.5.
    assert review_agreement(seen)[0] == "4 reviewed: 75% agree, Cohen's κ 0.50"
    assert "not defined" in review_agreement([line(1, reviewed_cause="Retrieval Miss")])[0]
    assert review_agreement([line(1)]) == ["nothing reviewed yet"]


def test_without_causes_it_says_how_to_find_them(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Find them first: rag-harness explain"):
        review(tmp_path)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("1", TOP_LEVEL[0]),
        (str(len(TOP_LEVEL)), TOP_LEVEL[-1]),
        (" YES ", "Retrieval Miss"),
        ("0", ""),
        (str(len(TOP_LEVEL) + 1), ""),
        ("-1", ""),
    ],
)
def test_a_cause_is_named_by_its_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], said: str, kept: str
) -> None:
    write_causes(tmp_path, [line(1)])
    review(tmp_path, "ada", saying(said))
    assert [each.reviewed_cause for each in read_causes(tmp_path)] == [kept]
    printed = capsys.readouterr().out
    assert (f"{said!r} is none of these." in printed) is (not kept)
    assert ", ".join(f"{n} {cause}" for n, cause in enumerate(TOP_LEVEL, 1)) in printed


def test_without_a_name_who_reviews_is_who_is_logged_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "bert")
    asked: list[str] = []
    write_causes(tmp_path, [line(1), line(2)])
    review(tmp_path, ask=lambda question: asked.append(question) or "")  # type: ignore[func-returns-value]
    assert [each.reviewed_by for each in read_causes(tmp_path)] == ["bert", "bert"]
    assert asked == [f"right? enter: yes; 1-{len(TOP_LEVEL)}: another cause; s: skip; q: stop  "] * 2


def test_what_was_changed_most_comes_first() -> None:
    pairs = [("Noise", "Retrieval Miss"), *[("Noise", "Outdated Info")] * 2, ("Noise", "Noise")]
    seen = [line(n, cause=cause, reviewed_cause=said) for n, (cause, said) in enumerate(pairs)]
    assert review_agreement(seen)[1:] == ["  2 × Noise -> Outdated Info", "  1 × Noise -> Retrieval Miss"]
