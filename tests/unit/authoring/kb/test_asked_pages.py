"""Pages of a writer model: faults are named to it, at most three times; what it cannot mend is listed."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from rag_harness.__main__ import CANNOT_RUN, main
from rag_harness.authoring.drafting import PATIENCE
from rag_harness.authoring.kb.page_grammar import compose
from rag_harness.authoring.kb.page_writing import REMEMBERED, AskedWriter, Generated, generate, page_in
from rag_harness.authoring.kb.plan import briefs
from rag_harness.authoring.kb.validation import validate
from rag_harness.core.errors import BudgetError, ModelCallError
from rag_harness.core.types import Completion, Message, Usage
from rag_harness.frontends.cli import FOUND
from rag_harness.models.prompts import TRIES, load_prompts
from tests.plugin.counting_server import CountingServer, counting_server
from tests.unit.authoring.kb.small_plan import LABEL, PLAN, plan_of, write_plan

NAMES = ["returns-2024.md", "returns.md", "shipping.md"]
GOOD = {brief.page.filename: compose(brief, 0).replace("**", "") for brief in briefs(plan_of())}


def asked_for(messages: Sequence[Mapping[str, str]]) -> str:
    """Return the page that a conversation asks for."""
    (name,) = re.findall(r'^ "filename": "([\w.-]+)"', messages[1]["content"], re.M)
    return str(name)


class Model:
    """Writes what is planned; ``says`` replaces that, given the page's name and how often it was asked before."""

    model = "stub"

    def __init__(self, says: Callable[[str, int], str | Exception] | None = None) -> None:
        self.asked: list[list[Message]] = []
        self._says = says

    async def complete(
        self, messages: Sequence[Message], response_format: Mapping[str, Any] | None = None
    ) -> Completion:
        self.asked.append(list(messages))
        name = asked_for([{"content": message.content} for message in messages])
        tries = sum(message.role == "assistant" for message in messages)
        said = GOOD[name] if self._says is None else self._says(name, tries)
        await asyncio.sleep(0)
        if isinstance(said, Exception):
            raise said
        return Completion(said, self.model, Usage(), 1.0)


def write(model: Model, folder: Path, at_once: int = 4, force: bool = False) -> Generated:
    writer = AskedWriter(model, load_prompts("pages"))
    return asyncio.run(generate(plan_of(), json.dumps(PLAN).encode(), folder, writer, at_once, force))


def test_what_is_right_is_written_and_says_who_wrote_it(tmp_path: Path) -> None:
    made = write(model := Model(), tmp_path / "kb")
    assert sorted(made.written) == NAMES
    assert len(model.asked) == 3
    assert all("kb generate, stub\n" in (tmp_path / "kb" / name).read_text() for name in NAMES)
    assert validate(tmp_path / "kb").ok


def test_the_prompt_has_all_that_is_planned(tmp_path: Path) -> None:
    write(model := Model(), tmp_path / "kb", at_once=1)
    prompts = "\n".join(messages[1].content for messages in model.asked)
    for page in PLAN["pages"]:
        assert all(fact["statement"] in prompts for fact in page["facts"])
    assert '"is": "newer version"' in prompts
    assert '"is": "older version"' in prompts


@pytest.mark.parametrize(
    ("first", "named"),
    [
        ("Here is the page that you asked for. Returns are easy!", "begins with 'Here is the page that you asked for."),
        ("", "the reply is empty"),
        (GOOD["shipping.md"], "the first heading of returns.md is 'Shipping rates', planned is 'Returns'."),
        ("x" * 1_000_000, "has 1,000,001 characters; at most 60,000 are taken"),
        (
            GOOD["returns.md"].replace("€3.50", "€3.5O"),
            f"fact r2: the page does not say {LABEL!r}. It says 'The return",
        ),
        (GOOD["returns.md"].replace("(shipping.md)", "(shiping.md)"), "returns.md has no link to shipping.md"),
        (GOOD["returns.md"].replace("45 days", "30 days"), "which belongs to its other version. Remove it."),
    ],
)
def test_a_fault_is_named_and_the_page_asked_for_again(first: str, named: str, tmp_path: Path) -> None:
    model = Model(lambda name, tries: first if name == "returns.md" and not tries else GOOD[name])
    made = write(model, tmp_path / "kb")
    assert sorted(made.written) == NAMES
    (again,) = [messages for messages in model.asked if len(messages) > 2]
    assert named in again[-1].content
    assert len(again[2].content) <= REMEMBERED


def test_after_three_tries_a_page_is_listed_and_the_others_are_written(tmp_path: Path) -> None:
    model = Model(lambda name, _: "No." if name == "returns.md" else GOOD[name])
    made = write(model, tmp_path / "kb")
    assert sorted(made.written) == ["returns-2024.md", "shipping.md"]
    assert "returns.md begins with 'No.'" in made.faulty["returns.md"]
    assert len(model.asked) == 2 + TRIES
    assert not (tmp_path / "kb" / "returns.md").exists()


def test_the_next_run_asks_only_for_what_is_missing(tmp_path: Path) -> None:
    write(Model(lambda name, _: "No." if name == "returns.md" else GOOD[name]), tmp_path / "kb")
    made = write(model := Model(), tmp_path / "kb")
    assert (made.written, made.kept, len(model.asked)) == (["returns.md"], 2, 1)


def test_the_same_page_for_every_page_is_taken_once(tmp_path: Path) -> None:
    same = GOOD["shipping.md"]
    made = write(Model(lambda *_: same), tmp_path / "kb")
    assert made.written == ["shipping.md"]
    assert sorted(made.faulty) == ["returns-2024.md", "returns.md"]


def test_where_no_facts_are_planned_a_page_written_twice_is_known_by_its_words(tmp_path: Path) -> None:
    pages = [{"filename": f"p{number}.md", "title": f"Page {number}"} for number in range(100)]
    plan = plan_of({"pages": pages})
    said = "## One\n\nThe same words on every page.\n"

    class Same(Model):
        async def complete(
            self, messages: Sequence[Message], response_format: Mapping[str, Any] | None = None
        ) -> Completion:
            self.asked.append(list(messages))
            number = re.findall(r'"title": "(Page \d+)"', messages[1].content)[0]
            return Completion(f"# {number}\n\n{said}", self.model, Usage(), 1.0)

    writer = AskedWriter(Same(), load_prompts("pages"))
    made = asyncio.run(generate(plan, b"{}", tmp_path / "kb", writer, 1, False))
    assert made.written == ["p0.md"]
    assert len(made.faulty) == 99
    assert "p1.md is word for word p0.md. Write what is planned for this page." in made.faulty["p1.md"]


def test_a_spent_budget_keeps_what_was_written_and_says_so(tmp_path: Path) -> None:
    spent = BudgetError("0.10 USD are spent")
    made = write(Model(lambda name, _: GOOD[name] if name == "shipping.md" else spent), tmp_path / "kb", at_once=1)
    assert made.written == ["shipping.md"]
    assert made.stopped == "0.10 USD are spent"


def test_a_server_that_is_gone_is_not_asked_for_every_page(tmp_path: Path) -> None:
    pages = [{"filename": f"p{number}.md", "title": f"Page {number}"} for number in range(30)]
    model = Model(lambda *_: ModelCallError("connection refused"))
    writer = AskedWriter(model, load_prompts("pages"))
    made = asyncio.run(generate(plan_of({"pages": pages}), b"{}", tmp_path / "kb", writer, 1, False))
    assert made.stopped == "the writer could not be asked: connection refused"
    assert len(model.asked) == PATIENCE


def test_a_server_that_goes_while_pages_are_written_is_not_asked_for_all_that_are_left(tmp_path: Path) -> None:
    pages = [{"filename": f"p{number}.md", "title": f"Page {number}"} for number in range(60)]
    gone = ModelCallError("connection refused")
    # The first call fails too: what was answered since then makes good for it.
    model = Model(lambda name, _: f"# Page {name[1]}\n\n## {name}\n\nText.\n" if name in ("p1.md", "p2.md") else gone)
    writer = AskedWriter(model, load_prompts("pages"))
    made = asyncio.run(generate(plan_of({"pages": pages}), b"{}", tmp_path / "kb", writer, 1, False))
    assert made.written == ["p1.md", "p2.md"]
    assert made.stopped == "the writer could not be asked: connection refused"
    assert len(model.asked) == 3 + PATIENCE


def test_the_order_of_replies_decides_nothing(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "many"]
    for folder, at_once in zip(folders, (1, 16), strict=True):
        write(Model(), folder, at_once)
    one, many = ({name: (folder / name).read_bytes() for name in NAMES} for folder in folders)
    assert one == many


@pytest.mark.parametrize(
    "reply",
    [
        "# A\n\nText.",
        "```markdown\n# A\n\nText.\n```",
        "<think># B</think>\n\n# A\n\nText.\n",
        "~~~md\n# A\n\nText.\n~~~",
    ],
)
def test_a_fence_and_a_thought_are_no_part_of_a_page(reply: str) -> None:
    assert page_in(reply) == "# A\n\nText.\n"


def test_a_fence_within_a_page_stays() -> None:
    page = "# A\n\n```mermaid\nflowchart TD\n```\n"
    assert page_in(page) == page


@pytest.fixture
def server() -> Iterator[CountingServer]:
    with counting_server(delay=0.0, reply=lambda body: GOOD[asked_for(body["messages"])]) as running:
        yield running


def test_the_command_records_and_asks_nobody_twice(
    tmp_path: Path, server: CountingServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_plan(tmp_path)
    monkeypatch.chdir(tmp_path)
    asking = ["kb", "generate", "structure.json", "--writer", "llm", "--writer-model", "stub"]
    model = ["--writer-base-url", server.url, "--mode"]
    assert main([*asking, *model, "record", "-o", "one"]) == 0
    assert server.calls.total() == 3
    assert main([*asking, *model, "replay", "-o", "two"]) == 0
    assert main([*asking, *model, "record", "-o", "one"]) == 0
    assert server.calls.total() == 3
    assert all((tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes() for name in NAMES)
    server.reply = lambda _: "No."
    capsys.readouterr()
    assert main([*asking[:-1], "other", *model, "record", "-o", "three"]) == FOUND
    said = capsys.readouterr().out
    assert "wrote 0 of 3 pages to three" in said
    assert "not written: returns.md:\n- returns.md begins with 'No.'. Begin with '# Returns'." in said


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([], "--writer llm asks a chat model"),
        (["--writer-model", "stub", "--writer-base-url", "http://127.0.0.1:9/v1"], "--rag-mode=record"),
    ],
)
def test_the_command_says_what_to_do_where_nobody_may_be_asked(
    more: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_plan(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["kb", "generate", "structure.json", "-o", "kb", "--writer", "llm", *more]) == CANNOT_RUN
    assert said in capsys.readouterr().err
