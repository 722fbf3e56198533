"""What the detector of contradictions finds and what it leaves alone."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_harness.core.text.contradictions import ANSWER, Contradiction, against, contradictions
from rag_harness.core.text.figures import MOST_FIGURES, figures_of, tokens
from rag_harness.core.text.language_detection import no_rules
from rag_harness.core.types import Chunk
from tests.effort import spent

# What the detector of contradictions finds and what it leaves alone.

DATA = Path(__file__).parent / "data"
FEE = "A lost card is replaced for €5."
DEARER = "A lost card is replaced for €8."


def only(*texts: str) -> Contradiction:
    [found] = contradictions(texts)
    return found


@pytest.mark.parametrize(
    ("first", "second", "kind", "differs"),
    [
        (FEE, DEARER, "number", ("€5", "€8")),
        ("Interest is 2 % a year.", "Interest is 3.5 % a year.", "number", ("2 %", "3.5 %")),
        ("The lamp weighs 2 kg.", "The lamp weighs 900 g.", "number", ("2 kg", "900 g")),
        ("The course lasts two weeks.", "The course lasts 10 days.", "number", ("two weeks", "10 days")),
        ("We compare four listed shops.", "We compare six listed shops.", "number", ("four", "six")),
        ("Applications arrive by 3 May.", "Applications arrive by 9 May.", "date", ("3 May", "9 May")),
        ("The fair opens on 3 May 2025.", "The fair opens on 3 May 2026.", "date", ("3 May 2025", "3 May 2026")),
        ("The pool opens at 7:00.", "The pool opens at 8 am.", "date", ("7:00", "8 am")),
        ("Rent is due by the 3rd of the month.", "Rent is due by the 5th of the month.", "date", ("3rd", "5th")),
        ("Dogs are allowed on deck.", "Dogs are not allowed on deck.", "negation", ("affirmed", "denied")),
        ("You must register the bicycle.", "You must not register the bicycle.", "negation", ("affirmed", "denied")),
        ("You need not register the bicycle.", "You must register the bicycle.", "negation", ("denied", "affirmed")),
        ("Cards no longer expire in spring.", "Cards expire in spring.", "negation", ("denied", "affirmed")),
        ("Never bring food into the room.", "Bring food into the room.", "negation", ("denied", "affirmed")),
        ("The parser needs Java 11 or later.", "The parser needs Java 17 or later.", "version", ("11", "17")),
        (f"Edition of 2019. {FEE}", f"Edition of 2024. {DEARER}", "version", ("€5", "€8")),
    ],
)
def test_each_kind_is_found_and_named(first: str, second: str, kind: str, differs: tuple[str, str]) -> None:
    found = only(first, second)
    assert (found.kind, found.differs) == (kind, differs)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The course lasts two weeks.", "The course lasts 14 days."),
        ("The lamp weighs 1.5 kg.", "The lamp weighs 1,500 g."),
        ("The pool opens at 2 pm.", "The pool opens at 14:00."),
        ("Repairs take 3 to 10 days.", "Repairs take 5 days."),
        ("Repairs take between 3 and 10 days.", "Repairs take 5 days."),
        ("The exam takes at least 60 minutes.", "The exam takes 75 minutes."),
        ("We answer letters within 3 days.", "We usually answer letters within 1 day."),
        ("The walk takes about 60 minutes.", "The walk takes 65 minutes."),
        ("If you book online, the tour costs €12.", "If you book by letter, the tour costs €15."),
        ("With an appointment, you wait 10 minutes.", "Without an appointment, you wait 90 minutes."),
        ("A trip of less than 5 years ago counts 2 points.", "A trip of more than 9 years ago counts 4 points."),
        ("The blender has 900 W.", "The toaster has 1,200 W."),
        ("The lamp S weighs 900 g.", "The lamp L weighs 2 kg."),
        ("Rooms in zone 1 cost €40.", "Rooms in zone 2 cost €60."),
        ("A ticket costs €4 per hour.", "A ticket costs €9 per day."),
        ("Until 2019 a swim cost €4.", "A swim costs €6."),
        ("Formerly a swim cost €4.", "A swim costs €6."),
        ("Does a swim cost €4?", "A swim costs €6."),
        ("Suppose a swim costs €4.", "A swim costs €6."),
        ("Dogs are not allowed on deck.", "Dogs aren't allowed on deck."),
        ("You need not register the bicycle.", "You can register the bicycle."),
        ("Dogs are not always allowed on deck.", "Dogs are allowed on deck."),
        ("Cards cannot be renewed after 7 days.", "Cards can be renewed for €3."),
        ("Not only dogs are allowed on deck.", "Dogs are allowed on deck."),
        ("Outlet shoes cannot be returned by post.", "Shoes can be returned by post."),
        ("Delivery of shoes is free for orders of €50.", "Delivery of shoes costs €4."),
        ("```\nA swim costs €4.\n```", "A swim costs €6."),
    ],
)
def test_what_can_both_be_true_is_left_alone(first: str, second: str) -> None:
    assert contradictions([first, second]) == []


def test_a_quote_says_where_it_stands() -> None:
    texts = [f"Read this first.\n\n{FEE} Bring a photo.", f"# Cards\n\n- Bring **two** photos.\n- {DEARER}"]
    found = only(*texts)
    for quote, text, said in zip((found.first, found.second), texts, (FEE, DEARER), strict=True):
        assert text[quote.start : quote.end] == quote.sentence == said.rstrip(".")
    assert (found.first.text, found.second.text) == (0, 1)


def test_cells_are_read_with_their_row_and_column() -> None:
    table = "## Postage\n\n| Service | Zone 1 | Zone 2 |\n|---|---|---|\n| Letter | €2 | €3 |\n| Parcel | €5 | {} |\n"
    found = only(table.format("€7"), table.format("€8"))
    assert found.differs == ("€7", "€8")
    assert found.first.sentence.startswith("Parcel | €5 | €7")
    assert only(table.format("€7"), "Postage of a parcel to zone 2 costs €9.").differs == ("€7", "€9")


def test_a_bare_cell_has_the_unit_of_its_column() -> None:
    table = "## Loans\n\n| What | Weeks |\n|---|---|\n| Books | {} |\n"
    assert only(table.format(4), table.format(3)).differs == ("4 weeks", "3 weeks")


def test_another_row_of_a_table_is_another_case() -> None:
    table = "## Loans\n\n| What | Period |\n|---|---|\n| {} | {} weeks |\n"
    assert contradictions([table.format("Books", 4), table.format("Picture books", 2)]) == []
    assert contradictions([table.format("Picture books", 2), "A loan of books has a period of 4 weeks."]) == []


def test_what_the_other_text_says_as_well_is_no_contradiction() -> None:
    assert contradictions([f"{FEE} {DEARER}", DEARER]) == []
    assert contradictions([f"Earlier cards were other cards. {FEE} {DEARER}", f"By the way: {DEARER}"]) == []


def test_markup_and_citations_change_nothing() -> None:
    written = "A lost **card** is [replaced](../cards.md#lost) for `€5` [Source 1: a.md]."
    assert only(written, DEARER).differs == ("€5", "€8")


def test_weights_can_be_given() -> None:
    texts = ["A member's scarf from the shop is €20.", "A member's scarf is €30."]
    assert contradictions(texts, idf={"member": 1.0, "scarf": 1.0, "shop": 9.0}) == []
    assert only(*texts).differs == ("€20", "€30")


def test_an_answer_is_held_against_its_sources() -> None:
    [found] = against("It is simple: a lost card is replaced for €8 [Source 1].", ["Cards expire.", FEE])
    assert (found.first.text, found.second.text, found.differs) == (ANSWER, 1, ("€8", "€5"))
    [found] = against("Dogs are allowed on deck.", ["Dogs are not allowed on deck."])
    assert (found.kind, found.differs) == ("negation", ("affirmed", "denied"))


def test_sources_that_differ_are_not_the_fault_of_the_answer() -> None:
    sources = [FEE, DEARER]
    assert against("Good news. A lost card is replaced for €8.", sources) == []
    assert against("Your lost card is replaced for €8.", sources) == []
    assert len(against("Your lost card is replaced for €9.", sources)) == 2
    opposed = ["Dogs are allowed on deck.", "Dogs are not allowed on deck."]
    assert against("Your dogs are allowed on deck.", opposed) == []


def test_sources_are_not_held_against_each_other_with_an_answer() -> None:
    assert against("Cards are green.", [FEE, DEARER]) == []


@pytest.mark.parametrize("texts", [[], [""], ["", ""], [FEE], ["\n", "| a |\n|---|\n"], ["1", "2"]])
def test_too_little_says_nothing(texts: list[str]) -> None:
    assert contradictions(texts) == []
    assert against("", texts) == []


def test_the_pairs_written_before_the_detector() -> None:
    """20 conflicts and 40 that are none; nothing was tuned on them. These are the figures of their first run."""
    rows = [json.loads(line) for line in (DATA / "conflict_pairs.jsonl").read_text(encoding="utf-8").splitlines()]
    found = {row["id"] for row in rows if contradictions([row["first"], row["second"]])}
    conflicts = {row["id"] for row in rows if row["conflicts"]}
    assert (len(conflicts), len(rows)) == (20, 60)
    assert len(found & conflicts) >= 16
    assert len(found - conflicts) <= 1


# The script that counts contradictions found and missed: what it blanks, what it compares, what it prints.

# Benchmarks are scripts and no package: a type checker would meet the file under two names.
script: Any = import_module("benchmarks.contradictions")
HELD_OUT = "unseen_held_out_pairs"


def lines(name: str) -> list[str]:
    return (script.PAIRS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def cut() -> dict[str, list[Chunk]]:
    return script.sections()  # type: ignore[no-any-return]


def test_what_tells_versions_apart_is_blanked_in_place() -> None:
    page = "# Fees 2024\n\nEffective 1 May 2024. A swim costs €4.\n\n## Previous version\n\nSee [old](old.md)."
    page += "\n\n## More\n\nEnd."
    hidden = script.blanked(page)
    assert len(hidden) == len(page)
    assert hidden.split() == ["A", "swim", "costs", "€4.", "##", "More", "End."]
    assert hidden.index("A swim") == page.index("A swim")


def test_no_section_of_the_version_pairs_names_its_year_or_the_other(cut: dict[str, list[Chunk]]) -> None:
    shown = " ".join(chunk.text for fact in script.facts() for chunk in cut[fact.outdated])
    assert "Effective" not in shown
    assert "newer version" not in shown


def test_each_version_pair_is_noticed_by_a_planned_fact(cut: dict[str, list[Chunk]]) -> None:
    noticed = {
        fact.outdated
        for fact in script.facts()
        for found in contradictions(
            [
                script.stating(cut[fact.outdated], fact.statements[0]).text,
                script.stating(cut[fact.current], fact.statements[1]).text,
            ]
        )
        if script.carries(found, fact)
    }
    assert len(noticed) == len({fact.outdated for fact in script.facts()}) == 5


def test_other_pairs_are_of_two_pages_that_are_no_versions_of_each_other(cut: dict[str, list[Chunk]]) -> None:
    few = {name: cut[name][:1] for name in ("returns-policy", "returns-policy-2024", "carriers")}
    pairs = {outdated: list(script.other_pairs(few, script.facts(), outdated)) for outdated in (False, True)}
    names = {outdated: [(one.doc_id, other.doc_id) for one, other in found] for outdated, found in pairs.items()}
    assert names == {False: [("carriers", "returns-policy")], True: [("carriers", "returns-policy-2024")]}


def test_the_most_similar_pairs_come_first() -> None:
    chunks = [Chunk(str(n), str(n), text) for n, text in enumerate(("red swim fee", "blue swim fee", "green card key"))]
    pairs = [(chunks[0], chunks[2]), (chunks[0], chunks[1]), (chunks[1], chunks[2])]
    assert script.similar(pairs, 1) == [(chunks[0], chunks[1])]


def test_a_report_counts_what_is_raised(capsys: pytest.CaptureFixture[str]) -> None:
    one, other = Chunk("a", "a", "A lost card costs €5."), Chunk("b", "b", "A lost card costs €8.")
    lines: list[str] = []
    script.report_others("raised", [(one, other), (one, one)], lines.append)
    assert capsys.readouterr().out.startswith("raised: 1 of 2 pairs (50.0%), ")
    assert len(lines) == 1


def test_a_report_of_passages_names_misses_and_false_alarms_with_intervals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The interval of 1 of 2 by hand: p at which 1 or more of 2 have 2.5 %, 1 - √0.975 = 1.3 %, and 1 less that."""
    lost, dearer, cheap = "A lost card costs €5.", "A lost card costs €8.", "Soup is cheap."
    pairs = [(True, lost, dearer), (True, lost, cheap), (False, lost, dearer), (False, lost, lost)]
    rows = [
        {"id": f"p{n}", "conflicts": conflicts, "kind": "number", "first": first, "second": second}
        for n, (conflicts, first, second) in enumerate(pairs)
    ]
    file = tmp_path / "few.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    shown: list[str] = []
    script.report_passages(file, shown.append)
    assert capsys.readouterr().out.splitlines() == [
        "few: found 1 of 2 (50.0%, 1.3% to 98.7%; number 1/2)",
        "few: false alarms 1 of 2 (50.0%, 1.3% to 98.7%; number 1/2)",
    ]
    assert [line.split(":")[0].strip() for line in shown] == ["p1", "p2"]


def test_pairs_that_are_held_out_are_counted_and_never_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("report_versions", "report_others", "report_answers"):
        monkeypatch.setattr(script, name, lambda *_: None)
    monkeypatch.setattr(script, "sections", dict)
    monkeypatch.setattr("sys.argv", ["contradictions.py", "--show", "--pairs", "0"])
    script.main()
    printed = capsys.readouterr().out
    ids = [json.loads(line)["id"] for line in lines(HELD_OUT)]
    assert "  unseen_" in printed
    assert not any(f"{name}:" in printed for name in ids)
    assert f"{HELD_OUT}: found 1 of 27 (3.7%, 0.1% to 19.0%; " in printed
    assert f"{HELD_OUT}: false alarms 0 of 53 (0.0%, 0.0% to 6.7%; " in printed


def test_the_two_parts_of_the_pairs_by_a_second_hand_share_none() -> None:
    parts = [
        {(row["first"], row["second"]) for row in map(json.loads, lines(name))}
        for name in ("unseen_development_pairs", HELD_OUT)
    ]
    assert [len(part) for part in parts] == [40, 80]
    assert not parts[0] & parts[1]


def test_the_pairs_written_before_the_detector_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    script.report_passages(script.PAIRS / "conflict_pairs.jsonl", lambda line: None)
    printed = capsys.readouterr().out
    assert "found 16 of 20 " in printed
    assert "false alarms 1 of 40 " in printed


# What holds of contradictions between any texts, and how long hostile ones take.

_SUBJECTS = ("a lost card", "the guided tour", "the swimming course", "a parcel by post")
_SAYINGS = (
    "{} costs €{} in spring.",
    "{} takes {} days at most.",
    "{} starts on {} June each year.",
    "{} needs Java {} or later.",
    "{} is booked by {} people or more.",
    "{} begins between {} and 29 minutes later.",
)
_DENIALS = ("{} can be cancelled online.", "{} cannot be cancelled online.", "{} must not be cancelled online.")
_sentences = st.one_of(
    st.builds(lambda said, what, many: said.format(what, many).capitalize(),
              st.sampled_from(_SAYINGS), st.sampled_from(_SUBJECTS), st.integers(2, 28)),
    st.builds(lambda said, what: said.format(what).capitalize(), st.sampled_from(_DENIALS), st.sampled_from(_SUBJECTS)),
)  # fmt: skip
_texts = st.lists(_sentences, max_size=6).map(" ".join)
LONG = 20_000
PATIENCE = 1.5
"""Seconds. Under 0.2 each where it was written; the rest is for slower machines, not for a power of the length."""


def told(found: list[Contradiction]) -> list[tuple[object, ...]]:
    return sorted((one.kind, one.first.sentence, one.second.sentence, one.differs) for one in found)


def turned(found: list[Contradiction]) -> list[tuple[object, ...]]:
    return sorted((one.kind, one.second.sentence, one.first.sentence, one.differs[::-1]) for one in found)


@given(_texts, _texts)
def test_the_order_of_texts_only_swaps_the_sides(one: str, other: str) -> None:
    assert told(contradictions([one, other])) == turned(contradictions([other, one]))


@given(st.one_of(_texts, st.text(max_size=200)))
def test_a_text_never_contradicts_itself(text: str) -> None:
    assert contradictions([text, text]) == []
    assert contradictions([text, text.replace(" ", "  ")]) == []
    assert against(text, [text]) == []


@given(_texts, _texts)
def test_case_does_not_matter(one: str, other: str) -> None:
    loud = contradictions([one.upper(), other])
    found = contradictions([one, other])
    assert [(it.kind, it.first.start, it.second.start) for it in loud] == [
        (it.kind, it.first.start, it.second.start) for it in found
    ]


@given(_texts, _texts, st.sampled_from(["  ", "\t", "\n", " \n  "]))
def test_white_space_does_not_matter(one: str, other: str, space: str) -> None:
    spaced = contradictions([one.replace(" ", space), other])
    folded = [(it.kind, " ".join(it.first.sentence.split()), it.second.sentence, it.differs) for it in spaced]
    assert sorted(folded) == told(contradictions([one, other]))


@given(st.lists(st.one_of(_texts, st.text(max_size=300)), max_size=4))
def test_quotes_are_verbatim_and_of_two_texts(texts: list[str]) -> None:
    for found in contradictions(texts):
        assert 0 <= found.first.text < found.second.text < len(texts)
        for quote in (found.first, found.second):
            assert texts[quote.text][quote.start : quote.end] == quote.sentence


@given(st.text(alphabet="|-#*[](){}`~<>!$€%.:;,'\"\\ \n\t 019azAZé½²٣\x00", max_size=300), _texts)
@settings(max_examples=200)
def test_any_text_is_read(text: str, other: str) -> None:
    contradictions([text, other])
    against(text, [other])


def _prose(shift: int) -> str:
    names = [f"{first}{second}ump" for first in "bcdfghjklmnp" for second in "aeiou"]
    lines = (f"The {names[n % 60]} {names[n * 7 % 59]} costs €{(n * 13 + shift) % 97}." for n in range(2_000))
    return " ".join(lines)[:LONG]


_PIECES = (
    *("1", "1 ", "1.", "5 - ", "a", "a-", "a1-", " ", "\n", "[", "[a](", "[1 ", "<!--", "```\n", "*", "|", "$", "$a="),
    *(
        "€5 ",
        "not ",
        "if ",
        "zone 1, ",
        "a: ",
        ".\"'",
        "e.g. ",
        "# a\n",
        "- a 5 b\n",
        "may 5 ",
        "free of charge ",
        "\0",
    ),
    *("until the end of ", "effective from a ", "The pool opens at 7:00. ", "|a|1|\n|-|-|\n"),
)


def test_long_hostile_texts_are_read_at_once() -> None:
    took = {piece: seconds(piece * (2 * LONG // len(piece)), "The pool opens at 8:00.") for piece in _PIECES}
    assert {piece: each for piece, each in took.items() if each >= PATIENCE} == {}


def test_long_prose_and_tables_are_read_at_once() -> None:
    table = "| a | b |\n|---|---|\n" + "".join(f"| row {row} | {row} |\n" for row in range(9_000))
    assert seconds(_prose(1), _prose(2)) < PATIENCE
    assert seconds(table[: 2 * LONG], "Row 5 of a has 7 of b.") < PATIENCE


def seconds(*texts: str) -> float:
    return spent(lambda: contradictions(texts))


# What is not English is not read for contradictions: rules for English would find some, and nobody knows how well.

OLD = "Die Lieferung kostet in der Schweiz 5 € und sie kommt nicht mit der Post."
NEW = OLD.replace("5 €", "9 €")
IN_ENGLISH = "The return period is 30 days for all articles that are not used."


def test_german_texts_contradict_nothing_and_that_is_said() -> None:
    assert contradictions([OLD, NEW]) == []
    assert against(OLD, [NEW]) == []
    assert no_rules("contradictions are looked for in English", OLD) == (
        "no rules for de: contradictions are looked for in English"
    )


def test_english_texts_beside_them_are_read() -> None:
    found = contradictions([OLD, IN_ENGLISH, IN_ENGLISH.replace("30", "45")])
    assert [(one.first.text, one.second.text) for one in found] == [(1, 2)]


# Which figures a sentence states, and which of its numbers are names.

DAY = 86_400


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("It costs €1,250.50 or 90 cents", [("€", 1250.5, 1250.5, ""), ("€", 0.9, 0.9, "")]),
        ("Delivery is free of charge", [("€", 0, 0, "")]),
        ("It takes up to two weeks", [("time", 14 * DAY, 14 * DAY, "upper")]),
        ("a 30-day trial", [("time", 30 * DAY, 30 * DAY, "")]),
        ("within 5 working days", [("working days", 5, 5, "upper")]),
        ("for 2 full years", [("months", 24, 24, "")]),
        ("no fewer than 5 people", [("count", 5, 5, "lower")]),
        ("no more than 5 people", [("count", 5, 5, "upper")]),
        ("5 people or more", [("count", 5, 5, "lower")]),
        ("at least 5 people", [("count", 5, 5, "lower")]),
        ("5 items or less", [("count", 5, 5, "upper")]),
        ("about 5 kg", [("mass", 5000, 5000, "about")]),
        ("3 to 5 weeks", [("time", 21 * DAY, 35 * DAY, "")]),
        ("between 1 % and 8 %", [("percent", 1, 8, "")]),
        ("€3–€5", [("€", 3, 5, "")]),
        ("2.5 per cent", [("percent", 2.5, 2.5, "")]),
        ("on 3 May 2025", [("date", 503, 503, "")]),
        ("by June 5", [("date", 605, 605, "")]),
        ("on the 3rd of each month", [("day of the month", 3, 3, "")]),
        ("children of 6 may travel", [("count", 6, 6, "")]),
        ("at 5 p.m. or 17:00", [("clock", 1020, 1020, ""), ("clock", 1020, 1020, "")]),
        ("at 12 am", [("clock", 0, 0, "")]),
        ("founded in 1998", [("year", 1998, 1998, "")]),
        ("needs Java 11", [("version", 11e8, 11e8, "")]),
        ("since version 2.1", [("version", 200_010_000, 200_010_000, "")]),
        ("rooms in zones 1 and 2", []),
        ("the Ferrite 4.2 manual", []),
        ("form R-7 and code A20", []),
    ],
)
def test_figures_are_typed(sentence: str, expected: list[tuple[str, float, float, str]]) -> None:
    figures, _ = figures_of(list(tokens(sentence, 0, len(sentence))), sentence)
    assert [(one.dimension, one.low, one.high, one.bound) for one in figures] == expected


def test_numbers_behind_labels_are_parts_of_names() -> None:
    sentence = "Rooms in zones 1, 2 and 3 of Ferrite 4.2 are shut"
    assert list(figures_of(list(tokens(sentence, 0, len(sentence))), sentence)[1].values()) == [
        "zone 1",
        "zone 2",
        "zone 3",
        "ferrite 4.2",
    ]


def test_what_is_counted_and_for_what_is_read() -> None:
    sentence = "You earn 200 Leaves and €4 for every order"
    count, amount = figures_of(list(tokens(sentence, 0, len(sentence))), sentence)[0]
    assert (sorted(count.role), count.written) == (["leav"], "200")
    assert (amount.per, amount.written) == ("order", "€4")


def test_the_figures_of_a_statement_are_bounded() -> None:
    sentence = "€5 " * 50
    assert len(figures_of(list(tokens(sentence, 0, len(sentence))), sentence)[0]) == MOST_FIGURES
