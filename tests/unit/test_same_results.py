"""The script that compares what two checkouts give: what it takes out, and what it must notice."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

# Benchmarks are scripts and no package: a type checker would meet the file under two names.
script: Any = import_module("benchmarks.same_results")
ROW: dict[str, Any] = {
    "query_id": "q1",
    "llm_answer": "Within 45 days.",
    "total_time_ms": 12.5,
    "stages": [{"name": "retrieve", "ms": 3.25, "calls": [{"role": "chat", "ms": 9.0, "prompt": "aa11"}]}],
    "error": {"kind": "rag_harness.core.errors.CallError", "where": "/opt/x/rag_harness/runs/trial.py:12"},
    "fingerprint": "0123456789abcdef",
    "finished_at": "2026-11-29T19:11:24.123456+00:00",
    "score": 0.8333333333333334,
}
OTHERWISE: dict[str, Any] = {
    **ROW,
    "total_time_ms": 80.1,
    "stages": [{"name": "retrieve", "ms": 1.0, "calls": [{"role": "chat", "ms": 0.5, "prompt": "aa11"}]}],
    "error": {"kind": "rag_harness.faults.CallError", "where": "/srv/rag_harness/trials.py:340"},
    "fingerprint": "fedcba9876543210",
    "finished_at": "2027-01-02T03:04:05+00:00",
}
TERMINAL = """rag: 4 trials, profile mock, mode replay, answers by my_service
p50/p95/p99 ms     total  retrieve
shop            11/14/14    0.4/2/2
4 trials in 0.02 s, 171 a second
reranking 2.1 s, model calls (12 ms each, 16 in flight) 1.0 s, harness 0.2 s
report.html: 797 kB
answers: 4 replayed, recorded 29 Nov 2026 19:19 UTC (less than a minute old); 0 asked now
passed      shop: recall@5 >= 0.8        0.833 [0.02, 1.00]  n=3 on 2 pages
passed      shop: p95(total_ms) <= 5000  41.5 [20, 44]  n=3
- Run of 2026-11-29T19:\u206020:\u206005+00:\u206000 at commit 744b9b\u20604ce0dc; profile mock
test_shop.py:12: AssertionError
4 passed in 4.18s
"""
LATER = """rag: 4 trials, profile mock, mode replay, answers by my_service
p50/p95/p99 ms        total  retrieve
shop            1,100/14/14    0.4/2/2
4 trials in 110 s, 9.5 a second
report.html: 1.2 MB
answers: 4 replayed, recorded 2 Jan 2027 03:04 UTC (2 days old); 0 asked now
passed      shop: recall@5 >= 0.8        0.833 [0.02, 1.00]  n=3 on 2 pages
passed      shop: p95(total_ms) <= 5000  7.1 [6, 9]  n=3
- Run of 2027-01-02T03:\u206004:\u206005+00:\u206000 at commit 0c9e11\u2060aa22bb; profile mock
test_shop.py:99: AssertionError
4 passed in 312.00s (0:05:12)
"""


def normal() -> Any:
    return script.Normal({"/tmp/same_1": "<folder>"}, {"aa11": "named"})


def test_what_varies_is_taken_out_of_a_row() -> None:
    assert normal().lines(ROW) == normal().lines(OTHERWISE)


@pytest.mark.parametrize(
    "changed",
    [
        {"score": 0.833},
        {"llm_answer": "Within 45 days"},
        {"status": "ok"},
        {"stages": [{**ROW["stages"][0], "name": "rerank"}]},
        {"stages": [{"name": "retrieve", "ms": 3.25, "calls": [{"role": "chat", "ms": None, "prompt": "aa11"}]}]},
        {"stages": [{"name": "retrieve", "ms": 3.25, "calls": [{"role": "chat", "ms": 9.0, "prompt": "bb22"}]}]},
        {"total_time_ms": None},
        {"error": {**ROW["error"], "where": ""}},
    ],
)
def test_a_change_of_a_row_is_noticed(changed: dict[str, Any]) -> None:
    assert normal().lines(ROW | changed) != normal().lines(ROW)


def test_stages_that_run_at_once_may_end_in_any_order() -> None:
    orders = ("a again contradict b", "a contradict again b")
    one, other = ({"stages": [{"name": name, "ms": 1.0} for name in order.split()]} for order in orders)
    assert normal().lines(one) == normal().lines(other)
    swapped = {"stages": [*one["stages"][:1], one["stages"][3], *one["stages"][1:3]]}
    assert normal().lines(swapped) != normal().lines(one)


def test_a_gate_over_times_keeps_its_verdict_alone() -> None:
    gate = {"gate": "t1: p95(total_ms) <= 5000", "state": "passed", "value": 10.7, "interval": [8.5, 29.1], "n": 130}
    slower = gate | {"value": 99.9, "interval": None}
    assert normal().lines(gate) == normal().lines(slower)
    assert normal().lines(gate) != normal().lines(gate | {"state": "failed"})
    recall = gate | {"gate": "t1: recall@5 >= 0.8"}
    assert normal().lines(recall) != normal().lines(recall | {"value": 10.6})


def test_what_varies_is_taken_out_of_the_terminal() -> None:
    assert normal().printed(TERMINAL) == normal().printed(LATER)


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("0.833", "0.834"),
        ("[0.02, 1.00]", "[0.03, 1.00]"),
        ("n=3 on", "n=4 on"),
        ("4 trials", "5 trials"),
        ("4 passed", "3 passed"),
        ("passed      shop: p95", "failed      shop: p95"),
        ("<= 5000", "<= 500"),
        ("0 asked now", "1 asked now"),
        ("profile mock, mode", "profile mock; mode"),
        ("AssertionError", "ValueError"),
    ],
)
def test_a_changed_word_or_number_of_the_terminal_is_noticed(word: str, other: str) -> None:
    assert word in TERMINAL
    assert normal().printed(TERMINAL.replace(word, other, 1)) != normal().printed(TERMINAL)


def page(ms: float, score: float, drawing: str) -> str:
    call = ["chat", "m", ms, None, 0, 7]
    trials = [{"context": [[0, {"dense": score}]], "stages": [["prompt", ms], ["ask", ms, [call], {"k": 1}]]}]
    block = f'<script type="application/octet-stream" id="data-trials-0" data-packed="json">{json.dumps(trials)}'
    times = f'<svg><circle cx="{ms}"/><title>median, ms {ms}</title></svg>'
    gates = f"<tr><th>t1: p95(total_ms) &lt;= 5</th><td><bdi>{ms}</bdi></td><td>passed</td></tr>"
    gates += f'<tr><td data-head="median time, ms">{ms} [{ms}, 12]</td><td><bdi>{ms} ms ± 2</bdi></td></tr>'
    gates += f"<tr><th>t1: recall@5 &gt;= 0.5</th><td>{score}</td></tr>"
    return f"<h1>Run</h1><td>{ms} / {ms} / {ms}</td>{gates}{times}<svg>{drawing}</svg>{block}</script><p>end</p>"


def test_times_are_taken_out_of_a_page_and_its_data() -> None:
    assert normal().page(page(1.5, 0.5, "bars")) == normal().page(page(1320.25, 0.5, "bars"))


@pytest.mark.parametrize(
    "other", [page(1.5, 0.51, "bars"), page(1.5, 0.5, "lines"), page(1.5, 0.5, "bars").replace("passed", "failed")]
)
def test_a_changed_score_drawing_or_verdict_of_a_page_is_noticed(other: str) -> None:
    assert normal().page(other) != normal().page(page(1.5, 0.5, "bars"))


def test_prompts_are_compared_by_their_text(tmp_path: Path) -> None:
    """Digests of prompts may change with what is in them that varies: an address."""
    found = [dict(script.kept_files(leave(tmp_path / port, port), {}, "done")) for port in ("9001", "9002")]
    assert found[0] == found[1]
    assert "<host>" in found[0]["prompts.jsonl"]
    changed = dict(script.kept_files(leave(tmp_path / "changed", "9001", "Why?"), {}, "done"))
    assert {name for name in changed if changed[name] != found[0][name]} == {"prompts.jsonl", "output/e1.jsonl"}


def leave(folder: Path, port: str, text: str = "How?") -> Path:
    """Leave what a run leaves."""
    digest = f"{port}{len(text):020}"
    (folder / "output/prompts").mkdir(parents=True)
    (folder / f"output/prompts/{digest}.json").write_text(json.dumps({"url": f"http://127.0.0.1:{port}/", "q": text}))
    (folder / "output/e1.jsonl").write_text(json.dumps({"query_id": "q1", "calls": [{"prompt": digest}]}) + "\n")
    (folder / "comment.md").write_text("passed")
    (folder / "report.html").write_text("<p>passed</p>")
    return folder


def kept(folder: Path, **texts: str) -> Path:
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text)
    return folder


def test_equal_folders_have_no_difference(tmp_path: Path) -> None:
    one, other = (kept(tmp_path / name, rows="a\nb\n", page="c") for name in ("one", "other"))
    assert list(script.compare(one, other)) == []


def test_the_first_file_that_differs_is_shown_with_a_field_of_json_a_line(tmp_path: Path) -> None:
    first, later = ({"id": "q1", "value": value, "text": "x" * 500} for value in (0.5, 0.4))
    one = kept(tmp_path / "one", a="same", rows=f"{json.dumps(first)}\n", terminal="passed\n", gone="x")
    other = kept(tmp_path / "other", a="same", rows=f"{json.dumps(later)}\n", terminal="failed\n")
    said = list(script.compare(one, other))
    assert said[0] == "3 of 4 files differ: gone, rows, terminal"
    (one / "gone").unlink()
    said = list(script.compare(one, other))
    assert said[1:3] == ["--- before/rows", "+++ now/rows"]
    assert [line for line in said[3:] if line[0] in "+-"] == ['- "value": 0.5,', '+ "value": 0.4,']


def test_a_long_difference_is_cut(tmp_path: Path) -> None:
    one = kept(tmp_path / "one", rows="".join(f"a{n}\n" for n in range(900)))
    said = list(script.compare(one, kept(tmp_path / "other", rows="".join(f"b{n}\n" for n in range(900)))))
    assert len(said) == script.SHOWN + 2
    assert said[-1].startswith("… and ")


def test_a_checkout_whose_entry_points_are_not_installed_is_refused(tmp_path: Path) -> None:
    project = '[project.entry-points.pytest11]\nrag_harness = "rag_harness.moved.plugin"\n'
    (tmp_path / "pyproject.toml").write_text(project)
    with pytest.raises(SystemExit, match=r"rag_harness.moved.plugin.* is not installed: python -m pip install -e "):
        script.check_installed(tmp_path)
