"""The comment on a pull request, and the badge: the verdict first, never too long, and nothing of it acts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from syrupy.assertion import SnapshotAssertion

from rag_harness.__main__ import CANNOT_RUN, main
from rag_harness.core.types import Case, Query
from rag_harness.page import format_of
from rag_harness.page.comment import MOST_CHARACTERS, MOST_LINES, comment_of
from rag_harness.page.content import Links, Room
from rag_harness.page.run import Run
from rag_harness.records.scores import CauseLine, write_causes
from rag_harness.stats import means
from rag_harness.tables.reader import save, saved_run
from tests.browser.talks import LAMP, Talks, hostile_talk
from tests.hostile import WHOLE
from tests.unit.core.escaping.active import in_markdown, read_html
from tests.unit.page.runs import BARE, CP, amend, gate, read, rows_of, scored, summarise, write_study
from tests.unit.rows import failed_row
from tests.unit.suite_tables import golden_row, write_run

# The comment on a pull request: the verdict first, never too long, and nothing of it acts.

RIGHT_TO_LEFT = "كم يوماً لديّ لإعادة المنتج؟ " * 8


def checked(*outputs: Path, report: str = "") -> str:
    """Return the comment, which has what every comment has."""
    return sound(comment_of(read(*outputs), report), report)


def sound(text: str, report: str = "") -> str:
    """Return the text; it is short, its first line is the verdict, and it renders as what was meant."""
    assert text.count("\n") <= MOST_LINES
    assert len(text) <= MOST_CHARACTERS
    assert re.match(r"## (✅ PASS|❌ FAIL|❔ UNDECIDED|❔ NO VERDICT): ", text)
    assert not re.search(r"\b(?:nan|NaN|inf|None)\b", text)
    assert [each for each in in_markdown(text) if not (report and "href" in each) and each != "<a>"] == []
    html = MarkdownIt("commonmark").enable("table").render(text)
    tags = read_html(html).tags
    assert all(html.count(f"<{tag}>") == html.count(f"</{tag}>") for tag in {*tags} - {"br", "a"})
    assert (tags.count("h2"), tags.count("details")) == (1, 1)
    assert "| ---" not in html, "a table that is none"
    return text


def cause(place: int, **fields: Any) -> CauseLine:
    usual = {"experiment": "e2", "query_id": f"q{place:02}", "query": f"Question {place}?", "fingerprint": "aaaa"}
    said = {"cause": "Retrieval Miss", "detail": "cut", "evidence": "seen", "remedy": "longer chunks"}
    return CauseLine.model_validate({**usual, **said, **fields})


@pytest.fixture
def study(tmp_path: Path) -> Path:
    output = write_study(tmp_path / "output")
    amend(output, commit="c0ffee", digests={"queries": "abc"}, settings={"attribute": True})
    summarise(
        output,
        gate("e3: recall@5 >= 0.7", value=1.0, interval=[0.758, 1.0]),
        gate("e2: recall@5 >= 0.7", "failed", value=0.5, interval=[0.25, 0.75], otherwise="longer chunks", due=True),
        gate("e3: recall@5 > e2 @95%", "undecided", reason="about 26 more would settle it", otherwise="ask them"),
        gate("e9: recall@5 >= 0.7", "not judged", value=None, threshold=None, interval=None, n=0, reason="e9: -m e9"),
    )
    write_causes(output, [cause(place) for place in (7, 8, 6, 9)])
    return output


def cells(text: str, begins: str) -> list[str]:
    """Return the cells of the row that begins so."""
    (row,) = [line for line in text.splitlines() if line.startswith(f"| {begins}")]
    return row.removeprefix("| ").removesuffix(" |").split(" | ")


def test_what_it_says_of_a_study(study: Path, snapshot: SnapshotAssertion) -> None:
    assert checked(study) == snapshot


def test_what_it_says_of_one_experiment_without_gates(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    write_run(tmp_path, rows_of("e3", 12, 9))
    summarise(tmp_path)
    assert checked(tmp_path) == snapshot


def test_the_verdict_is_the_first_line_with_its_count_first(study: Path) -> None:
    assert checked(study).startswith("## ❌ FAIL: 1 of 4 gates failed, 1 undecided, 1 passed, 1 not judged\n\nRAG eval")


@pytest.mark.parametrize(
    ("states", "said"),
    [
        (["passed", "xfailed"], "✅ PASS: 1 of 2 gates passed, 0 failed, 1 failed as expected"),
        (["passed", "undecided"], "❔ UNDECIDED: 1 of 2 gates undecided, 0 failed, 1 passed"),
        (["passed", "stale", "xpassed"], "❌ FAIL: 2 of 3 gates failed, 1 passed"),
        (["not judged"], "❔ NO VERDICT: 1 of 1 gate not judged"),
        ([], "❔ NO VERDICT: no gate is set (`--rag-gate`, or `rag_gate` in the ini file)"),
    ],
)
def test_each_verdict(study: Path, states: list[str], said: str) -> None:
    summarise(study, *(gate(f"e3: recall@5 >= 0.{n}", state) for n, state in enumerate(states)))
    assert checked(study).splitlines()[0] == f"## {said}"


def test_a_folder_without_verdicts_says_so(study: Path) -> None:
    (study / "summary.json").unlink()
    first = checked(study).splitlines()[0]
    assert first == "## ❔ NO VERDICT: this folder has no summary.json of the run, which keeps the verdicts"


def test_a_failed_gate_has_its_figures_its_worst_trial_and_what_to_do(study: Path) -> None:
    text = checked(study)
    failed = cells(text, "e2: recall@5 ")
    assert failed[1:] == ["❌ failed", "0.500 \\[0.25, 0.75\\]", "", "`e2-q07`", "longer chunks"]
    undecided = cells(text, "e3: recall@5 ")
    assert undecided[1::2] == ["❔ undecided", "about 26 more would settle it", "if it does not hold: ask them"]
    assert not [line for line in text.splitlines() if line.startswith("| e9")], "it is folded"
    assert text.index("- Not judged, 1: e9: -m e9") > text.index("<details>")


def test_the_rest_of_many_gates_is_counted(study: Path) -> None:
    failed = [gate(f"e2: recall@{n} >= 0.9", "failed") for n in range(1, 41)]
    undecided = [gate(f"e3: recall@{n} >= 0.9", "undecided") for n in range(1, 4)]
    summarise(study, *undecided, *failed)
    text = checked(study)
    rows = [line for line in text.splitlines() if "| ❌ failed |" in line]
    assert 5 <= len(rows) <= 10
    assert "| ❔ undecided |" not in text
    assert f"… and {43 - len(rows)} gates more: {40 - len(rows)} failed, 3 undecided." in text


def test_what_would_be_too_many_lines_has_fewer_rows(tmp_path: Path) -> None:
    for name, more in (("now", 0), ("monday", 1), ("sunday", 2)):
        write_run(tmp_path / name, [row for n in range(12) for row in rows_of(f"x{n:02}", 15, n + more)])
    summarise(tmp_path / "now", *(gate(f"x01: recall@{n} >= 0.9", "failed") for n in range(1, 41)))
    write_causes(tmp_path / "now", [cause(n, experiment="x01") for n in range(5)])
    text = checked(*(tmp_path / name for name in ("now", "monday", "sunday")))
    assert 2 <= len([line for line in text.splitlines() if "| ❌ failed |" in line]) < 10


def test_a_pipe_in_a_name_ends_no_cell(study: Path) -> None:
    (run,) = read(study)
    room = Room(10, 60, 600)
    assert Links(run).to("e3-a|b", room, in_table=True) == "`e3-a\\|b`"
    assert Links(run).to("e3-a|b", room) == "`e3-a|b`"


def test_each_experiment_has_a_row_and_the_surely_best_a_star(study: Path) -> None:
    text = checked(study)
    head = cells(text, "experiment |")
    e2, e3 = (dict(zip(head, cells(text, f"{name} |"), strict=True)) for name in ("e2", "e3"))
    assert (e2["recall@5"], e2["answered"], e2["wrong, 95 %"]) == ("0.500", "12 of 12", "0.0 % \\[0.0, 26.5\\]")
    assert e3["recall@5"] == "**1.000** ★ \\[0.74, 1.00\\]"
    assert e2[CP] == "0.218"
    assert cells(text, "e1 |")[head.index("recall@5")] == "–"


def test_of_many_experiments_the_best_are_shown(tmp_path: Path) -> None:
    write_run(tmp_path, [row for n in range(24) for row in rows_of(f"x{n:02}", 12, n // 2 + 1)])
    text = checked(tmp_path)
    shown = [line.split(" | ")[0].removeprefix("| ") for line in text.splitlines() if line.startswith("| x")]
    assert 5 <= len(shown) <= 10
    assert shown[0].startswith("x22 = x23")
    assert f"… and {12 - len(shown)} experiments more." in text


def test_equal_experiments_share_a_row(tmp_path: Path) -> None:
    write_run(tmp_path, [*rows_of("e2", 8, 4), *rows_of("e3", 8, 4), *rows_of("e4", 8, 8)])
    assert cells(checked(tmp_path), "e2 = e3 |")[1] == "8 of 8"


def test_the_three_worst_trials_say_what_was_asked_expected_and_why(study: Path) -> None:
    write_causes(study, [cause(n, experiment="e3") for n in (7, 8, 6, 9)])
    text = checked(study)
    assert "\n**Worst trials of e3**\n- `e3-q07`: Question 7?<br>Expected: " in text
    assert "**Retrieval Miss: cut**. seen" in text
    assert re.findall(r"^- `(e3-q\d\d)`", text, re.MULTILINE) == ["e3-q07", "e3-q08", "e3-q06"]


def test_what_no_page_answers_is_expected_to_be_declined(tmp_path: Path) -> None:
    row = rows_of("e2", 1, 0)[0]
    write_run(tmp_path, [row], [Case(Query("q00", "Why?"), answerable=False)])
    write_causes(tmp_path, [cause(0)])
    assert "Expected: to decline, because no page answers it<br>" in checked(tmp_path).replace(".<br>", "<br>")


def test_a_worst_trial_is_a_link_where_the_address_is_known(study: Path) -> None:
    write_causes(study, [cause(7, experiment="e3")])
    text = checked(study, report="https://example.com/(a)/report.html")
    assert "[`e3-q07`](https://example.com/%28a%29/report.html#trials?open=e3-q07): Question 7?" in text
    assert cells(text, "e2: recall@5 ")[4].startswith("[`e2-q")


def test_the_bound_that_decides_stands_beside_the_value_and_not_a_second_time(study: Path) -> None:
    why = "0.590 to 0.900 for cases like these; about 26 more would settle it"
    at = {"confidence": 0.95, "bounds": [0.59, 0.9], "reason": why}
    summarise(
        study,
        gate("e3: recall@5 >= 0.7 @95%", "undecided", **at),
        gate("e3: mrr@10 >= 0.9", "failed", threshold=0.9, reason="2 cases like these were lost"),
    )
    text = checked(study)
    assert cells(text, "e3: recall@5 ")[2:4] == ["0.750, between 0.590 and 0.900", "about 26 more would settle it"]
    assert "2 cases like these were lost" in text


def test_what_the_golden_suite_found_last_is_no_link(tmp_path: Path) -> None:
    ranked = {"q1": ["a.md"], "q2": ["b.md", "a.md"], "q3": ["b.md"]}
    cases = [Case(Query(each, f"{each}?"), qrels={"a.md": 1}) for each in ranked]
    write_run(tmp_path, [golden_row(each, found) for each, found in ranked.items()], cases)
    text = checked(tmp_path, report="https://example.com/report.html")
    assert [line for line in text.splitlines() if line.startswith("- `")] == [
        "- `golden-q3`: q3?<br>Expected: a.md<br>**not among the first 10**",
        "- `golden-q2`: q2?<br>Expected: a.md<br>**first found at rank 2**",
    ]


@pytest.mark.parametrize("wrong", ["javascript:alert(1)", "//evil.example", "a b.html", "https://x.y/#z", "https://"])
def test_what_is_no_address_is_refused(study: Path, tmp_path: Path, wrong: str, capsys: Any) -> None:
    assert main(["report", str(study), "-o", str(tmp_path / "x.md"), "--link", wrong]) == CANNOT_RUN
    assert f"--link {wrong}: that is not an address of a page." in capsys.readouterr().err
    assert not (tmp_path / "x.md").exists()


@pytest.mark.parametrize("right", ["report.html", "../report.html", "https://example.com/r/1/artifacts/2?a=b"])
def test_an_address_is_taken_from_the_command_line(study: Path, tmp_path: Path, right: str) -> None:
    write_causes(study, [cause(7, experiment="e3")])
    assert main(["report", str(study), "-o", str(tmp_path / "x.md"), "--link", right]) == 0
    assert f"[`e3-q07`]({right}#trials?open=e3-q07)" in (tmp_path / "x.md").read_text()


# Changes against a run before, and against a saved run.


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    for name, found in (("new", 5), ("old", 15)):
        write_run(tmp_path / name, rows_of("e3", 20, found))
        amend(tmp_path / name, digests={"queries": "same", "documents": "same"})
    amend(tmp_path / "old", date="2025-12-31T00:00:00+00:00")
    return tmp_path / "new", tmp_path / "old"


def test_what_got_worse_since_the_run_before(two: tuple[Path, Path]) -> None:
    text = checked(*two)
    assert "\n**Changes since old**, of 2025-12-31" in text
    assert "\n- ❌ Now is worse than before: recall@5 of e3 fell from 0.750 to 0.250" in text
    row = cells(text, "e3: recall@5 |")
    assert (row[1], row[2], row[3][:8], row[5]) == ("0.750", "0.250", "❌ -0.500", "20")


def test_the_saved_run_that_it_was_compared_with_is_before(two: tuple[Path, Path]) -> None:
    now, before = two
    (run,) = read(before)
    (now / "baselines").mkdir()
    save(now / "baselines" / "main.json", saved_run(run.manifest, run.tables))
    amend(now, settings={"compare": "main", "rootdir": str(now)})
    assert "\n**Changes since main**, of 2025-12-31" in checked(now)
    amend(now, settings={"compare": "gone"})
    assert "Changes since" not in checked(now)


def test_a_run_that_saved_itself_is_not_compared_with_itself(two: tuple[Path, Path]) -> None:
    now = two[0]
    (run,) = read(now)
    (now / "baselines").mkdir()
    save(now / "baselines" / "main.json", saved_run(run.manifest, run.tables))
    amend(now, settings={"compare": "main", "rootdir": str(now)})
    assert "Changes since" not in checked(now)


def test_runs_about_other_data_are_not_compared(two: tuple[Path, Path]) -> None:
    amend(two[1], digests={"queries": "others"})
    assert "\n- ❔ Not compared. This run and the one of " in checked(*two)


# Bad input.


def write_failed(output: Path, count: int, name: str, question: str) -> None:
    """Write experiments, a failed gate for each, with names and texts as given."""
    names = [f"{name}{n:02}" for n in range(count)]
    rows = [
        row.model_copy(update={"query": question, "llm_answer": question, "ground_truth": question})
        for place, each in enumerate(names)
        for row in rows_of(each, 6, place % 5)
    ]
    write_run(output, rows)
    failed = [gate(f"{each}: recall@5 >= 0.9", "failed", reason=question, otherwise=question) for each in names]
    summarise(output, *failed, *({**each, "gate": each["gate"] + "1", "state": "not judged"} for each in failed))
    about = {"query": question, "detail": question, "evidence": question, "remedy": question}
    write_causes(output, [cause(n, experiment=each, **about) for each in names for n in range(3)])
    amend(output, settings={"attribute": True})


@pytest.mark.parametrize(
    ("count", "name", "question"),
    [
        (12, "x", "Why?"),
        pytest.param(17, "n" * 118, "Why? " * 200, marks=pytest.mark.long),
        # Forty lines too many would be seen whatever else there is no room for.
        (40, "`|_*" * 29, "`|<b>@#\\" * 100),
        pytest.param(12, "#@-" * 39, "#@" * 400, marks=pytest.mark.long),
        pytest.param(12, "تجربة " * 19, RIGHT_TO_LEFT, marks=pytest.mark.long),
        (12, "\u202e\u200b" * 20, "\u202e\x1b[2J" * 100),
    ],
    ids=["short", "long", "markup", "acting", "right to left", "hidden"],
)
def test_many_experiments_with_as_many_failed_gates_fit(tmp_path: Path, count: int, name: str, question: str) -> None:
    write_failed(tmp_path / "now", count, name, question)
    write_failed(tmp_path / "before", count, name, question)
    amend(tmp_path / "before", date="2025-12-31T00:00:00+00:00", settings={"chat_model": question})
    text = checked(tmp_path / "now", tmp_path / "before", report="https://example.com/report.html")
    assert text.startswith(f"## ❌ FAIL: {count} of {2 * count} gates failed, {count} not judged\n")
    assert "| ❌ failed |" in text
    assert "**Worst trials of " in text


def test_every_foreign_text_stays_text(tmp_path: Path) -> None:
    """Three texts a comment: it shows the worst three trials."""
    texts = WHOLE[::6]
    for n in range(0, len(texts), 3):
        output, three = tmp_path / str(n), texts[n : n + 3]
        rows = [
            row.model_copy(update={"query": text, "llm_answer": text})
            for row, text in zip(rows_of("e2", len(three), 1), three, strict=True)
        ]
        write_run(output, rows)
        summarise(output, *(gate(f"e2: {text}", "failed", reason=text, otherwise=text) for text in three))
        about = [dict.fromkeys(("query", "cause", "detail", "evidence", "remedy"), text) for text in three]
        write_causes(output, [cause(place, **fields) for place, fields in enumerate(about)])
        text = checked(output)
        assert (text.count("| ❌ failed |"), text.count("\n- `e2-q")) == (len(three), len(three))


def nothing(output: Path) -> None:
    write_run(output, rows_of("e3", 3, 3), selected={"e3": ["none"]})


def all_failed(output: Path) -> None:
    write_run(output, [failed_row(experiment="e3", query_id=f"q{n}") for n in range(3)])


def lost(output: Path) -> None:
    write_run(output, [], [Case(Query("q1", "?"))], selected={"e3": ["q1"]})


def no_gold(output: Path) -> None:
    write_run(output, rows_of("e3", 3, 3, ground_truth="", context_reference=[]))


def golden(output: Path) -> None:
    write_run(output, [golden_row("q1", ["a"])])


def no_retrieval(output: Path) -> None:
    write_run(output, rows_of("e1", 3, 0, **BARE))


def one_score(output: Path) -> None:
    rows = rows_of("e3", 2, 2)
    write_run(output, rows, scores=scored(rows, {CP: [None, None]}))


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (nothing, "RAG evaluation of nothing: no trial was selected."),
        (all_failed, "RAG evaluation of e3: **0 of 3 answered**; ❌ 3 errors"),
        (lost, "**0 of 1 answered**; ❌ 1 without a result"),
        (no_gold, "**3 of 3 answered**"),
        (golden, "RAG evaluation of golden: **0 of 1 question found an expected document**"),
        (no_retrieval, "| e1 | 3 of 3 |"),
        (one_score, "| e3 | 2 of 2 |"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_run_that_lacks_something_has_a_comment(tmp_path: Path, write: Any, said: str) -> None:
    write(tmp_path)
    assert said in checked(tmp_path)


def test_what_is_of_an_earlier_run_is_said_before_the_figures(study: Path) -> None:
    (run,) = read(study)
    records = {name: record.model_dump(mode="json") for name, record in run.suites.items()}
    amend(study, suites={**records, "e1": {**records["e1"], "made": "2025-01-01T00:00:00+00:00"}})
    text = checked(study)
    assert text.index("- ❔ e1 is of an earlier run, of 1 Jan 2025") < text.index("| experiment |")


def test_verdicts_on_other_rows_are_said(study: Path) -> None:
    summarise(study, gate("e3: recall@5 >= 0.7"), e3={"lost": 2})
    said = "- ❔ The gates were judged on other rows of e3: 2 trials had no row then, 0 have none now."
    assert said in checked(study)


def test_the_command_is_whole_or_left_out(tmp_path: Path, study: Path) -> None:
    assert "\npytest -m 'e1 or e2 or e3'" in checked(study)
    write_run(tmp_path / "many", [row for n in range(90) for row in rows_of(f"experiment{n}", 1, 1)])
    assert "\n# a long command: see the report\n" in checked(tmp_path / "many")


def test_runs_are_read_once_each(study: Path) -> None:
    runs: list[Run] = read(study)
    assert comment_of(runs) == comment_of(runs), "no file is left closed"


# The comment on a pull request names conversations that got worse; their names make it neither long nor active.

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


# ``rag-harness report -o badge.json``: the verdict of a run as shields.io reads it.

KNOWN = {"schemaVersion": int, "label": str, "message": str, "color": str}
"""Properties by the schema of endpoints; all that are required are among them."""


def badge(output: Path, file: str = "badge.json") -> dict[str, Any]:
    place = output.parent / file
    assert main(["report", str(output), "-o", str(place)]) == 0
    found: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
    assert {name: type(value) for name, value in found.items()} == KNOWN
    assert (found["schemaVersion"], found["label"]) == (1, "RAG gates")
    assert found["message"]  # may not be empty
    return found


@pytest.mark.parametrize(
    ("states", "message", "color"),
    [
        (["passed", "passed"], "2 of 2 gates passed, 0 failed", "brightgreen"),
        (["passed", "failed", "undecided"], "1 of 3 gates failed, 1 undecided, 1 passed", "red"),
        (["passed", "undecided"], "1 of 2 gates undecided, 0 failed, 1 passed", "yellow"),
        (["not judged"], "no verdict", "lightgrey"),
        ([], "no verdict", "lightgrey"),
    ],
)
def test_a_badge_counts_verdicts(tmp_path: Path, states: list[str], message: str, color: str) -> None:
    output = write_study(tmp_path / "output")
    summarise(output, *(gate(f"e3: recall@5 >= 0.{n}", each) for n, each in enumerate(states)))
    found = badge(output)
    assert (found["message"], found["color"]) == (message, color)


def test_a_simulated_model_is_called_so(tmp_path: Path) -> None:
    output = tmp_path / "output"
    write_run(output, rows_of("e3", 12, 9, model="simulated/gpt"))
    summarise(output, gate("e3: recall@5 >= 0.7"))
    assert badge(output)["message"] == "1 of 1 gate passed, 0 failed (SIMULATED)"


def test_a_badge_is_told_by_its_name_and_another_json_file_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert format_of(Path("out/main-badge.json")) == "badge"
    output = write_study(tmp_path / "output")
    assert main(["report", str(output), "-o", str(tmp_path / "report.json")]) == CANNOT_RUN
    assert ".parquet, badge.json" in capsys.readouterr().err
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(output), "--format=badge"]) == 0
    assert json.loads(Path("badge.json").read_text(encoding="utf-8"))["message"] == "no verdict"
