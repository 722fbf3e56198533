"""The workflow of ``rag-harness init --ci``: each pull request runs the suite; gates that are not judged fail."""

from __future__ import annotations

from rag_harness.registry.installed import NAME

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
      - run: pytest test_retrieval.py --rag-not-judged=fail --junitxml=output/junit.xml
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
