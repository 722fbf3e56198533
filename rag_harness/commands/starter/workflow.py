"""What ``rag-harness init --ci`` writes: each pull request runs the suite; gates that are not judged fail."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from rag_harness.commands.starter.started import Started
from rag_harness.registry.installed import NAME

Host = Literal["github", "gitlab"]
_SUITE = "pytest test_retrieval.py --rag-not-judged=fail --junitxml=output/junit.xml"

WORKFLOW_FILE = ".github/workflows/rag.yml"
WORKFLOW = f"""\
# Runs the suite of rag-harness on each pull request. A gate that fails stops it, and so does one that was not judged.
name: rag
on:
  pull_request:
  push:
    branches: [main]
permissions:
  contents: read

jobs:
  gates:
    runs-on: ubuntu-latest
    timeout-minutes: 20
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - run: python -m pip install {NAME}
      - run: {_SUITE}
      - run: rag-harness report output -o report.html
        if: always()
      - uses: actions/upload-artifact@v7
        id: report
        if: always()
        with:
          path: report.html
          archive: false
      - name: Say on the page of the run how it came out, with links into the report
        if: always()
        run: rag-harness report output -o comment.md --link "$REPORT" && cat comment.md >> "$GITHUB_STEP_SUMMARY"
        env:
          REPORT: ${{{{ steps.report.outputs.artifact-url }}}}
      - uses: actions/upload-artifact@v7
        if: always()
        with:
          name: rag
          path: output/
"""

GITLAB_JOB_FILE = ".gitlab/rag.yml"
GITLAB_JOB = f"""\
# Runs the suite of rag-harness on each merge request. A gate that fails stops it, and so does one that was not judged.
rag:
  image: python:3.12
  timeout: 20 minutes
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
    - if: $CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH
  script:
    - python -m pip install {NAME}
    - {_SUITE}
  after_script:
    - rag-harness report output -o report.html
    - rag-harness report output -o comment.md && cat comment.md
  cache:
    key: rag
    paths:
      - .rag_cache/
  artifacts:
    when: always
    paths:
      - output/
      - report.html
    reports:
      junit: output/junit.xml
"""
_GITLAB_FILE = ".gitlab-ci.yml"
_INCLUDE = f"include:\n  - local: {GITLAB_JOB_FILE}\n"


def write_ci(folder: Path, host: Host, done: Started) -> None:
    """Write what runs the suite on ``host``. Existing files are left alone.

    Raises:
        DataError: a file cannot be written.
    """
    if host == "github":
        done.write(folder / WORKFLOW_FILE, WORKFLOW)
        done.next_step += ", then commit and push: each pull request runs it"
        return
    done.write(folder / GITLAB_JOB_FILE, GITLAB_JOB)
    _include(folder / _GITLAB_FILE, done)
    done.next_step += ", then commit and push: each merge request runs it"


def _include(file: Path, done: Started) -> None:
    """Have GitLab's own file include the job. One that is there is the user's to change."""
    done.write(file, _INCLUDE)
    if file in done.kept and GITLAB_JOB_FILE not in file.read_text(encoding="utf-8", errors="replace"):
        done.todo.append(f"Add to {file}:")
        done.todo += [f"    {line}" for line in _INCLUDE.splitlines()]
