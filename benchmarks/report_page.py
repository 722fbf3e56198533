"""The report of a large run: how long it takes to write, how large it is, how soon a browser has it ready.

    python benchmarks/report_page.py OUTPUT [--cases 5000] [--browser /usr/bin/chromium]

OUTPUT is a run's output folder. Its trials are copied under new ids until there are that many cases; each copy's
question and answer end in other words, drawn from the run's own. The chunks stay those of the knowledge base. With
``--browser``, and the package playwright, the page is opened there with the network cut.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from rag_harness.page.report import size_said, write_report
from rag_harness.records.scores import text_digest

TAIL = 12
_READY = "html[data-ready=true]"
_FILTER = """(fragment) => new Promise((done) => {
  const began = performance.now();
  const said = () => done([performance.now() - began, document.querySelector("[data-count]").textContent]);
  addEventListener("hashchange", said, { once: true });
  location.hash = fragment;
})"""


class Copies:
    """Copies a run's lines under new ids, each with its own words.

    Args:
        source: the run's output folder.
        cases: how many there shall be.
    """

    def __init__(self, source: Path, cases: int) -> None:
        self._source, self._cases = source, cases
        self._lines = _read(source / "cases" / "queries.jsonl")
        self._words = sorted({word for line in self._lines for word in line["ground_truth"].split()})
        self._digests: dict[tuple[str, str], str] = {}

    def write(self, output: Path) -> None:
        """Write the large run."""
        manifest = json.loads((self._source / "run.json").read_text(encoding="utf-8"))
        shutil.copytree(self._source / "prompts", output / "prompts")
        for folder in ("cases", "scores"):
            (output / folder).mkdir()
        self._copy("cases/queries.jsonl", output, self._case)
        for name, suite in manifest["suites"].items():
            suite["total"] = self._cases
            self._copy(suite["file"], output, self._row)
            if (self._source / "scores" / suite["file"]).exists():
                self._copy(f"scores/{suite['file']}", output, partial(self._score, name))
        (output / "run.json").write_text(json.dumps(manifest), encoding="utf-8")

    def _copy(self, file: str, output: Path, changed: Callable[[dict[str, Any], str], dict[str, Any]]) -> None:
        lines = _read(self._source / file)
        places = {line["case_id"]: n for n, line in enumerate(self._lines)}
        with (output / file).open("w", encoding="utf-8") as stream:
            for number in range(-(-self._cases // len(self._lines))):
                for line in lines:
                    place = places[line.get("case_id") or line["query_id"]]
                    if number * len(self._lines) + place < self._cases:
                        stream.write(json.dumps(changed(dict(line), f"-{number}"), ensure_ascii=False) + "\n")

    def _tail(self, *seed: str) -> str:
        return " " + " ".join(random.Random(" ".join(seed)).choices(self._words, k=TAIL))

    def _case(self, line: dict[str, Any], tag: str) -> dict[str, Any]:
        return line | {"query": line["query"] + self._tail(line["case_id"], tag), "case_id": line["case_id"] + tag}

    def _row(self, line: dict[str, Any], tag: str) -> dict[str, Any]:
        case = line["query_id"]
        line["query"] += self._tail(case, tag)
        line["llm_answer"] += self._tail(case, tag, line["experiment"])
        line["query_id"] += tag
        chunks = [chunk["text"] for chunk in line["retrieved_chunks"]]
        abstained = "abstained" if line["abstained"] else ""
        judged = [line["query"], line["llm_answer"], abstained, line["ground_truth"], *chunks]
        self._digests[line["experiment"], line["query_id"]] = text_digest(judged)
        return line

    def _score(self, name: str, line: dict[str, Any], tag: str) -> dict[str, Any]:
        line["query_id"] += tag
        return line | {"row": self._digests[name, line["query_id"]]}


def _read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def opened(page: Path, browser: str) -> Iterator[str]:
    """Yield how soon the page is ready in the browser, and how long filters take until the list stands."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        context = chromium.new_context(offline=True, bypass_csp=True)
        times = []
        for _ in range(3):
            tab = context.new_page()
            began = time.perf_counter()
            tab.goto(page.as_uri())
            tab.wait_for_selector(_READY)
            times.append(time.perf_counter() - began)
        yield f"ready after {min(times):.2f} s, the best of {len(times)}"
        tab.wait_for_timeout(1_000)
        for fragment in ("#trials?q=warranty", "#trials?experiment=e3&sort=-hri", "#trials?hri=0.1..&q=delivery"):
            took, said = tab.evaluate(_FILTER, fragment)
            yield f"{fragment}: {took:.0f} ms, {said}"


def main() -> None:
    """Write the run and its page in a temporary folder, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--cases", type=int, default=5_000)
    parser.add_argument("--browser", default="")
    parser.add_argument("--keep", type=Path, help="where to keep the page")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        output, page = Path(folder) / "run", chosen.keep or Path(folder) / "report.html"
        output.mkdir()
        Copies(chosen.output, chosen.cases).write(output)
        began = time.perf_counter()
        write_report([output], page, "html")
        print(f"{chosen.cases} cases: {size_said(page)}, written in {time.perf_counter() - began:.1f} s")
        for line in opened(page.absolute(), chosen.browser) if chosen.browser else ():
            print(line)


if __name__ == "__main__":
    main()
