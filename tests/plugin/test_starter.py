"""A newcomer's folder works after ``rag-harness init``, and is told what its numbers are worth."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from rag_harness.__main__ import main
from rag_harness.frontends.cli import init as drafted
from rag_harness.frontends.cli.results import schema_text
from tests.plugin.conftest import PAGES
from tests.unit.authoring.questions.shop import folder

HAIKU = "# 返品\n\nランプは45日以内に返品できます。\n"


def init(at: Path, *args: str) -> int:
    return main(["init", str(at), *args])


def written(at: Path, pages: dict[str, str] = PAGES) -> Path:
    at.mkdir(parents=True)
    for name, text in pages.items():
        (at / name).write_text(text, encoding="utf-8")
    return at


def rows_of(at: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (at / "queries.jsonl").read_text(encoding="utf-8").splitlines()]


def review(at: Path, number: int) -> None:
    """Say of the first questions that somebody has read them."""
    rows = [
        {**row, "metadata": {**row["metadata"], "reviewed": "yes" if n < number else "no"}}  # type: ignore[dict-item]
        for n, row in enumerate(rows_of(at))
    ]
    (at / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_drafts_are_asked_at_once_and_judged_once_they_are_reviewed(
    pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    folder(pytester.path)
    assert init(pytester.path, "--kb", "my_docs") == 0
    said = capsys.readouterr().out
    drafts = rows_of(pytester.path)
    n = len(drafts)
    assert f"queries.jsonl holds {n} drafted questions (the rules found no more) that nobody has reviewed" in said
    result = pytester.runpytest_subprocess("--junitxml=junit.xml")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            f"golden: {n} of {n} questions are unreviewed",
            "not judged  golden: recall@1 >= 0.8 @95% * n=*",
            "*1 gate not judged*",
        ]
    )
    text = " ".join(result.stdout.str().split())
    assert f"{n} of {n} cases are unreviewed drafts: rag-harness queries review queries.jsonl --kb my_docs" in text
    assert '<skipped type="pytest.skip" message="not judged: ' in (pytester.path / "junit.xml").read_text()
    (gate,) = json.loads((pytester.path / "output" / "summary.json").read_text())["gates"]
    assert (gate["state"], gate["n"], gate["unreviewed"]) == ("not judged", n, n)
    assert gate["value"] is not None

    review(pytester.path, 2)
    assert init(pytester.path, "--kb", "my_docs") == 0
    assert capsys.readouterr().out.count("(it was there)") == 4
    part = pytester.runpytest_subprocess("--rag-gate=golden[reviewed=yes]: recall@k >= 0", "--rag-gate=mrr@k >= 0")
    part.stdout.fnmatch_lines(["passed *golden[[]reviewed=yes]: recall@1 >= 0 *n=2", "passed *golden: mrr@1 >= 0 *n=2"])
    assert f"on the 2 reviewed of {n} cases; with the drafts" in part.stdout.str()


def test_where_nothing_can_be_asked_a_placeholder_stands_and_passes_no_gate(
    pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    written(pytester.path / "docs", {"returns.md": HAIKU})
    assert init(pytester.path) == 0
    assert ": no fact was found in English or another language" in capsys.readouterr().out
    (row,) = rows_of(pytester.path)
    assert row["query"] == "Replace this by a question that returns.md answers"
    result = pytester.runpytest_subprocess()
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["not judged *golden: recall@1 >= 0.8 @95% *", "*its one case is a placeholder: write a*"]
    )


def test_the_placeholder_of_an_older_golden_set_passes_no_gate_and_is_kept(pytester: pytest.Pytester) -> None:
    written(pytester.path / "docs")
    old = {"query": "Replace this by a question that returns.md answers", "expected_document_id": "returns.md"}
    (pytester.path / "golden.json").write_text(json.dumps([{**old, "justification": "j"}]))
    assert init(pytester.path) == 0
    assert not (pytester.path / "queries.jsonl").exists()
    result = pytester.runpytest_subprocess("--rag-gate-unreviewed")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["not judged *golden: recall@1 >= 0.8 @95% *", "*its one case is a placeholder: write a*"]
    )


def test_the_first_draft_says_what_its_answer_owes_and_keeps_to_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = folder(tmp_path)
    assert init(tmp_path, "--kb", "my_docs") == 0
    said = capsys.readouterr().out
    assert 'The first of them says in "expect" what its answer owes: two examples, for you to write more.' in said
    first, *others = rows_of(tmp_path)
    assert first["expect"] == [{"cites": first["context_reference"][0]}, {"max_words": 120}]  # type: ignore[index]
    assert not any("expect" in each for each in others)
    assert main(["queries", "check", str(made), "--queries", str(tmp_path / "queries.jsonl")]) == 0


def test_a_first_draft_of_two_pages_cites_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder(tmp_path)
    monkeypatch.setattr(drafted, "WANTED", 0)
    monkeypatch.setattr(drafted, "_MULTI_HOP", 2)
    assert init(tmp_path, "--kb", "my_docs") == 0
    first = rows_of(tmp_path)[0]
    assert first["query_type"] == "multi_hop"
    assert first["expect"] == [{"cites_all": first["context_reference"]}, {"max_words": 120}]


def test_an_example_question_says_what_its_answer_owes(tmp_path: Path) -> None:
    assert init(tmp_path, "--example") == 0
    (first,) = [each for each in rows_of(tmp_path) if "expect" in each]
    assert first["expect"] == [{"number": 16, "must": True}, {"cites": "membership.md"}]
    assert main(["queries", "check", str(tmp_path / "docs"), "--queries", str(tmp_path / "queries.jsonl")]) == 0


def test_an_empty_folder_gets_an_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert init(tmp_path, "--example") == 0
    assert "what they score says nothing of your documents" in capsys.readouterr().out
    assert init(tmp_path, "--example") == 0
    assert "wrote" not in capsys.readouterr().out


def test_the_example_is_not_poured_over_somebodys_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path / "docs")
    assert init(tmp_path, "--example") == 2
    assert "holds 3 documents of yours, returns.md for one" in capsys.readouterr().err
    assert not (tmp_path / "queries.jsonl").exists()


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ("content/guide", "found  3 documents in content; if your documents are elsewhere: rag-harness init --kb DIR"),
        ("", "found  3 documents in this folder and all below it; if your documents are elsewhere"),
        ("docs", "found  3 documents in docs\n"),
    ],
)
def test_documents_are_found_where_they_usually_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], at: str, said: str
) -> None:
    written(tmp_path / "new" / at)
    assert init(tmp_path / "new") == 0
    assert said in capsys.readouterr().out
    assert f"rag_kb_dir = {at.split('/', maxsplit=1)[0] or '.'}\n" in (tmp_path / "new" / "pytest.ini").read_text()


def test_init_leaves_an_existing_configuration_alone(
    pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    (pytester.path / "docs").mkdir()
    (pytester.path / "docs" / "a.md").write_text("# A\n\nText.\n")
    config = '[tool.pytest.ini_options]\naddopts = "-ra"\n'
    (pytester.path / "pyproject.toml").write_text(config)
    assert main(["init", str(pytester.path)]) == 1
    said = capsys.readouterr().out
    assert 'rag_kb_dir = "docs"' in said
    assert 'rag_gate = ["recall@k >= 0.8 @95%"]' in said
    assert (pytester.path / "pyproject.toml").read_text() == config
    assert not (pytester.path / "pytest.ini").exists()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("pytest.ini", b"", "Add to [pytest] in "),
        ("pytest.toml", b'[pytest]\naddopts = ["-ra"]\n', "Add to the pytest section of "),
        ("pyproject.toml", b'[tool.pytest.ini_options]\ntestpaths = ["tests"]\n', "Add to the pytest section of "),
        ("setup.cfg", b"[metadata]\nauthor = M\xfcller\n[tool:pytest]\n", "Add to the pytest section of "),
    ],
)
def test_any_file_that_pytest_would_read_is_told_the_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes, said: str
) -> None:
    written(tmp_path / "docs", {"a.md": "# A\n\nText.\n"})
    (tmp_path / name).write_bytes(content)
    assert init(tmp_path) == 1, "pytest would not see the suite"
    out = capsys.readouterr().out
    assert f"{said}{tmp_path / name}:\n    rag_kb_dir = " in out
    assert "Next: add the lines above, then pytest test_retrieval.py" in out
    assert ("Add test_retrieval.py to testpaths there" in out) == (b"testpaths" in content)
    assert (tmp_path / name).read_bytes() == content
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted(
        [".gitignore", ".rag_harness", "docs", name, "queries.jsonl", "test_retrieval.py"]
    )


@pytest.mark.parametrize(
    ("value", "is_told"),
    [('testpaths = ["."]', False), ("testpaths = [\n  'docs',\n  '.'\n]", False), ('testpaths = ["./tests"]', True)],
)
def test_testpaths_that_are_the_folder_itself_have_the_suite(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], value: str, is_told: bool
) -> None:
    written(tmp_path / "docs", {"a.md": "# A\n\nText.\n"})
    (tmp_path / "pyproject.toml").write_text(f"[tool.pytest.ini_options]\n{value}\n")
    assert init(tmp_path) == 1
    assert ("Add test_retrieval.py to testpaths there" in capsys.readouterr().out) == is_told


def test_facts_that_make_no_question_are_told_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path / "docs", {"a.md": "# Repairs\n\nA flat tyre costs 18 euro with a new inner tube.\n"})
    assert init(tmp_path) == 0
    said = "No question was drafted from docs: 1 fact found, but none makes a fair question: says too little (1)."
    assert said in capsys.readouterr().out


def test_the_example_does_not_come_to_questions_about_other_pages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "queries.jsonl").write_text("{}\n")
    assert init(tmp_path, "--example") == 2
    assert "or try it in an empty folder" in capsys.readouterr().err
    assert not (tmp_path / "docs").exists()


@pytest.mark.parametrize("args", [(), ("--kb", "nowhere")])
def test_init_without_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str], args: tuple[str, ...]) -> None:
    assert init(tmp_path, *args) == 2
    said = capsys.readouterr().err
    assert "rag-harness init --kb DIR" in said
    assert "rag-harness init --example brings a small knowledge base to try" in said
    assert not list(tmp_path.iterdir())


def test_a_folder_without_any_test_is_told_where_experiments_are(pytester: pytest.Pytester) -> None:
    written(pytester.path / "my_docs", PAGES)
    asked = pytester.runpytest_inprocess("--rag-kb=my_docs")
    asked.stdout.fnmatch_lines(["rag: no test is here that asks an experiment. --rag-run=e2,e3 *rag-harness init *"])
    lacking = pytester.runpytest_inprocess("-m", "e3", "--rag-kb=my_docs")
    lacking.stdout.fnmatch_lines(["No file */my_docs/queries.jsonl. *rag-harness kb queries DIR -o queries.jsonl"])
    assert "no test is here" not in lacking.stdout.str()
    assert "rag:" not in pytester.runpytest_inprocess().stdout.str()


def test_a_workflow_runs_the_suite_and_fails_where_nothing_is_judged(
    pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init(pytester.path, "--example", "--ci") == 0
    assert "wrote  " in capsys.readouterr().out
    file = pytester.path / ".github" / "workflows" / "rag.yml"
    (job,) = yaml.safe_load(file.read_text())["jobs"].values()
    (command,) = (step["run"] for step in job["steps"] if step.get("run", "").startswith("pytest "))
    asked = command.split()[1:]
    judged = pytester.runpytest_subprocess(*asked)
    assert judged.ret == 0
    judged.stdout.fnmatch_lines(["passed *golden: recall@3 >= 0.5 @95% *n=18 *"])
    page, comment = (step for step in job["steps"] if step.get("run", "").startswith("rag-harness report "))
    assert main(page["run"].split()[1:]) == 0
    said = comment["run"].partition(" && ")[0].replace('"$REPORT"', "https://example.com/7")
    assert main(said.split()[1:]) == 0
    comment_said = Path("comment.md").read_text()
    assert comment_said.startswith("## ✅ PASS: 1 of 1 gate passed")
    assert "- `golden-q_direct_005`: " in comment_said
    assert comment["env"] == {"REPORT": "${{ steps.report.outputs.artifact-url }}"}
    result = pytester.runpytest_subprocess(*asked, "--rag-limit=2")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["not judged *"])
    file.write_text("mine")
    assert init(pytester.path, "--example", "--ci") == 0
    assert file.read_text() == "mine"


@pytest.mark.parametrize("asked", [["--ci"], ["--ci", "github"]])
def test_ci_alone_means_github(tmp_path: Path, capsys: pytest.CaptureFixture[str], asked: list[str]) -> None:
    assert init(tmp_path, "--example", *asked) == 0
    assert (tmp_path / ".github" / "workflows" / "rag.yml").exists()
    assert not (tmp_path / ".gitlab-ci.yml").exists()
    assert capsys.readouterr().out.splitlines()[-1] == (
        "Next: pytest test_retrieval.py, then commit and push: each pull request runs it"
    )


def test_a_job_of_gitlab_runs_the_suite_and_is_to_fail_where_nothing_is_judged(
    pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init(pytester.path, "--example", "--ci", "gitlab") == 0
    said = capsys.readouterr().out
    assert said.splitlines()[-1] == "Next: pytest test_retrieval.py, then commit and push: each merge request runs it"
    assert not (pytester.path / ".github").exists()
    (included,) = yaml.safe_load((pytester.path / ".gitlab-ci.yml").read_text())["include"]
    job = yaml.safe_load((pytester.path / included["local"]).read_text())["rag"]
    install, run = job["script"]
    assert install == "python -m pip install pytest-rag-harness"
    asked = run.split()[1:]
    assert "--rag-not-judged=fail" in asked  # what it does where nothing is judged, the test of the workflow shows
    assert pytester.runpytest_subprocess(*asked).ret == 0
    for command in job["after_script"]:
        assert main(command.partition(" && ")[0].split()[1:]) == 0
    for made in (*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"], *job["cache"]["paths"]):
        assert made == ".rag_cache/" or (pytester.path / made).exists()


def test_a_pipeline_of_gitlab_that_is_there_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / ".gitlab-ci.yml").write_text("test:\n  script: [make]\n")
    assert init(tmp_path, "--example", "--ci", "gitlab") == 0
    assert (tmp_path / ".gitlab-ci.yml").read_text() == "test:\n  script: [make]\n"
    told = f"Add to {tmp_path / '.gitlab-ci.yml'}:\n    include:\n      - local: .gitlab/rag.yml\n"
    assert told in capsys.readouterr().out
    (tmp_path / ".gitlab-ci.yml").write_text("include:\n  - local: .gitlab/rag.yml\n")
    assert init(tmp_path, "--example", "--ci", "gitlab") == 0
    assert "Add to" not in capsys.readouterr().out


LINES = "# What a run of rag-harness writes\noutput/\n.rag_cache/\nlogs/\n"


@pytest.mark.parametrize(
    ("there", "then"),
    [
        (None, LINES),
        (b"", LINES),
        (b"dist/\n", f"dist/\n{LINES}"),
        (b"dist/", f"dist/\n{LINES}"),
        (b"caf\xe9/\r\n", f"caf\xe9/\n{LINES}".replace("\n", "\r\n")),
        (b"/output/\n!logs\n", "/output/\n!logs\n# What a run of rag-harness writes\n.rag_cache/\n"),
        (b"logs\noutput\n/.rag_cache\n", "logs\noutput\n/.rag_cache\n"),
        (b"outputs/\n", f"outputs/\n{LINES}"),
    ],
)
def test_git_ignores_what_a_run_writes_and_no_line_is_touched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], there: bytes | None, then: str
) -> None:
    file = tmp_path / ".gitignore"
    if there is not None:
        file.write_bytes(there)
    for _ in range(2):
        assert init(tmp_path, "--example") == 0
        assert file.read_bytes() == then.encode("latin-1")
    said = capsys.readouterr().out
    assert said.count(f" to {file}\n") == (there is not None and then.encode("latin-1") != there)
    assert said.count(f"kept   {file} ") == 1 + (then.encode("latin-1") == there)


def test_a_gitignore_that_cannot_be_added_to_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / ".gitignore").mkdir()
    assert init(tmp_path, "--example") == 2
    assert f"{tmp_path / '.gitignore'} cannot be added to: " in capsys.readouterr().err


def test_schemas_for_editors_are_those_of_this_version(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path / "docs")
    assert init(tmp_path) == 0
    capsys.readouterr()
    files = {kind: tmp_path / ".rag_harness" / f"{kind}.schema.json" for kind in ("endpoint", "space")}
    assert {kind: file.read_text(encoding="utf-8") for kind, file in files.items()} == {
        kind: schema_text(kind) for kind in files
    }
    main(["doctor", str(tmp_path)])
    assert "schema.json" not in capsys.readouterr().out
    files["space"].write_text("{}")
    main(["doctor", str(tmp_path)])
    assert f"rag-harness schema space -o {files['space']}" in capsys.readouterr().out
    assert init(tmp_path) == 0
    assert f"wrote  {files['space']}" in capsys.readouterr().out
    assert files["space"].read_text(encoding="utf-8") == schema_text("space")
