"""Pages from a plan: written by templates or by a writer model."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from rag_harness.__main__ import CANNOT_RUN, main
from rag_harness.authoring.drafting import PATIENCE
from rag_harness.authoring.kb.embedded_planner import planned
from rag_harness.authoring.kb.page_grammar import compose
from rag_harness.authoring.kb.page_writing import (
    REMEMBERED,
    AskedWriter,
    EmbeddedWriter,
    Generated,
    Read,
    body_of,
    generate,
    label_of,
    page_in,
)
from rag_harness.authoring.kb.plan import Brief, PlanRequest, briefs, plan_text
from rag_harness.authoring.kb.validation import validate
from rag_harness.core.errors import BudgetError, ModelCallError
from rag_harness.core.types import Completion, Message, Usage
from rag_harness.frontends.cli import FOUND
from rag_harness.models.prompts import TRIES, Fault, load_prompts
from rag_harness.retrieval.chunking.markdown import body_start
from tests.plugin.counting_server import CountingServer, counting_server
from tests.unit.authoring.kb.small_plan import LABEL, PLAN, brief_of, plan_data, plan_of, write_plan

# Pages of a writer model: faults are named to it, at most three times; what it cannot mend is listed.

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


# A folder of pages from a plan: the same bytes for a seed, nothing written twice, nobody's own written over.


def run(at: Path, *more: str) -> int:
    return main(["kb", "generate", str(at / "structure.json"), "-o", str(at / "kb"), *more])


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.fixture
def at(tmp_path: Path) -> Path:
    """Return a folder with a plan, and the pages of it in ``kb``."""
    write_plan(tmp_path)
    assert run(tmp_path) == 0
    return tmp_path


def test_pages_and_a_copy_of_the_plan(at: Path) -> None:
    assert sorted(contents(at / "kb")) == [*NAMES, "structure.json"]
    assert (at / "kb" / "structure.json").read_bytes() == (at / "structure.json").read_bytes()


def test_the_same_seed_the_same_bytes_and_another_another_page(at: Path) -> None:
    first = contents(at / "kb")
    (at / "again").mkdir()
    write_plan(at / "again")
    assert run(at / "again") == 0
    assert contents(at / "again" / "kb") == first
    assert run(at, "--seed", "1") == 0
    assert all(contents(at / "kb")[name] != first[name] for name in NAMES)


def test_a_page_is_the_same_whatever_stands_before_it() -> None:
    data = plan_data()
    data["pages"].reverse()
    assert compose(brief_of("returns", plan_of(data)), 3) == compose(brief_of("returns"), 3)


def test_a_second_run_writes_nothing(at: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {file.name: file.stat().st_mtime_ns for file in (at / "kb").glob("*.md")}
    capsys.readouterr()
    assert run(at) == 0
    assert capsys.readouterr().out == f"wrote 0 of 3 pages to {at / 'kb'}; 3 were right already\n"
    assert {file.name: file.stat().st_mtime_ns for file in (at / "kb").glob("*.md")} == before


def test_where_the_plan_changed_only_its_pages_are_written_again(at: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = plan_data()
    data["pages"][0]["tables"][0]["rows"][1][1] = "€7.60"
    write_plan(at, data)
    capsys.readouterr()
    assert run(at) == 0
    assert "wrote 1 of 3 pages" in capsys.readouterr().out
    assert "€7.60" in (at / "kb" / "shipping.md").read_text()
    assert validate(at / "kb").ok


def test_a_page_that_is_linked_to_under_another_title_is_linked_anew(at: Path) -> None:
    data = plan_data()
    data["pages"][0]["title"] = "Shipping prices"
    write_plan(at, data)
    assert run(at) == 0
    assert "[Shipping prices](shipping.md)" in (at / "kb" / "returns.md").read_text()


def test_a_page_that_somebody_edited_is_kept_and_said(at: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = at / "kb" / "shipping.md"
    edited = file.read_text().replace("# Shipping rates", "# Shipping rates\n\nMind the ferry.")
    file.write_text(edited)
    assert run(at) == 0
    assert "kept, somebody has edited it: shipping.md" in capsys.readouterr().out
    data = plan_data()
    data["pages"][0]["effective_date"] = "2026-02-01"
    write_plan(at, data)
    assert run(at) == FOUND
    assert "edited, but planned or written otherwise since; --force writes it over: shipping.md" in (
        capsys.readouterr().out
    )
    assert file.read_text() == edited
    assert run(at, "--force") == 0
    assert "ferry" not in file.read_text()


def test_what_a_model_wrote_is_not_written_over_by_the_grammar(at: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = at / "kb" / "returns.md"
    page.write_text(paid := page.read_text().replace("generate, embedded", "generate, some-model"))
    assert run(at) == 0  # its plan is what it was
    edit_plan = plan_data()
    edit_plan["pages"][2]["effective_date"] = "2025-12-01"
    write_plan(at, edit_plan)
    capsys.readouterr()
    assert run(at) == FOUND
    assert "kept, a model wrote it; go on with --writer llm" in capsys.readouterr().out
    assert page.read_text() == paid
    assert run(at, "--force") == 0
    assert page.read_text() != paid


def test_halves_that_a_killed_run_left_are_removed_and_nothing_else(at: Path) -> None:
    kb = at / "kb"
    names = [".returns.md.ab12_x9z", ".structure.json.ab12_x9z", ".mine.md.original", ".returns.md.draft"]
    for name in names:
        (kb / name).write_text("x")
    assert run(at) == 0
    assert [name for name in names if (kb / name).exists()] == names[2:]


def test_ends_of_lines_are_no_edit(at: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = at / "kb" / "shipping.md"
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    capsys.readouterr()
    assert run(at) == 0
    assert "3 were right already" in capsys.readouterr().out


def test_a_page_that_is_planned_no_more_is_named_and_stays(at: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = plan_data()
    data["pages"].pop(0)
    data |= {"num_pages": 2, "rot": 1.0, "categories": ["returns"]}
    data["pages"][1]["links_to"] = ["returns-2024"]
    write_plan(at, data)
    assert run(at) == FOUND
    assert "not planned any more; remove it: shipping.md" in capsys.readouterr().out
    assert (at / "kb" / "shipping.md").is_file()


def _own_page(folder: Path) -> None:
    (folder / "mine.md").write_text("# Mine\n")


def _own_note(folder: Path) -> None:
    (folder / "notes.txt").write_text("mine")


def _own_plan(folder: Path) -> None:
    (folder / "structure.json").write_text('{"pages": []}')


def _own_planned(folder: Path) -> None:
    (folder / "shipping.md").write_text("# Shipping rates, by hand\n")


@pytest.mark.parametrize("put", [_own_page, _own_note, _own_plan, _own_planned])
def test_a_folder_that_holds_other_things_is_refused(
    put: Callable[[Path], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_plan(tmp_path)
    (tmp_path / "kb").mkdir()
    put(tmp_path / "kb")
    before = contents(tmp_path / "kb")
    assert run(tmp_path) == CANNOT_RUN
    said = capsys.readouterr().err
    assert "which `kb generate` did not write. Name an empty folder with -o, or say --force" in said
    assert contents(tmp_path / "kb") == before
    assert run(tmp_path, "--force") in (0, FOUND)
    assert set(NAMES) <= contents(tmp_path / "kb").keys()


def test_a_page_of_somebodys_own_among_generated_ones_is_refused(at: Path) -> None:
    _own_page(at / "kb")
    assert run(at) == CANNOT_RUN


def test_questions_and_hidden_files_beside_the_pages_are_no_reason_to_refuse(at: Path) -> None:
    (at / "kb" / "queries.jsonl").write_text("{}\n")
    (at / "kb" / ".returns.md.abcd1234").write_text("# Ret")
    assert run(at) == 0
    assert not (at / "kb" / ".returns.md.abcd1234").exists()


def test_the_plan_may_lie_in_the_folder_itself(tmp_path: Path) -> None:
    file = write_plan(tmp_path)
    assert main(["kb", "generate", str(file), "-o", str(tmp_path)]) == 0
    assert validate(tmp_path).ok


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "No plan "),
        ('{"pages": []}', "there is no page in it. Plan some."),
        ('{"pages": ', "invalid JSON"),
        ('{"pages": ' + "[" * 20_000, "too deep for a plan. Mend the file"),
        ('{"pages": [{"filename": "a\\ud800.md"}]}', "half a character"),
        ('{"pages": [{"filename": "../out.md"}]}', "leads out of the folder"),
        ('{"pages": [{"filename": "a.md"}, {"filename": "a.md"}]}', "2 pages have the filename 'a.md'"),
    ],
)
def test_a_plan_that_cannot_be_used(
    text: str | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if text is not None:
        (tmp_path / "structure.json").write_text(text)
    assert run(tmp_path) == CANNOT_RUN
    assert said in capsys.readouterr().err
    assert not (tmp_path / "kb").exists()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = write_plan(tmp_path)
    assert main(["kb", "generate", str(plan), "-o", str(plan / "kb")]) == CANNOT_RUN
    assert "kb cannot be written: Not a directory. Make room there, or name another" in capsys.readouterr().err


def test_who_stops_it_is_told_how_to_go_on(
    at: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("rag_harness.authoring.kb.page_writing.compose", stop)
    capsys.readouterr()
    assert run(at, "--seed", "7") == 130
    said = f"stopped; what was written is in {at / 'kb'}. The same command goes on from here\n"
    assert capsys.readouterr().err == said


def test_of_two_in_one_folder_the_second_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_plan(tmp_path)
    seen: list[int] = []

    class Meddling(EmbeddedWriter):
        async def write(self, brief: Brief, read: Read) -> str | Fault:
            seen.append(await asyncio.to_thread(run, tmp_path))
            return await super().write(brief, read)

    text = (tmp_path / "structure.json").read_bytes()
    asyncio.run(generate(plan_of(), text, tmp_path / "kb", Meddling(), 1, False))
    assert seen == [CANNOT_RUN] * len(NAMES)
    said = f"kb already: process {os.getpid()} on {platform.node()}. Wait until it is done, or name another folder"
    assert said in capsys.readouterr().err
    assert sorted(file.name for file in (tmp_path / "kb").iterdir()) == sorted([*NAMES, "structure.json"])
    assert run(tmp_path) == 0


def test_a_page_that_nothing_is_planned_for_needs_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = write_plan(tmp_path, {"pages": [{"filename": "a.md", "kind": "tabular"}]})
    assert main(["kb", "generate", str(plan), "-o", str(tmp_path / "kb")]) == FOUND
    assert "the plan has no facts, tables or steps for it" in capsys.readouterr().out


def test_a_label_says_who_wrote_it_and_is_left_out_by_chunkers(at: Path) -> None:
    text = (at / "kb" / "returns.md").read_text()
    label = label_of(text)
    assert label is not None
    assert (label.by, label.untouched) == ("embedded", True)
    assert text[body_start(text) :].lstrip("\n") == body_of(text)
    changed = label_of(text.replace("45", "46"))
    assert changed is not None
    assert not changed.untouched


def generated(pages: int, domain: str, folder: Path) -> Generated:
    plan = planned(PlanRequest(domain, pages, rot=0.4))
    return asyncio.run(generate(plan, plan_text(plan).encode(), folder, EmbeddedWriter(), 8, False))


@pytest.mark.parametrize(
    ("pages", "domain"),
    [
        (30, "retail support"),
        (30, "employee handbook"),
        (30, "device manuals"),
        pytest.param(100, "retail support", marks=pytest.mark.long),
    ],
)
def test_pages_of_a_shipped_domain_are_valid(
    pages: int, domain: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAG_MERMAID_MODULES", "/nowhere")
    made = generated(pages, domain, tmp_path / "kb")
    assert (len(made.written), made.faulty) == (pages, {})
    report = validate(tmp_path / "kb")
    assert [finding.line() for finding in report.findings if finding.level == "error"] == []
    states = {check.name: check.state for check in report.checks}
    assert {states[name] for name in ("planned facts", "versions agree", "version pairs", "rot")} == {"ok"}


def test_pages_do_not_look_stamped(tmp_path: Path) -> None:
    generated(40, "retail support", tmp_path / "kb")
    plan = json.loads((tmp_path / "kb" / "structure.json").read_text())
    assert len(plan["pages"]) == 40
    outlines = [
        tuple(line[0] for line in file.read_text().splitlines() if line and line[0] in "#|*->1")
        for file in (tmp_path / "kb").glob("*.md")
    ]
    assert len(set(outlines)) >= 34
