"""Baselines: a file that a person can review, and a comparison that refuses what cannot be compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import scipy.stats

from rag_harness.__main__ import CANNOT_RUN, main
from rag_harness.core.errors import DataError
from rag_harness.core.settings import Settings, masked
from rag_harness.records.manifest import RunManifest
from rag_harness.records.scores import Author, ScoreLine, row_digest
from rag_harness.runs.gates import judge, parse_gate
from rag_harness.stats import difference_interval, holm, permutation_test
from rag_harness.tables.comparison import compare, on_common_data
from rag_harness.tables.comparison_lines import compared_lines, comparison_lines
from rag_harness.tables.reader import (
    _MODELS,
    _OTHER,
    SavedCase,
    SavedRun,
    SavedSuite,
    load_saved_run,
    read_run,
    save,
    saved_run,
    saved_suite,
)
from tests.unit.rows import make_row
from tests.unit.suite_tables import case, table_of, write_run

DATA = {"queries": "q-digest", "kb": "kb-digest"}
BEFORE = {"q1": 1.0, "q2": 0.0, "q3": 0.0, "q4": 1.0, "q5": 0.5}
NOW = {"q1": 1.0, "q2": 1.0, "q3": 1.0, "q4": 0.0, "q5": 0.75}


def suite(values: dict[str, float] = NOW, others: dict[str, dict[str, float]] | None = None) -> SavedSuite:
    found = {"recall@5": values, **(others or {})}
    return SavedSuite(
        cases={
            case: SavedCase(slices={"query_type": "direct"}, values={name: each[case] for name, each in found.items()})
            for case in values
        }
    )


def run(e3: SavedSuite | None = None, **changes: Any) -> SavedRun:
    plain = {
        "date": "2026-11-21T10:00:00Z",
        "commit": "0123456789abcdef",
        "packages": {"numpy": "2.4.6"},
        "fingerprint": {"data": DATA, "models": {"chat": "small", "embedder": ("mini", 1)}, "settings": {"top_k": 5}},
        "suites": {"e3": e3 or suite()},
    }
    made = SavedRun(**(plain | changes))
    return made.model_copy(update={"gated": {name: each.measures() for name, each in made.suites.items()}})


def test_a_run_comes_back_as_it_was(tmp_path: Path) -> None:
    saved = run(SavedSuite(cases={"q1": SavedCase(values={"mrr@5": 1 / 3}), "é": SavedCase(state="lost")}))
    save(tmp_path / "deep" / "main.json", saved)
    assert load_saved_run(tmp_path / "deep" / "main.json") == saved
    assert compare(load_saved_run(tmp_path / "deep" / "main.json"), saved).differing == ()


def test_the_file_has_sorted_keys_and_a_line_for_each_case(tmp_path: Path) -> None:
    file = tmp_path / "main.json"
    save(file, run(suite({"q2": 0.5, "q1": 1.0})))
    lines = file.read_text().splitlines()
    assert list(json.loads(file.read_text())) == sorted(json.loads(file.read_text()))
    cases = [line for line in lines if '"slices"' in line]
    assert cases == [
        '   "q1": {"slices": {"query_type": "direct"}, "state": "ok", "values": {"recall@5": 1.0}},',
        '   "q2": {"slices": {"query_type": "direct"}, "state": "ok", "values": {"recall@5": 0.5}}',
    ]
    assert file.read_bytes().endswith(b"}\n")


def test_a_table_is_saved_with_what_was_left_out_and_lost() -> None:
    slices = {"query_type": "direct"}
    cases = [case("q1", ["a"]), case("q2", ["a"]), case("q3", ["a"], query_type="other")]
    rows = [make_row(query_id="q1", ranking=["b", "a"])]
    table = table_of(rows, cases, measures=["mrr@5"], selected={"e3": ["q1", "q2"]})
    table.columns = {name: column for name, column in table.columns.items() if name in ("mrr@5", "token_f1")}
    saved = saved_suite(table)
    assert saved.cases == {
        "q1": SavedCase(slices=slices, values={"mrr@5": 0.5}),
        "q2": SavedCase(state="lost", slices=slices, values={"mrr@5": 0.0}),
        "q3": SavedCase(state="left out", slices={"query_type": "other"}),
    }
    assert (saved.total_of({}), saved.selected_of({}), saved.lost_of({}), saved.depth) == (3, 2, 1, 2)
    assert (saved.total_of(slices), saved.values("mrr@5", slices)) == (2, {"q1": 0.5, "q2": 0.0})
    assert saved.absent("token_f1", {}) == {"no saved value": 2}


def test_a_run_is_saved_with_what_it_was_made_of() -> None:
    digests = {"queries": "q", "golden": "g", "documents": "d"}
    manifest = RunManifest(date="2026-01-01", commit="abc", settings=masked(Settings()), digests=digests, suites={})
    saved = saved_run(manifest, {"e3": table_of([make_row()])})
    assert (saved.date, saved.commit, saved.fingerprint["data"]) == ("2026-01-01", "abc", digests)
    assert (saved.fingerprint["models"]["retriever"], saved.fingerprint["settings"]["k"]) == ("dense", 10)
    assert set(saved.suites) == {"e3"}
    reduced = [run.fingerprint["data"] for run in on_common_data(saved, run())]
    assert reduced == [{"queries": "q"}, {"queries": "q-digest"}]  # that only one looked at documents is no difference
    both = [each.fingerprint["data"] for each in on_common_data(saved, saved)]
    assert both == [{"queries": "q", "documents": "d"}] * 2


def test_how_deep_a_run_looked_comes_back_and_need_not_be_there(tmp_path: Path) -> None:
    saved = run(SavedSuite(cases=suite().cases, depth=5))
    save(tmp_path / "main.json", saved)
    assert load_saved_run(tmp_path / "main.json").suites["e3"].depth == 5
    content = json.loads((tmp_path / "main.json").read_text())
    del content["depths"]
    (tmp_path / "main.json").write_text(json.dumps(content))
    assert load_saved_run(tmp_path / "main.json").suites["e3"].depth is None


def test_a_gate_reads_a_saved_suite() -> None:
    gate = parse_gate("e3: recall@5 >= baseline", 5)
    assert judge(gate, {"e3": suite()}, baseline={"e3": suite(BEFORE)}).state == "passed"
    assert judge(gate, {"e3": suite(BEFORE)}, baseline={"e3": suite()}).state == "failed"
    part = SavedSuite(cases={**suite().cases, "q9": SavedCase(state="left out")})
    assert judge(gate, {"e3": suite()}, baseline={"e3": part}).reason == (
        "5 of 6 cases of baseline selected; --rag-gate-partial judges these"
    )


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"suites": []}',
        '{"suites": {}}',
        '{"suites": {"e3": 1}, "date": "", "fingerprint": {}}',
        "\xff",
    ],
)
def test_a_damaged_file_is_named_with_a_remedy(content: str, tmp_path: Path) -> None:
    file = tmp_path / "main.json"
    file.write_bytes(content.encode("latin-1"))
    with pytest.raises(DataError, match=r"main\.json is not a saved run: .*--rag-save main"):
        load_saved_run(file)


def test_a_value_that_is_no_number_and_another_schema_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "main.json"
    save(file, run())
    for old, new in (("0.75", "NaN"), ('"schema_version": 1', '"schema_version": 2')):
        changed = tmp_path / "changed.json"
        changed.write_text(file.read_text().replace(old, new))
        with pytest.raises(DataError, match=r"changed\.json is not a saved run"):
            load_saved_run(changed)


def test_a_missing_baseline_names_those_there_are(tmp_path: Path) -> None:
    save(tmp_path / "main.json", run())
    with pytest.raises(DataError, match=r"'mian'. Did you mean 'main'\?.*--rag-save"):
        load_saved_run(tmp_path / "mian.json")


def test_other_data_is_refused_with_the_difference_shown() -> None:
    other = run(fingerprint={"data": {"queries": "other", "kb": "kb-digest", "gold": "g"}})
    with pytest.raises(DataError) as error:
        compare(other, run())
    assert "data.queries: q-digest -> other" in str(error.value)
    assert "data.gold: nothing -> g" in str(error.value)
    assert "kb-digest" not in str(error.value)


def test_other_models_settings_packages_and_commit_are_listed() -> None:
    parts = {"data": DATA, "models": {"chat": "large", "embedder": ["mini", 1]}, "settings": {"top_k": 5, "seed": 1}}
    now = run(fingerprint=parts, packages={"numpy": "2.5"}, commit="fedcba")
    assert compare(now, run()).differing == (
        "models.chat: small -> large",
        "settings.seed: nothing -> 1",
        "packages.numpy: 2.4.6 -> 2.5",
        "commit: 0123456789ab -> fedcba",
    )


def test_each_measure_is_compared_case_by_case() -> None:
    worse = dict.fromkeys(NOW, 0.0) | {"q1": 1.0}
    now = run(suite(NOW, {"error_rate": worse, "mrr@5": NOW}))
    before = run(suite(BEFORE, {"error_rate": dict.fromkeys(NOW, 0.0), "mrr@5": NOW}))
    errors, mrr, recall = compare(now, before).changes
    assert (recall.measure, recall.n, recall.before, recall.now) == ("recall@5", 5, 0.5, 0.75)
    assert (recall.difference, recall.gained, recall.lost) == (0.25, ("q2", "q3", "q5"), ("q4",))
    a, b = list(NOW.values()), list(BEFORE.values())
    gaps = [now - before for now, before in zip(a, b, strict=True)]
    assert recall.alone == difference_interval(gaps, (-1, 1))
    assert recall.interval == difference_interval(gaps, (-1, 1), 1 - 0.05 / 2), "as one of two that differ"
    assert [errors.p, recall.p] == holm([permutation_test(list(worse.values()), [0.0] * 5), permutation_test(a, b)])
    assert (mrr.p, mrr.is_same) == (None, True), "where no case differs there is no test, and none to correct others by"
    assert (errors.gained, errors.lost) == ((), ("q1",))  # more errors are no gain
    assert (mrr.difference, mrr.gained, mrr.lost) == (0.0, (), ())


def test_only_cases_and_measures_that_both_have_are_compared_and_the_rest_is_said() -> None:
    part = suite({"q1": 1.0, "q2": 1.0})
    cases = {**part.cases, "q3": SavedCase(state="left out"), "q4": SavedCase(state="lost", values={"recall@5": 0.0})}
    found = compare(run(SavedSuite(cases=cases)), run(suite(BEFORE, {"mrr@5": BEFORE})))
    assert [(each.measure, each.n) for each in found.changes] == [("recall@5", 3)]
    assert found.notes == (
        "e3: only before was measured on mrr@5",
        "e3: now looked at 3 of 4 cases",
        "e3: now lost 1 of 4 cases to a crash; they count as the worst",
    )
    assert found.warnings == (
        "The cases differ: e3 was asked 5 before and 3 now. Only the 3 that were asked both times are compared.",
    )
    others = run(suites={"e4": suite()})
    assert compare(others, run()).notes == ("only before: e3", "only now: e4")
    assert compare(others, run()).changes == ()


def test_the_lines_can_be_read() -> None:
    now = run(
        fingerprint={"data": DATA, "models": {"chat": "large", "embedder": ["mini", 1]}, "settings": {"top_k": 5}}
    )
    found = comparison_lines(compare(now, run(suite(BEFORE))))
    assert found == [
        "Undecided: 5 cases are too few for a verdict: p is at least 0.062, whatever they show. From 6 cases",
        "  on p can be 0.05 or less. Seen, but not sure: recall@5 of e3 rose from 0.500 to 0.750 (+0.250,",
        "  95 % interval -0.566 to +0.828, p 0.625) over the same 5 cases.",
        "recall@5 of e3: 3 better, 1 worse: q4 (worse), q2, q3, q5.",
        "Different between them: chat (before small, now large).",
        "  before: 21 Nov 2026 10:00 UTC at commit 0123456789ab",
        "  now:    21 Nov 2026 10:00 UTC at commit 0123456789ab",
        "e3          before    now  difference          interval      p  n  gained  lost",
        "  recall@5   0.500  0.750      +0.250  [-0.566, +0.828]  0.625  5       3     1",
        "    recall@5 gained: q2, q3, q5",
        "    recall@5 lost: q4",
    ]


def test_no_line_is_wider_than_100_columns() -> None:
    many = {f"q_a_rather_long_name_{n:03}": 1.0 for n in range(80)}
    models = [{"chat_with_a_long_key" * 4: letter * 300} for letter in "xy"]
    now, before = (run(suite(many), fingerprint={"data": DATA, "models": each}) for each in models)
    assert max(map(len, comparison_lines(compare(now, before)))) <= 100
    short = comparison_lines(compare(run(suite(many)), run(suite(dict.fromkeys(many, 0.0)))))
    assert short[-1] == "    recall@5 gained: q_a_rather_long_name_000, q_a_rather_long_name_001 and 78 more"


# ``rag-harness compare A B``: output folders and baselines, and what is refused.

WHO = Author("embedded", "embedded/alignment", "1")


def compared_run(values: dict[str, list[float]], **changes: Any) -> SavedRun:
    """Return a run of e3 with these values by measure."""
    n = len(next(iter(values.values())))
    cases = {
        f"q{place}": SavedCase(
            values={name: found[place] for name, found in values.items()}, slices={"kind": "ab"[place % 2]}
        )
        for place in range(n)
    }
    fingerprint = {"data": {"queries": "1", "documents": "1"}, "models": {}, "settings": {}}
    made: dict[str, Any] = {
        "date": "2026-01-01",
        "fingerprint": fingerprint,
        "suites": {"e3": SavedSuite(cases=cases)},
        "gated": {"e3": list(values)},
    }
    return SavedRun(**(made | changes))


COMPARED_BEFORE, COMPARED_NOW = [0.1, 0.4, 0.5, 0.9, 0.3], [0.3, 0.5, 0.5, 1.0, 0.7]


def test_the_second_minus_the_first_with_both_tests() -> None:
    lines = compared_lines(
        compared_run({"token_f1": COMPARED_BEFORE, "recall@5": [1.0] * 5}),
        compared_run({"token_f1": COMPARED_NOW, "recall@5": [0.0] * 5}),
    )
    (row,) = [line for line in lines if line.startswith("  token_f1")]
    p = scipy.stats.ttest_rel(COMPARED_NOW, COMPARED_BEFORE).pvalue
    assert row.split()[:5] == ["token_f1", "0.440", "0.600", "5", "+0.160"]
    assert f"{p:.3f}" in row
    assert "e3: p and interval by Holm for the 2 tested measures that differ" in lines
    assert "  recall@5: all differences are equal, so no t-test" in lines
    (fell,) = [line for line in lines if line.startswith("  recall@5  ")]
    assert fell.split()[-2:] == ["-", "0.125"], "sign flips need no spread: 2 of 32, times 2 measures"
    assert max(map(len, lines)) <= 100


def test_only_what_is_asked_for_and_what_there_is_instead() -> None:
    one, other = (
        compared_run({"token_f1": COMPARED_BEFORE, "hri": COMPARED_BEFORE}),
        compared_run({"token_f1": COMPARED_NOW, "hri": COMPARED_NOW}),
    )
    lines = compared_lines(one, other, ["hri"])
    assert any(line.startswith("  HRI ↓") for line in lines)
    assert not any("token_f1" in line for line in lines)
    assert "nothing to compare in bleu; both runs have hri, token_f1" in compared_lines(one, other, ["bleu"])
    assert compared_lines(one, compared_run({"recall@5": COMPARED_NOW}), ["hri"]) == ["nothing to compare"]


def test_runs_of_other_data_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = {"data": {"queries": "2", "documents": "1"}, "models": {}, "settings": {}}
    save(tmp_path / "a.json", compared_run({"hri": COMPARED_BEFORE}))
    save(tmp_path / "b.json", compared_run({"hri": COMPARED_NOW}, fingerprint=other))
    assert main(["compare", str(tmp_path / "a.json"), str(tmp_path / "b.json")]) == CANNOT_RUN
    said = capsys.readouterr().err
    assert "not about the same data" in said
    assert "Questions with the same id in both runs: 5 of 5 in e3. Which of them were edited is not kept." in said
    assert "pytest --rag-queries=FILE --rag-output=DIR" in said


def test_how_many_questions_two_runs_share_is_said() -> None:
    first, second = compared_run({"hri": COMPARED_BEFORE}), compared_run({"hri": COMPARED_NOW})
    more = {**second.suites["e3"].cases, "one more": SavedCase(values={"hri": 0.5})}
    del more["q0"]
    other = {"data": {"queries": "2", "documents": "1"}, "models": {}, "settings": {}}
    grown = second.model_copy(update={"fingerprint": other, "suites": {"e3": SavedSuite(cases=more)}})
    with pytest.raises(DataError, match="same id in both runs: 4 of 6 in e3"):
        compared_lines(first, grown)
    moved = second.model_copy(update={"fingerprint": {**other, "data": {"queries": "1", "documents": "2"}}})
    with pytest.raises(DataError) as refused:
        compared_lines(first, moved)
    assert "Questions with" not in str(refused.value), "the documents differ: no question is the same task"


def test_an_output_folder_and_a_baseline_by_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [make_row(query_id=f"q{n}") for n in range(3)]
    scores = [
        ScoreLine("faithfulness", 1, "e3", row.query_id, row_digest(row), "", WHO, 0.2 + 0.3 * n)
        for n, row in enumerate(rows)
    ]
    output, baselines = tmp_path / "out", tmp_path / "kept"
    output.mkdir()
    write_run(output, rows, scores=scores)
    found = _read(output)
    assert found.suites["e3"].values("faithfulness", {}) == {"q0": 0.2, "q1": 0.5, "q2": pytest.approx(0.8)}
    save(baselines / "main.json", found)
    assert main(["compare", "main", str(output), "--baselines", str(baselines), "--measure", "faithfulness"]) == 0
    assert capsys.readouterr().out == "The two runs are the same: both are of 1 Jan 2026 00:00 UTC.\n"


def _read(output: Path) -> SavedRun:
    """Read a run; the tests' manifest has fewer settings than one of a real run, which saving names."""
    file = output / "run.json"
    content = json.loads(file.read_text())
    content["settings"] |= {name: 1 for name in (*_MODELS, *_OTHER) if name not in content["settings"]}
    file.write_text(json.dumps(content))
    return read_run(str(output))


def test_what_is_no_run_says_where_was_looked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "gone", "gone"]) == CANNOT_RUN
    assert "'gone' is not a run" in capsys.readouterr().err
    assert main(["compare", str(tmp_path), str(tmp_path)]) == CANNOT_RUN
    assert "does not describe a run" in capsys.readouterr().err


def test_two_runs_of_one_second_that_differ_in_their_judge_are_two() -> None:
    one, other = ({"judges": {"e3": [("embedded", "embedded/alignment", revision)]}} for revision in "12")
    before, now = (
        compared_run({"faithfulness": COMPARED_BEFORE}, **one),
        compared_run({"faithfulness": COMPARED_BEFORE}, **other),
    )
    assert compared_lines(before, before)[0].startswith("The two runs are the same")
    assert not compared_lines(before, now)[0].startswith("The two runs are the same")
