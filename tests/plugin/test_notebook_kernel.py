"""Pages about notebooks, in a real kernel: its event loop runs, and what a cell shows is what Jupyter gets."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.counting_server import counting_server

_LACKING = [name for name in ("ipykernel", "nbclient", "nbformat") if find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(_LACKING), reason=f"pip install ipykernel nbclient: {', '.join(_LACKING)}")
PAGES = Path(__file__).parents[2] / "docs/how-to"
OWN_CLIENT = """
import asyncio

class Client:
    def __init__(self):
        self.loop = asyncio.get_running_loop()

    async def ask(self, question):
        assert asyncio.get_running_loop() is self.loop
        return "45 days"

client = Client()

async def mine(question):
    return await client.ask(question)

(await rag_harness.aevaluate(mine, questions)).figures["error_rate"].mean
"""


# The client is made in a cell, and keeps connections that belong to the loop on which it is first used.
ONE_CLIENT = """
import asyncio
import openai
import rag_harness

client = openai.AsyncOpenAI(base_url={url!r}, api_key="none", max_retries=0)
asked = ["How long can I return a lamp?", "How long is the warranty?"]

async def say(question):
    messages = [{{"role": "user", "content": f"Question: {{question}}"}}]
    async with client.chat.completions.stream(model="counting", messages=messages) as stream:
        return (await stream.get_final_completion()).choices[0].message.content

def error_rate(pipeline, name):
    return rag_harness.evaluate(pipeline, asked, name=name, output=name).figures["error_rate"].mean

error_rate(say, "first")
"""
AWAITED = "await asyncio.sleep(0, result='awaited')"
SYNC = """
def runs(question):
    return asyncio.run(asyncio.sleep(0, result="45 days"))

error_rate(runs, "third")
"""


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (PAGES / page).read_text(encoding="utf-8"), re.DOTALL)


def executed(cells: list[str], folder: Path) -> list[list[Any]]:
    """Return what each cell shows, after the kernel has run all of them."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])
    place = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=60, startup_timeout=60, allow_errors=True, resources=place).execute()
    return [list(cell.outputs) for cell in notebook.cells]


def test_the_pages_run_in_a_kernel(tmp_path: Path) -> None:
    wrong = "rag_harness.evaluate(rag, questions, top_k='many')"
    cells = [*blocks("notebooks.md"), *blocks("notebooks-async.md"), "result", OWN_CLIENT, wrong]
    evaluated, looked_at, with_version, awaited, awaited_result, own_client, refused = executed(cells, tmp_path)
    assert (with_version, awaited) == ([], [])
    for shown in (evaluated, awaited_result):
        (output,) = shown
        assert "<caption>rag: 3 questions</caption>" in output.data["text/html"]
        assert '<th scope="row">token_f1</th><td>0.222</td><td>[0.01, 0.88]</td><td>2</td>' in output.data["text/html"]
        assert output.data["text/plain"].startswith("rag: 3 questions\nmeasure ")
    assert "'query': 'How long can I return a lamp?'" in looked_at[0].data["text/plain"]
    assert own_client[0].data["text/plain"] == "0.0"
    (error,) = refused
    assert error.ename == "SettingsError"
    assert error.traceback == [f"SettingsError: {error.evalue}"]


def test_a_client_that_is_made_once_lives_through_all_evaluations(tmp_path: Path) -> None:
    with counting_server(delay=0) as server:
        again = [f"error_rate(say, {name!r})" for name in ("second", "fourth")]
        cells = [ONE_CLIENT.format(url=server.url), AWAITED, again[0], SYNC, AWAITED, again[1]]
        shown = executed(cells, tmp_path)
        assert server.calls.total() == 3 * 2
    assert [output.data["text/plain"] for (output,) in shown] == ["0.0", "'awaited'", "0.0", "0.0", "'awaited'", "0.0"]
