"""The suites that ``engine.py`` times: the harness on a mock server, and the least that could do the same."""

from __future__ import annotations

import json
from pathlib import Path

PROTOTYPE = '''
"""The least that calls a model ahead of the tests: one client, one loop, a line with fsync for each result."""
import asyncio, json, os, threading
from concurrent.futures import Future

import pytest

CALLS, IN_FLIGHT, URL, STREAM = int(os.environ["CALLS"]), int(os.environ["IN_FLIGHT"]), os.environ["URL"], True


def pytest_generate_tests(metafunc):
    metafunc.parametrize("n", range(CALLS)[metafunc.module.SHARE :: int(os.environ["WORKERS"])])


class Ahead:
    def __init__(self, numbers, in_flight):
        from openai import AsyncOpenAI

        self.loop = asyncio.new_event_loop()
        self.futures = {n: Future() for n in numbers}
        self.free = asyncio.Semaphore(in_flight)
        self.client = AsyncOpenAI(base_url=URL, api_key="none", max_retries=0)
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self.loop.call_soon_threadsafe(self.start)

    def start(self):
        self.tasks = [self.loop.create_task(self.ask(n)) for n in self.futures]

    async def ask(self, n):
        async with self.free:
            messages = [{"role": "user", "content": f"Question: question {n}"}]
            stream = await self.client.chat.completions.create(
                model="mock", messages=messages, stream=True, stream_options={"include_usage": True}
            )
            text = [chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices]
        self.futures[n].set_result("".join(text))


@pytest.fixture(scope="session")
def rows():
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    with open(f"rows-{worker}.jsonl", "w") as file:
        yield file


@pytest.fixture(scope="session")
def ahead():
    return {}


@pytest.fixture
def answer(request, n, rows, ahead):
    if not ahead:
        workers = int(os.environ["WORKERS"])
        ahead[0] = Ahead(range(CALLS)[request.module.SHARE :: workers], IN_FLIGHT // workers)
    text = ahead[0].futures[n].result()
    rows.write(json.dumps({"n": n, "answer": text}) + "\\\\n")
    rows.flush()
    os.fsync(rows.fileno())
    return text
'''.replace("\\\\n", "\\n")

SCRIPT = '''
"""No pytest: the same calls behind a semaphore."""
import asyncio, os

from openai import AsyncOpenAI


async def main():
    client = AsyncOpenAI(base_url=os.environ["URL"], api_key="none", max_retries=0)
    free = asyncio.Semaphore(int(os.environ["IN_FLIGHT"]))

    async def ask(n):
        async with free:
            messages = [{"role": "user", "content": f"Question: question {n}"}]
            stream = await client.chat.completions.create(
                model="mock", messages=messages, stream=True, stream_options={"include_usage": True}
            )
            return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])

    answers = await asyncio.gather(*(ask(n) for n in range(int(os.environ["CALLS"]))))
    assert all(answers)


asyncio.run(main())
'''


def write_prototype(folder: Path) -> None:
    folder.mkdir()
    (folder / "conftest.py").write_text(PROTOTYPE)
    for share in range(4):
        test = f"SHARE = {share}\n\n\ndef test_answers(answer):\n    assert answer\n"
        (folder / f"test_{share}.py").write_text(test)
    (folder / "script.py").write_text(SCRIPT)


def write_harness(folder: Path, url: str, trials: int) -> None:
    (folder / "kb").mkdir(parents=True)
    (folder / "kb" / "returns.md").write_text("# Returns\n\nReturns are free for 30 days.\n")
    queries = [{"query_id": f"q_{n:05}", "query": f"question {n}"} for n in range(trials)]
    (folder / "kb" / "queries.jsonl").write_text("".join(json.dumps(each) + "\n" for each in queries))
    (folder / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\nrag_kb_dir = "kb"\nrag_profile = "mockserver"\n\n'
        f'[tool.rag_harness.profiles.mockserver]\nchat_model = "mock"\nchat_base_url = "{url}"\n'
        'embed_model = "mock/hashed-words"\nrerank_model = "mock/word-overlap"\n'
    )
    (folder / "test_all.py").write_text(
        "import pytest\n\n\n@pytest.mark.e1\ndef test_answers(rag_result):\n    assert rag_result.ok, rag_result.why\n"
    )
