"""Conversations that got worse between two runs, named with the first turn that did, in numbers worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rag_harness.tables.comparison import ConversationChanges, WorseConversation, compare, conversation_changes
from rag_harness.tables.comparison_lines import compared_lines
from rag_harness.tables.reader import SavedCase, SavedRun, SavedSuite
from rag_harness.tables.run_diff import run_diff, sentences
from tests.unit.tables.test_run_diff import e3, run

Values = Mapping[str, Sequence[float | None]]
BEFORE: Values = {"a": [1, 1, 1, 1], "b": [1, 0.5, 0.5], "c": [0, 0], "d": [0.5, 0.5], "e": [1, 1]}
NOW: Values = {"a": [1, 1, 0.5, 0], "b": [1, 0.5, 0.4], "c": [1, 0], "d": [1, 0], "e": [1, None]}


def suite(talks: Values, measure: str = "token_f1") -> SavedSuite:
    return SavedSuite(
        cases={
            f"{name}#{turn}": SavedCase(
                slices={"conversation": name, "turn": str(turn)}, values={} if value is None else {measure: value}
            )
            for name, values in talks.items()
            for turn, value in enumerate(values, 1)
        }
    )


def changes(now: Values, before: Values, better: str = "higher") -> ConversationChanges | None:
    new, old = suite(now), suite(before)
    return conversation_changes(new, new.values("token_f1", {}), old.values("token_f1", {}), better)  # type: ignore[arg-type]


def said(now: SavedRun, before: SavedRun) -> list[str]:
    return [sentence.text for sentence in sentences(run_diff(compare(now, before))) if "conversation" in sentence.text]


def test_the_worst_is_first_and_each_has_its_first_turn_that_fell() -> None:
    found = changes(NOW, BEFORE)
    assert found is not None
    assert [(each.conversation, each.turn, each.case) for each in found.worse] == [("a", 3, "a#3"), ("b", 3, "b#3")]
    assert [round(each.by, 6) for each in found.worse] == [0.375, round(0.1 / 3, 6)]
    # d lost as much as it gained, and of e one turn is compared, which is the same.
    assert (found.total, found.better) == (5, 1)


def test_of_a_measure_that_is_better_low_what_rose_is_worse() -> None:
    found = changes(BEFORE, NOW, better="lower")
    assert found is not None
    assert [each.conversation for each in found.worse] == ["a", "b"]
    assert changes(NOW, BEFORE, better="") is None


def test_where_the_measure_rose_surely_the_few_that_got_worse_are_no_bad_news() -> None:
    names = [f"conv_{n:02}" for n in range(20)]
    old = {name: [0.5 if name == names[0] else 0.0, 0.0] for name in names}
    new = {name: [0.0, 0.0 if name == names[0] else 1.0] for name in names}
    now, before = suite(new), suite(old)
    diff = run_diff(compare(run(2, {"c1": now}), run(1, {"c1": before})))
    assert [change.direction for change in diff.answers] == ["better"]
    (found,) = [sentence for sentence in sentences(diff) if "conversation" in sentence.text]
    assert found.text == "1 of 20 conversations of c1 got worse in token_f1: conv_00 from turn 1; 19 got better."
    assert found.tone == "unsure"


def test_single_questions_are_no_conversations() -> None:
    alone = SavedSuite(cases={"q1": SavedCase(slices={"conversation": "a"}, values={"token_f1": 1.0})})
    assert conversation_changes(alone, {"q1": 0.0}, {"q1": 1.0}, "higher") is None
    assert said(e3(2, token_f1=[0.0] * 8), e3(1, token_f1=[1.0] * 8)) == []


def test_one_sentence_names_them_for_terminal_page_and_comment() -> None:
    now, before = run(2, {"c1-own": suite(NOW)}), run(1, {"c1-own": suite(BEFORE)})
    text = "2 of 5 conversations of c1-own got worse in token_f1: a from turn 3 and b from turn 3; 1 got better."
    assert said(now, before) == [text]
    assert text in " ".join(" ".join(compared_lines(before, now)).split())


def test_of_many_the_first_are_named_and_the_rest_is_counted() -> None:
    names = [f"conv_{n:02}" for n in range(12)]
    now, before = suite({name: [1, 0] for name in names}), suite({name: [1, 1] for name in names})
    (text,) = said(run(2, {"c1": now}), run(1, {"c1": before}))
    assert text == (
        "12 of 12 conversations of c1 got worse in token_f1: conv_00 from turn 2, conv_01 from turn 2, "
        "conv_02 from turn 2, conv_03 from turn 2 and 8 more."
    )


def test_conversations_that_lost_the_same_are_one_draw_each() -> None:
    now, before = (suite({f"c{n}": [1.0, value] for n in range(3)}) for value in (0.0, 1.0))
    clusters = {"c1": {case: case.partition("#")[0] for case in now.cases}}
    (change,) = compare(run(2, {"c1": now}, clusters=clusters), run(1, {"c1": before})).changes
    assert change.p == 0.25, "2 of the 8 ways to sign three conversations"
    assert not change.is_sure


def test_the_measure_that_surely_fell_is_taken_and_errors_last() -> None:
    names = [f"conv_{n:02}" for n in range(12)]
    old = {name: SavedCase(slices={"conversation": name, "turn": "1"}, values=dict(_GOOD)) for name in names}
    new = {name: case.model_copy(update={"values": {**_GOOD, "recall@5": 0.0}}) for name, case in old.items()}
    new["conv_00"] = old["conv_00"].model_copy(
        update={"values": {"error_rate": 1.0, "expectations": 0.0, "recall@5": 0.0}}
    )
    diff = run_diff(compare(run(2, {"c1": SavedSuite(cases=new)}), run(1, {"c1": SavedSuite(cases=old)})))
    assert [change.measure for change in diff.worse_talks] == ["recall@5"]
    new = {name: case.model_copy(update={"values": {**case.values, "recall@5": 1.0}}) for name, case in new.items()}
    diff = run_diff(compare(run(2, {"c1": SavedSuite(cases=new)}), run(1, {"c1": SavedSuite(cases=old)})))
    assert [change.measure for change in diff.worse_talks] == ["expectations"]
    assert diff.worse_talks[0].conversations == ConversationChanges(
        12, (WorseConversation("conv_00", 1, "conv_00", 1.0),), 0
    )


_GOOD = {"error_rate": 0.0, "expectations": 1.0, "recall@5": 1.0}
