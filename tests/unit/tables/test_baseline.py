"""Baselines: a file that a person can review, and a comparison that refuses what cannot be compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import DataError
from rag_harness.core.settings import Settings, masked
from rag_harness.records.manifest import RunManifest
from rag_harness.runs.gates import judge, parse_gate
from rag_harness.stats import difference_interval, holm, permutation_test
from rag_harness.tables.comparison import compare, on_common_data
from rag_harness.tables.comparison_lines import comparison_lines
from rag_harness.tables.reader import SavedCase, SavedRun, SavedSuite, load_saved_run, save, saved_run, saved_suite
from tests.unit.rows import make_row
from tests.unit.suite_tables import case, table_of

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
    with pytest.raises(DataError, match=r"main\.json is no saved run: .*--rag-save main"):
        load_saved_run(file)


def test_a_value_that_is_no_number_and_another_schema_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "main.json"
    save(file, run())
    for old, new in (("0.75", "NaN"), ('"schema_version": 1', '"schema_version": 2')):
        changed = tmp_path / "changed.json"
        changed.write_text(file.read_text().replace(old, new))
        with pytest.raises(DataError, match=r"changed\.json is no saved run"):
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
