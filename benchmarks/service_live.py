"""A service whose models are asked: how many questions a second, and what ingesting does to the others.

    python benchmarks/service_live.py model     a model server that takes 200 ms, 64 in flight; the SDK alone beside it
    python benchmarks/service_live.py ingest    16 clients ask while documents come in; MiniLM embeds them (extra local)

Milliseconds unless it says otherwise. The clients are in this process, on the same two cores.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence

import aiohttp
from mock_server import running
from served import percentile, serving
from service_load import ROOT, Taken, line, of_server, questions

FREE = {"RAG_CHAT_API_KEY": "none"}
PAGES = 40


def model(in_flight: int = 64, asks: int = 3000) -> None:
    """Ask a service over a model server of 200 ms, and the model server by the SDK alone."""
    with running(0.2) as server:
        asyncio.run(_sdk(server.url, in_flight, in_flight * 2))  # connections are opened, code is warm
        alone = asyncio.run(_sdk(server.url, in_flight, asks))
        models = ["--profile", "mock", "--chat-model", "openai:mock", "--chat-base-url", server.url]
        flags = ["--experiment", "e2", *models, "--concurrency", str(in_flight)]
        with serving(*flags, environment={**FREE, "RAG_CONCURRENCY": str(in_flight)}, folder=ROOT) as served:
            texts = [f"How long can I return lamp {number}?" for number in range(asks)]
            asyncio.run(of_server(served.url, texts[: in_flight * 2], in_flight))
            before = served.cpu
            there = asyncio.run(of_server(served.url, texts, in_flight))
            cpu = (served.cpu - before) / asks * 1000
    for name, taken in (("the SDK alone", alone), ("the service", there)):
        print(f"{line(name, taken.whole)}  {len(taken.whole) / taken.seconds:.0f} a second, {taken.failed} failed")
    print(f"the service / the SDK alone: {alone.seconds / there.seconds:.2f}; its processor {cpu:.2f} ms a question")


async def _sdk(url: str, in_flight: int, asks: int) -> Taken:
    from openai import AsyncOpenAI
    from service_load import timed

    async with AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as sdk:

        async def ask(text: str) -> float:
            stream = await sdk.chat.completions.create(
                model="mock", messages=[{"role": "user", "content": text}], stream=True
            )
            return 0.0 if [chunk async for chunk in stream] else -1.0

        return await timed([f"question {number}" for number in range(asks)], in_flight, ask)


def ingest(clients: int = 16) -> None:
    """Ask the study's questions of r1 in mode auto, alone and while documents come in."""
    with serving("--experiment", "r1", "--mode", "auto", folder=ROOT) as served:
        asks = questions() * 5
        asyncio.run(of_server(served.url, questions(), clients))
        quiet = asyncio.run(of_server(served.url, asks, clients))
        busy, came = asyncio.run(_while_ingesting(served.url, asks, clients))
    print(f"{line('alone', quiet.whole)}  {quiet.failed} failed")
    print(f"{line('while ingesting', busy.whole)}  {busy.failed} failed, {came} documents came in")
    print(f"p95: {percentile(busy.whole, 0.95) / percentile(quiet.whole, 0.95):.2f} times")


async def _while_ingesting(url: str, asks: Sequence[str], clients: int) -> tuple[Taken, int]:
    asked = asyncio.ensure_future(of_server(url, asks, clients))
    came = 0
    async with aiohttp.ClientSession() as session:
        while not asked.done():
            form = aiohttp.FormData()
            form.add_field("file", _page(came), filename=f"page-{came}.md")
            async with session.post(f"{url}/ingest", data=form) as answered:
                assert answered.status in (200, 202), await answered.text()
            came += 1
    return await asked, came


def _page(number: int) -> bytes:
    sections = [f"## Part {n}\n\nDevice {number}-{n} weighs {n * 7 + 3} kg and runs {n + 2} hours.\n" for n in range(8)]
    return f"# Device {number}\n\n{''.join(sections)}".encode()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("model", "ingest"))
    if parser.parse_args().what == "model":
        model()
    else:
        ingest()
