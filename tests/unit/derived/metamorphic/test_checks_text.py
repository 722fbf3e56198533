"""What a person reads of metamorphic checks, and a machine."""

from __future__ import annotations

from typing import Any

from rag_harness.core.settings import Settings
from rag_harness.diagnosis.metamorphic import AUTHOR, NOTHING_TO_CHECK, TERMINAL_WIDTH, metamorphic_lines, rates_as_json
from rag_harness.evaluation.measures.metamorphic import METAMORPHIC
from rag_harness.records.scores import ScoreLine

LONG = "What would it cost to have all of the things that I have ordered since the spring sent to me today, and "


def line(
    measure: str, n: int, value: float | None, reason: str = "", experiment: str = "e3", **detail: Any
) -> ScoreLine:
    said = {"query": f"{LONG}why?", "changed": f"{LONG}wyh?", "before": "45 days", "answer": "30 days", **detail}
    return ScoreLine(measure, 1, "e3", f"q{n}", "", "", AUTHOR, value, reason, detail=said)


FOUND = {
    "e3": [
        *(line("metamorphic_order", n, 0.0, "45 became 30", **({"wavers": "x"} if n else {})) for n in range(3)),
        line("metamorphic_order", 3, 1.0),
        line("metamorphic_typos", 0, 0.0, "declines to answer"),
        *(line("metamorphic_case", n, None, f"No recording of 'q{n}'") for n in range(2)),
    ]
}


def test_rates_reasons_and_the_worst_example_of_each() -> None:
    text = "\n".join(metamorphic_lines(FOUND, Settings()))
    assert "the first 50 by lot" in text
    assert "order           1/4" in text
    assert "case              -" in text
    assert "e3: without a score: case 2: No recording of 'q0'" in text
    assert "e3: 4 answers changed; 2 of them waver without any change" in text
    assert text.index("order (3) e3-q0: 45 became 30") < text.index("typos (1) e3-q0: declines to answer")
    assert "and why?" in text
    assert "and wyh?" in text
    assert text.endswith("all 7: output/metamorphic")


def test_no_line_is_wider_than_a_terminal_however_many_experiments_there_are() -> None:
    many = {
        f"a-very-long-name-of-experiment-{n}": [line(name, 0, 0.0, "x " * 99) for name in METAMORPHIC] for n in range(7)
    }
    lines = metamorphic_lines(many, Settings())
    assert max(map(len, lines)) <= TERMINAL_WIDTH
    assert sum(each.startswith("kept / checked") for each in lines) == 2


def test_without_an_answer_there_is_nothing_to_check() -> None:
    assert metamorphic_lines({"e3": []}, Settings()) == [NOTHING_TO_CHECK]
    assert rates_as_json({"e3": []}) == {"e3": {}}


def test_a_machine_reads_rates_and_reasons() -> None:
    found = rates_as_json(FOUND)["e3"]
    assert found["metamorphic_order"] == {
        "rate": 0.25,
        "checked": 4,
        "broken": ["q0", "q1", "q2"],
        "wavering": ["q1", "q2"],
        "without": {},
    }
    assert found["metamorphic_case"]["rate"] is None
    assert found["metamorphic_case"]["without"] == {"No recording of 'q0'": 1, "No recording of 'q1'": 1}
