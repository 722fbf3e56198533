"""A newcomer's folder with three Markdown files works after ``rag-harness init``."""

from __future__ import annotations

import json

import pytest

from rag_harness.__main__ import main
from tests.plugin.conftest import PAGES

ENTRIES = [
    ("return a lamp", "returns.md"),
    ("refund in working days", "returns.md#refunds"),
    ("express delivery costs", "shipping.md"),
    ("zone 1 delivery", "shipping.md"),
    ("warranty lasts years", "warranty.md"),
]


def test_init_then_pytest(pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]) -> None:
    (pytester.path / "docs").mkdir()
    for name, text in PAGES.items():
        (pytester.path / "docs" / name).write_text(text, encoding="utf-8")
    assert main(["init", str(pytester.path)]) == 0
    assert "Put questions of your own into golden.json" in capsys.readouterr().out
    lines = [{"query": q, "expected_document_id": doc, "justification": "j"} for q, doc in ENTRIES]
    (pytester.path / "golden.json").write_text(json.dumps(lines))
    result = pytester.runpytest_subprocess("--rag-profile=mock")
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(["passed *golden: recall@3 >= 0.9 *"])
    assert main(["init", str(pytester.path)]) == 0
    assert capsys.readouterr().out.count("(it was there)") == 3


def test_init_leaves_an_existing_configuration_alone(
    pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    (pytester.path / "docs").mkdir()
    (pytester.path / "docs" / "a.md").write_text("# A\n\nText.\n")
    config = '[tool.pytest.ini_options]\naddopts = "-ra"\n'
    (pytester.path / "pyproject.toml").write_text(config)
    assert main(["init", str(pytester.path)]) == 0
    assert 'rag_kb_dir = "docs"' in capsys.readouterr().out
    assert (pytester.path / "pyproject.toml").read_text() == config
    assert not (pytester.path / "pytest.ini").exists()


def test_init_without_documents(pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(pytester.path), "--kb", "nowhere"]) == 2
    assert "Name the folder of your documents" in capsys.readouterr().err
