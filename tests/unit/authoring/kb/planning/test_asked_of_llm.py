"""Plans from a writer model: faults are named to it, at most three times; what it cannot mend is asked for anew."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from rag_harness.__main__ import CANNOT_RUN, INTERRUPTED, main
from rag_harness.authoring.drafting import PATIENCE
from rag_harness.authoring.kb.llm_planner import ROUNDS, Writer, page_id, titles_of
from rag_harness.authoring.kb.plan import Plan, PlanRequest, plan_text, read_plan
from rag_harness.authoring.kb.plan_checks import plan_faults
from rag_harness.core.errors import BudgetError, DataError, ModelCallError
from rag_harness.core.types import Completion, Message, Usage
from rag_harness.models.prompts import TRIES, Fault, load_prompts
from tests.plugin.counting_server import CountingServer, counting_server

Says = Callable[[str, int], "str | Exception | None"]
CATEGORIES = ["ships", "crews"]


def page_of(task: Mapping[str, Any]) -> dict[str, Any]:
    title = task["page"]["title"]
    facts = [
        {"kind": kind, "subject": f"part {n} of {title}", "value": f"{n} days", "statement": text}
        for n, kind in enumerate(("limit", "amount", "date", "condition"), 1)
        for text in [f"The part {n} of {title} is kept for {n} days."]
    ]
    older = {"fact": 2, "value": "9 days", "statement": f"The part 2 of {title} is kept for 9 days."}
    table = {"title": f"Parts of {title}", "columns": ["Part", "Days"], "rows": [["1", 2], ["2", 3]]}
    return {"facts": facts, "table": table, "steps": [f"Ask for {title}.", "Wait."], "older": older}


def told(content: str) -> Any:
    return json.JSONDecoder().raw_decode(content)[0]


class Model:
    """Plans well; ``says`` replaces its replies, and is told the kind of the task and how often it was asked."""

    model = "stub"

    def __init__(self, says: Says | None = None) -> None:
        self.asked: list[list[Message]] = []
        self._says = says or (lambda task, tries: None)

    async def complete(
        self, messages: Sequence[Message], response_format: Mapping[str, Any] | None = None
    ) -> Completion:
        assert response_format is None
        self.asked.append(list(messages))
        said = reply_to(list(messages), self._says)
        if isinstance(said, Exception):
            raise said
        return Completion(said, self.model, Usage(), 1.0)


def reply_to(messages: list[Message], says: Says) -> str | Exception:
    task, tries = messages[1].content, sum(message.role == "assistant" for message in messages)
    own = says(task, tries)
    if own is not None:
        return own
    if '"page"' in task:
        return json.dumps(page_of(told(task)))
    if found := re.search(r'Write (\d+) titles of pages in the category "(\w+)"', task):
        first = len(told(task.partition("There are already: ")[2])) if "already" in task else 0
        return json.dumps({"titles": [f"{found[2]} {first + n}" for n in range(int(found[1]))]})
    return json.dumps({"title": "Harbour guide", "categories": CATEGORIES})


def asked_for(model: Model, wanted: PlanRequest, at_once: int = 4) -> tuple[Plan, Counter[str]]:
    writer = Writer(model, load_prompts("plan_outline"), load_prompts("plan_page"), at_once)
    return asyncio.run(writer.plan(wanted))


HARBOUR = PlanRequest("a harbour in the north", 12, rot=0.3)


def test_a_plan_of_any_domain_is_sound() -> None:
    plan, dropped = asked_for(Model(), HARBOUR)
    assert list(plan_faults(plan)) == []
    assert not dropped
    assert (plan.title, plan.domain, plan.planned_by) == ("Harbour guide", "a harbour in the north", "stub")
    assert (len(plan.pages), len(plan.version_pairs or ())) == (12, 2)
    assert plan.categories == tuple(CATEGORIES)
    assert all(3 <= len(page.links_to or ()) <= 6 for page in plan.pages)
    assert {page.kind for page in plan.pages} == {"tabular", "logical", "mixed"}
    (conflict,) = (plan.version_pairs or ())[0].conflicts
    assert conflict.outdated_statement.endswith("9 days.")


def test_the_order_of_replies_decides_nothing() -> None:
    one, many = (plan_text(asked_for(Model(), HARBOUR, at_once)[0]) for at_once in (1, 32))
    assert one == many


def test_many_titles_are_asked_for_in_portions() -> None:
    model = Model()
    plan, _ = asked_for(model, PlanRequest("harbours", 90, rot=0))
    assert len({page.id for page in plan.pages}) == 90
    assert sum("titles of pages" in messages[1].content for messages in model.asked) == 2 * 3


def is_page(task: str) -> bool:
    return '"page"' in task


def changed(**said: Any) -> Says:
    return lambda task, tries: json.dumps({**page_of(told(task)), **said}) if is_page(task) and not tries else None


def facts_of(**said: Any) -> Says:
    def says(task: str, tries: int) -> str | None:
        if not is_page(task) or tries:
            return None
        page = page_of(told(task))
        return json.dumps({**page, "facts": [{**page["facts"][0], **said}, *page["facts"][1:]]})

    return says


def first(text: str) -> Says:
    return lambda task, tries: text if is_page(task) and not tries else None


ALL_OLD = PlanRequest("harbours", 4, rot=1, shares={"mixed": 1})


@pytest.mark.parametrize(
    ("says", "named"),
    [
        (first("Here is your page: it tells of ships."), "it is not the JSON object"),
        (first(""), "the reply is empty"),
        (first("x" * 1_000_000), "it is not the JSON object"),
        (first('{"question": "When?"}'), "it is not the JSON object"),
        (changed(facts=[]), "there are 0 facts; 4 to 10 are asked for"),
        (changed(table=None), "there is no table"),
        (changed(steps=[]), "there are no steps"),
        (changed(older=None), '"older" is missing'),
        (changed(older={"fact": 7, "value": "1", "statement": "1"}), '"older" names fact 7, there are 4'),
        (changed(older={"fact": 1, "value": "3 days", "statement": "Gone."}), '"older": fact 1: the value'),
        (
            changed(older={"fact": 1, "value": "1 days", "statement": "For 1 days the part 1 was kept."}),
            "\"older\" has the value that the page still has, '1 days'; give it another",
        ),
        (facts_of(value="4 years"), "fact 1: the value '4 years' is not in"),
        (facts_of(kind="mood"), "fact 1: kind 'mood' is unknown"),
        (facts_of(subject=" "), "subject: String should have at least 1 character"),
        (changed(table={"title": "T", "columns": ["A", "B"], "rows": [["1"]]}), "row 1 has 1 cells"),
        (changed(table={"title": "T", "columns": ["A"], "rows": []}), "columns"),
    ],
)
def test_a_fault_is_named_and_asked_again(says: Says, named: str) -> None:
    model = Model(says)
    plan, dropped = asked_for(model, ALL_OLD)
    assert list(plan_faults(plan)) == []
    assert not dropped
    again = [messages for messages in model.asked if len(messages) > 2]
    assert len(again) == 2
    assert all(named in messages[-1].content for messages in again)
    assert all(len(messages[-2].content) < 10_000 for messages in again)


def test_a_page_that_cannot_be_mended_is_replaced_by_another() -> None:
    model = Model(lambda task, tries: "prose" if '"ships 1"' in task and is_page(task) else None)
    plan, dropped = asked_for(model, HARBOUR)
    assert dropped.total() == 1
    assert len(plan.pages) == 12
    assert "Ships 1" not in {page.title for page in plan.pages}
    assert sum('"ships 1"' in messages[1].content and is_page(messages[1].content) for messages in model.asked) == TRIES


def test_the_same_page_a_hundred_times_is_taken_once() -> None:
    page = json.dumps(page_of({"page": {"title": "the quay"}}))
    model = Model(lambda task, tries: page if is_page(task) else None)
    with pytest.raises(DataError, match="The writer planned 1 of 5 pages") as raised:
        asked_for(model, PlanRequest("harbours", 5, rot=0))
    assert "it states what another page states" in str(raised.value)
    assert sum(is_page(messages[1].content) for messages in model.asked) == 5 + 4 * (ROUNDS - 1)


def test_the_same_title_a_hundred_times_is_taken_once() -> None:
    same = json.dumps({"titles": ["Quay"] * 100})
    model = Model(lambda task, tries: same if "titles of pages" in task else None)
    with pytest.raises(DataError, match="0 of 10 pages"):
        asked_for(model, PlanRequest("harbours", 10, rot=0))
    assert any("1 of 5 titles are new" in messages[-1].content for messages in model.asked)


def test_titles_that_cannot_be_files_or_end_with_a_year_are_not_taken() -> None:
    said = ["Quay", "quay", " ", "???", "x" * 121, "Rates 2023", "Rates (2023)", "Piers", 7]
    assert titles_of(json.dumps({"titles": said}), 5, {"piers"}) == Fault(
        "2 of 5 titles are new, of 1 to 120 characters, and end with no year. Write 5 that are"
    )
    assert titles_of(json.dumps({"titles": said}), 4, {"piers"}) == ["Quay", "7"]


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Rates & fees: how?", "rates--fees-how"),
        ("返品と交換", "返品と交換"),
        ("الإرجاع", "الإرجاع"),
        ("港" * 120, "港" * 66),
        ("../a", "a"),
        ("-", ""),
    ],
)
def test_an_id_is_what_a_file_can_be_called(title: str, name: str) -> None:
    assert page_id(title) == name


@pytest.mark.parametrize("reply", ["prose", '{"title": "", "categories": []}', '{"title": "T", "categories": [" "]}'])
def test_a_writer_without_an_outline_is_named(reply: str) -> None:
    model = Model(lambda task, tries: reply)
    with pytest.raises(DataError, match="the writer gave no outline"):
        asked_for(model, HARBOUR)
    assert len(model.asked) == TRIES


def test_a_spent_budget_says_how_far_it_came() -> None:
    model = Model(lambda task, tries: BudgetError("0.10 USD are spent") if len(model.asked) > 6 else None)
    with pytest.raises(BudgetError, match=r"3 of 10 pages are planned.*0.10 USD are spent"):
        asked_for(model, HARBOUR, at_once=1)


def test_a_server_that_is_gone_is_not_asked_for_every_page() -> None:
    model = Model(lambda task, tries: ModelCallError("connection refused") if is_page(task) else None)
    with pytest.raises(ModelCallError, match="connection refused"):
        asked_for(model, PlanRequest("harbours", 60), at_once=1)
    assert sum(is_page(messages[1].content) for messages in model.asked) == PATIENCE


@pytest.mark.parametrize(
    "wanted", [PlanRequest("harbours", 0), PlanRequest("harbours", 10_001), PlanRequest("harbours", 3, rot=3)]
)
def test_nobody_is_asked_for_what_cannot_be_planned(wanted: PlanRequest) -> None:
    model = Model()
    with pytest.raises(DataError):
        asked_for(model, wanted)
    assert model.asked == []


@pytest.fixture
def server() -> Iterator[CountingServer]:
    def reply(body: Any) -> str:
        said = reply_to([Message(each["role"], each["content"]) for each in body["messages"]], lambda *_: None)
        assert isinstance(said, str)
        return said

    with counting_server(delay=0.0, reply=reply) as running:
        yield running


def command(server: CountingServer, mode: str, *options: str) -> list[str]:
    writer = ["--writer", "llm", "--writer-model", "stub", "--writer-base-url", server.url, "--mode", mode]
    return ["kb", "plan", "--domain", "a harbour", "--pages", "12", "-o", "plan.json", "--force", *writer, *options]


def test_the_command_records_and_a_stopped_run_pays_for_nothing_twice(
    tmp_path: Path, server: CountingServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    answer, stop_at = server.reply, iter((4, 9, 14))
    stop = next(stop_at)

    def stopping(body: Any) -> str:
        nonlocal stop
        if server.calls.total() == stop:
            stop = next(stop_at, -1)
            os.kill(os.getpid(), signal.SIGINT)
        return answer(body)

    server.reply = stopping
    for _ in range(3):
        assert main(command(server, "record", "--concurrency", "1")) == INTERRUPTED
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err == (
            "stopped; no plan was written; a model's answers that were recorded are not asked for again\n"
        )
    assert not (tmp_path / "plan.json").exists()
    assert main(command(server, "record")) == 0
    assert sum(times > 1 for times in server.calls.values()) <= 3
    calls, plan = server.calls.total(), (tmp_path / "plan.json").read_bytes()
    assert main(command(server, "replay")) == 0
    assert (server.calls.total(), (tmp_path / "plan.json").read_bytes()) == (calls, plan)
    assert read_plan(tmp_path / "plan.json")[1] == []


def test_the_command_says_what_to_do_where_no_writer_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["kb", "plan", "--domain", "a harbour", "--writer", "llm"]) == CANNOT_RUN
    assert "Name one with --writer-model and --writer-base-url" in capsys.readouterr().err
