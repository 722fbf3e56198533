"""Plans of a knowledge base: made without a model, and checked against themselves."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from rag_harness.__main__ import CANNOT_RUN, main
from rag_harness.authoring.kb.embedded_planner import deal, domain_names, drafted_page, filled, planned, read_domain
from rag_harness.authoring.kb.plan import (
    FACT_KINDS,
    MOST_PAGES,
    PAGE_KINDS,
    PLAN_FILE,
    Plan,
    PlannedFact,
    PlannedTable,
    PlanPage,
    PlanRequest,
    VersionPair,
    plan_text,
    read_plan,
)
from rag_harness.authoring.kb.plan_checks import SHOWN_FAULTS, check_plan, pairing_faults, plan_faults
from rag_harness.authoring.kb.validation import validate
from rag_harness.core.errors import DataError
from rag_harness.core.text.contradictions import contradictions
from tests.unit.authoring.kb.planning.plans import NEW, OLD, OTHER, PAIR, fact
from tests.unit.authoring.kb.planning.plans import page as page_of
from tests.unit.authoring.kb.planning.plans import plan as plan_of

# Plans without a model: of each shipped domain, of any size, the same for a seed.

# Plans without a model: of each shipped domain, of any size, the same for a seed.

DOMAINS = ("device manuals", "employee handbook", "retail support")


@pytest.fixture(scope="module", params=DOMAINS)
def plan(request: pytest.FixtureRequest) -> Plan:
    return planned(PlanRequest(request.param, 100))


def test_three_domains_are_shipped() -> None:
    assert tuple(domain_names()) == DOMAINS


def test_a_plan_of_a_hundred_pages_is_sound(plan: Plan) -> None:
    assert list(plan_faults(plan)) == []
    assert len(plan.pages) == plan.num_pages == 100
    assert len({page.title for page in plan.pages}) == 100
    assert len(plan.version_pairs or ()) == 5
    assert plan.rot == 0.1


def test_each_page_has_facts_of_its_own_and_what_its_kind_needs(plan: Plan) -> None:
    statements = Counter(fact.statement for page in plan.pages for fact in page.facts or ())
    doubled = {text for text, times in statements.items() if times > 1}
    pairs = {name for pair in plan.version_pairs or () for name in (pair.outdated, pair.current)}
    for page in plan.pages:
        assert 4 <= len(page.facts or ()) <= 10
        assert bool(page.tables) == (page.kind in ("tabular", "mixed"))
        assert bool(page.steps) == (page.kind in ("logical", "mixed"))
        assert page.id in pairs or not doubled & {fact.statement for fact in page.facts or ()}


def test_pages_link_to_three_or_more_and_nobody_is_alone(plan: Plan) -> None:
    links = {page.id: set(page.links_to or ()) for page in plan.pages}
    assert all(3 <= len(goals) <= 6 for goals in links.values())
    assert set().union(*links.values()) == set(links)
    assert _reached(links, plan.pages[0].id) == set(links)


def _reached(links: dict[str, set[str]], start: str) -> set[str]:
    found, todo = {start}, [start]
    while todo:
        new = links[todo.pop()] - found
        found |= new
        todo += new
    return found


def test_kinds_and_facts_are_of_all_sorts(plan: Plan) -> None:
    kinds = Counter(page.kind for page in plan.pages)
    assert set(kinds) == set(PAGE_KINDS)
    assert 35 <= kinds["logical"] <= 45
    facts = Counter(fact.kind for page in plan.pages for fact in page.facts or ())
    assert all(facts[kind] > 10 for kind in FACT_KINDS)
    assert 5 <= sum(bool(page.mermaid) for page in plan.pages) <= 50


def test_a_pair_conflicts_in_one_fact_of_which_both_say_what_it_is(plan: Plan) -> None:
    for pair in plan.version_pairs or ():
        old, new = plan.page(pair.outdated), plan.page(pair.current)
        assert old is not None
        assert new is not None
        differing = [one.id for one, other in zip(old.facts or (), new.facts or (), strict=True) if one != other]
        assert [conflict.fact for conflict in pair.conflicts] == differing
        assert len(differing) == 1
        assert old.id in (new.links_to or ())


@pytest.mark.parametrize("name", DOMAINS)
def test_every_topic_can_be_told_and_every_fact_can_change(name: str) -> None:
    domain = read_domain(name)
    told = set()
    for dealt in deal(domain, 400, seed=1):
        draft = drafted_page(dealt, "mixed", seed=1, versions=True)
        told.add(dealt.topic.title)
        texts = [draft.title, *draft.steps, *(cell for table in draft.tables for row in table.rows for cell in row)]
        texts += [fact.statement for fact in draft.facts]
        assert not [text for text in texts if set(text) & set("{}[]<>|") or "  " in text or not text.strip()]
        assert all(fact.statement[0].isupper() and fact.statement.endswith(".") for fact in draft.facts)
        assert draft.older not in draft.facts
    assert told == {topic.title for topic in domain.topics}


@pytest.mark.parametrize("name", DOMAINS)
def test_a_domain_bears_as_many_pages_as_may_be_asked_for(name: str) -> None:
    topics = read_domain(name).topics
    pages = deal(read_domain(name), MOST_PAGES, seed=0)
    assert len({(each.topic.title, each.names["thing"]) for each in pages}) == MOST_PAGES
    assert len({each.names["thing"] for each in pages[:200]}) > 50
    assert {each.topic.title for each in pages[: len(topics)]} == {topic.title for topic in topics}


def test_the_same_seed_gives_the_same_bytes_and_another_seed_does_not() -> None:
    one, again, other = (plan_text(planned(PlanRequest("retail support", 30, seed=seed))) for seed in (1, 1, 2))
    assert one == again
    assert one != other


def test_a_page_does_not_change_with_the_number_of_pages() -> None:
    few, many = (planned(PlanRequest("retail support", count, rot=0, shares={"mixed": 1})) for count in (20, 60))
    assert [page.facts for page in few.pages] == [page.facts for page in many.pages[:20]]


def test_the_text_is_read_back_as_it_was_and_has_a_fact_a_line() -> None:
    plan = planned(PlanRequest("device manuals", 12))
    text = plan_text(plan)
    assert Plan.model_validate_json(text) == plan
    lines = [line for line in text.splitlines() if '"statement"' in line]
    assert len(lines) == sum(len(page.facts or ()) for page in plan.pages)


@pytest.mark.parametrize(
    ("wanted", "pairs", "rot"),
    [(PlanRequest("retail support", 10), 1, 0.2), (PlanRequest("retail support", 10, rot=0), 0, 0.0),
     (PlanRequest("retail support", 11, rot=1), 5, 0.9091), (PlanRequest("retail support", 40, rot=0.3), 6, 0.3)],
)  # fmt: skip
def test_rot_comes_as_near_as_whole_pairs_allow(wanted: PlanRequest, pairs: int, rot: float) -> None:
    plan = planned(wanted)
    assert len(plan.version_pairs or ()) == pairs
    assert len(plan.pages) == wanted.pages
    assert plan.rot == rot


def test_shares_are_kept() -> None:
    plan = planned(PlanRequest("retail support", 40, rot=0, shares={"tabular": 0.25, "logical": 0.75}))
    assert Counter(page.kind for page in plan.pages) == {"tabular": 10, "logical": 30}


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (PlanRequest("retail support", 0), "0 pages are asked for; a plan has 10 to 10,000"),
        (PlanRequest("retail support", 9), "9 pages are asked for"),
        (PlanRequest("retail support", 10_001), "10001 pages are asked for"),
        (PlanRequest("retail support", 10, rot=1.2), "rot is 1.2"),
        (PlanRequest("retail support", 10, rot=-0.1), "rot is -0.1"),
        (PlanRequest("retail support", 10, rot=float("nan")), "rot is nan"),
        (PlanRequest("retail support", 10, shares={"mixed": 0.5}), "sum to 0.5, not to 1"),
        (PlanRequest("retail support", 10, shares={"mixed": 2, "logical": -1}), "shares of kinds are 0 to 1 each"),
        (PlanRequest("retail support", 10, shares={"poem": 1}), "kind 'poem' is unknown"),
        (PlanRequest("  ", 10), "the domain is empty"),
        (PlanRequest("fishing", 10), "No domain 'fishing' is shipped; there are 'device manuals', 'employee handbook'"),
    ],
)
def test_what_cannot_be_planned_is_told(wanted: PlanRequest, told: str) -> None:
    with pytest.raises(DataError) as raised:
        planned(wanted)
    assert told in str(raised.value)


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(DataError) as raised:
        planned(PlanRequest("", 3, rot=2, shares={"mixed": 0.5}))
    assert len(str(raised.value).splitlines()) == 4


@pytest.mark.parametrize("name", DOMAINS)
def test_what_is_told_of_different_things_does_not_contradict(name: str) -> None:
    plan = planned(PlanRequest(name, 80, rot=0, shares={"mixed": 1}))
    by_thing = {(page.tables or ())[0].rows[0][0].partition("(")[2]: page for page in plan.pages}
    assert len(by_thing) > 20
    assert contradictions([_text(page) for page in by_thing.values()]) == []


def _text(page: PlanPage) -> str:
    (table,) = page.tables or ()
    rows = [table.columns, ["---"] * len(table.columns), *table.rows]
    statements = [fact.statement for fact in page.facts or ()]
    return "\n\n".join([*statements, "\n".join(f"| {' | '.join(row)} |" for row in rows)])


# ``rag-harness kb plan``.


def run(file: Path, *options: str) -> int:
    return main(["kb", "plan", "--domain", "Retail-Support", "-o", str(file), *options])


def test_it_writes_a_plan_and_says_what_is_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "structure.json"
    assert run(file, "--pages", "20") == 0
    plan, problems = read_plan(file)
    assert problems == []
    assert plan is not None
    assert (plan.domain, plan.planned_by, plan.seed) == ("retail support", "embedded", 0)
    facts = sum(len(page.facts or ()) for page in plan.pages)
    kinds = Counter(page.kind for page in plan.pages)
    told = ", ".join(f"{kinds[kind]} {kind}" for kind in ("tabular", "logical", "mixed"))
    assert capsys.readouterr().out == f"wrote {file}: 20 pages ({told}), {facts} facts, 1 version pair\n"


def test_it_says_where_rot_is_no_whole_number_of_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path / "plan.json", "--pages", "10")
    assert "rot is 0.2: 0.1 of 10 pages is not a whole number of pairs" in capsys.readouterr().out


def test_a_plan_that_is_there_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "plan.json"
    file.write_text("mine")
    assert run(file, "--pages", "10") == CANNOT_RUN
    assert "--force" in capsys.readouterr().err
    assert file.read_text() == "mine"
    assert run(file, "--pages", "10", "--force") == 0
    assert json.loads(file.read_text())["num_pages"] == 10


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--pages", "3"), "3 pages are asked for"),
        (("--rot", "7"), "rot is 7"),
        (("--kinds", "mixed"), "--kinds is 'mixed'. Write it as"),
        (("--kinds", "mixed=0.4,logical=0.4"), "sum to 0.8"),
        (("--domain", "fishing"), "--writer llm"),
        (("-o", "."), "is a folder"),
        (("-o", "nowhere/plan.json"), "No folder nowhere"),
        (("-o", "x" * 300), "cannot be written: File name too long. Make room there, or name another place"),
    ],
)
def test_what_cannot_be_done_is_told_with_the_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, str], told: str
) -> None:
    assert run(tmp_path / "plan.json", *options) == CANNOT_RUN
    assert told in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


# Each way in which a plan can contradict itself is named, with its page and what to do.


def changed(whole: PlanPage, **said: Any) -> PlanPage:
    return PlanPage.model_validate({**whole.model_dump(), **said})


def wrong(**said: Any) -> PlannedFact:
    return PlannedFact.model_validate({**fact(3).model_dump(), **said})


RAGGED = PlannedTable(title="Prices", columns=("Zone", "Price"), rows=(("1", "€3"), ("2",)))

CASES: dict[str, tuple[Plan, str]] = {
    "no page": (Plan(pages=()), "there is no page in it"),
    "count": (plan_of(num_pages=4), "num_pages is 4, but 3 pages are planned"),
    "rot": (plan_of(rot=1.5), "rot is 1.5; it is a share of pages"),
    "pairs": (plan_of(version_pairs=(PAIR,) * 5), "5 version pairs need 10 pages; 3 are planned"),
    "kind": (plan_of(OLD, NEW, changed(OTHER, kind="poem")), "gifts: kind 'poem' is unknown"),
    "no table": (plan_of(OLD, NEW, changed(OTHER, kind="tabular", tables=())), "gifts: its kind is tabular"),
    "no steps": (plan_of(OLD, NEW, changed(OTHER, kind="logical", steps=())), "gifts: its kind is logical"),
    "neither": (plan_of(OLD, NEW, changed(OTHER, tables=(), steps=())), "gifts: its kind is mixed"),
    "diagram": (plan_of(OLD, NEW, changed(OTHER, steps=(), mermaid=True)), "gifts: mermaid is true"),
    "empty step": (plan_of(OLD, NEW, changed(OTHER, steps=(" ",))), "gifts: step 1: it is empty"),
    "step of lines": (
        plan_of(OLD, NEW, changed(OTHER, steps=("Go.\nStop.",))),
        "step 1: 'Go.\\nStop.' is not a single line",
    ),
    "numbered step": (plan_of(OLD, NEW, changed(OTHER, steps=("1. Go.",))), "gifts: step 1: it begins with '1. '"),
    "heading for a fact": (
        plan_of(OLD, NEW, changed(OTHER, facts=(wrong(statement="# Parcel 3 costs €4.90."),))),
        "fact f3: the statement begins with '# '",
    ),
    "fact kind": (plan_of(OLD, NEW, changed(OTHER, facts=(wrong(kind="mood"),))), "fact f3: kind 'mood' is unknown"),
    "value": (plan_of(OLD, NEW, changed(OTHER, facts=(wrong(value="€9"),))), "fact f3: the value '€9' is not in"),
    "subject": (
        plan_of(OLD, NEW, changed(OTHER, facts=(wrong(subject="Box"),))),
        "fact f3: the subject 'Box' is not",
    ),
    "lines": (
        plan_of(OLD, NEW, changed(OTHER, facts=(wrong(statement="Parcel 3 costs\n€4.90."),))),
        "fact f3: the statement is not a single line",
    ),
    "fact twice": (
        plan_of(OLD, NEW, changed(OTHER, facts=(fact(1),))),
        "gifts: fact f1 stands on rates-2023 already",
    ),
    "fact twice on a page": (
        plan_of(OLD, NEW, changed(OTHER, facts=(fact(3), fact(3)))),
        "gifts: fact f3 stands on",
    ),
    "id": (plan_of(OLD, NEW, changed(OTHER, id="rates")), "2 pages have the id 'rates'"),
    "filename": (plan_of(OLD, NEW, changed(OTHER, filename="RATES.md")), "2 pages have the filename 'rates.md'"),
    "title": (plan_of(OLD, NEW, changed(OTHER, title="Rates")), "2 pages have the title 'Rates'"),
    "leaves": (plan_of(OLD, NEW, changed(OTHER, filename="../a.md")), "'../a.md' leads out of the folder"),
    "no markdown": (plan_of(OLD, NEW, changed(OTHER, filename="gifts.txt")), "'gifts.txt' is not a Markdown file"),
    "no file": (
        plan_of(OLD, NEW, changed(OTHER, filename="a\0.md")),
        "'a\\x00.md' has '\\x00', which files and links",
    ),
    "no link": (plan_of(OLD, NEW, changed(OTHER, filename="c#.md")), "'c#.md' has '#', which files and links"),
    "roundabout": (plan_of(OLD, NEW, changed(OTHER, filename="./a.md")), "'./a.md' is another way to write 'a.md'"),
    "hidden": (plan_of(OLD, NEW, changed(OTHER, filename=".x/a.md")), "'.x/a.md' is hidden"),
    "long": (plan_of(OLD, NEW, changed(OTHER, filename="ü" * 120 + ".md")), "is too long: 240 bytes are the most"),
    "below a page": (
        plan_of(OLD, NEW, changed(OTHER, filename="rates.md/a.md")),
        "stands below 'rates.md', which is a",
    ),
    "title of lines": (plan_of(OLD, NEW, changed(OTHER, title="A\nB")), "the title 'A\\nB' is not a single line"),
    "no title": (plan_of(OLD, NEW, changed(OTHER, title="")), "the title '' is not a single line"),
    "link": (plan_of(OLD, NEW, changed(OTHER, links_to=("nowhere",))), "gifts: links_to names 'nowhere'"),
    "own link": (plan_of(OLD, NEW, changed(OTHER, links_to=("gifts",))), "gifts: links_to names the page itself"),
    "row": (plan_of(OLD, NEW, changed(OTHER, tables=(RAGGED,))), "table 'Prices': row 2 has 1 cells, its header 2"),
    "equal": (plan_of(changed(OLD, facts=NEW.facts), NEW, OTHER), "conflict 'f1' says 'Parcel 1 costs €3.90"),
    "unplanned": (
        plan_of(changed(OLD, facts=(fact(1, "€3.90"), fact(2, "€7"))), NEW, OTHER),
        "rates: fact f2 differs from that of rates-2023",
    ),
    "not of both": (
        plan_of(changed(OLD, facts=(fact(2),)), NEW, OTHER),
        "conflict 'f1' with rates-2023 is not a fact of",
    ),
    "tables": (plan_of(changed(OLD, tables=()), NEW, OTHER), "rates: its tables differ from those of rates-2023"),
    "steps": (plan_of(changed(OLD, steps=("Go.",)), NEW, OTHER), "rates: its steps differ from those of rates-2023"),
    "no conflict": (
        plan_of(version_pairs=(VersionPair(outdated="rates-2023", current="rates"),)),
        "its pair with rates-2023 lists no conflict",
    ),
    "same page": (
        plan_of(version_pairs=(PAIR.model_copy(update={"outdated": "rates"}),)),
        "rates: is in a version pair with itself",
    ),
    "same page, once by its file": (
        plan_of(version_pairs=(PAIR.model_copy(update={"outdated": "rates.md"}),)),
        "rates: is in a version pair with itself",
    ),
    "unknown pair": (
        plan_of(version_pairs=(PAIR.model_copy(update={"outdated": "gone"}),)),
        "a version pair names 'gone'",
    ),
    "two pairs": (
        plan_of(version_pairs=(PAIR, PAIR.model_copy(update={"outdated": "gifts"}))),
        "rates: is in 2 version pairs",
    ),
    "no pair": (plan_of(version_pairs=()), "rates-2023: is outdated, but is in no version pair"),
    "status": (plan_of(changed(OLD, status="current"), NEW, OTHER), "whose status is 'current'"),
    "own status": (plan_of(OLD, changed(NEW, status="outdated"), OTHER), "its own status is 'outdated'"),
    "supersedes": (
        plan_of(OLD, changed(NEW, supersedes="gifts"), OTHER),
        "supersedes 'gifts', its version pair says",
    ),
    "older": (plan_of(changed(OLD, version="10"), changed(NEW, version="9"), OTHER), "its version is '9', that of"),
    "dates": (
        plan_of(changed(OLD, effective_date="2025-01-02"), changed(NEW, effective_date="2024-05-01"), OTHER),
        "its effective_date is '2024-05-01'",
    ),
    "circle": (
        plan_of(changed(OLD, supersedes="rates"), NEW, OTHER),
        "rates-2023: supersedes itself: rates-2023 supersedes rates supersedes rates-2023",
    ),
    "itself": (
        plan_of(OLD, NEW, changed(OTHER, supersedes="gifts")),
        "gifts: supersedes itself: gifts supersedes gifts",
    ),
}


def test_a_sound_plan_has_no_fault() -> None:
    assert list(plan_faults(plan_of())) == []


def test_a_pair_counts_once_where_ids_are_filenames() -> None:
    old, new = changed(OLD, id="rates-2023.md"), changed(NEW, id="rates.md", supersedes="rates-2023.md")
    pair = PAIR.model_copy(update={"outdated": "rates-2023.md", "current": "rates.md"})
    assert list(pairing_faults(plan_of(old, new, OTHER, version_pairs=(pair,)))) == []


def test_a_page_is_counted_by_its_id_and_by_its_file() -> None:
    again = PAIR.model_copy(update={"current": "gifts", "outdated": "rates-2023.md"})
    faults = list(pairing_faults(plan_of(version_pairs=(PAIR, again))))
    assert faults == [(OLD, "is in 2 version pairs. Keep one.")]


@pytest.mark.parametrize("name", CASES)
def test_a_fault_is_named_with_its_page(name: str) -> None:
    broken, told = CASES[name]
    with pytest.raises(DataError) as raised:
        check_plan(broken)
    assert told in str(raised.value)


def test_all_faults_are_told_up_to_a_number_and_the_rest_is_counted() -> None:
    pages = [page_of(f"page{number}", "nowhere") for number in range(SHOWN_FAULTS + 5)]
    with pytest.raises(DataError) as raised:
        check_plan(Plan(pages=tuple(pages)))
    lines = str(raised.value).splitlines()
    assert len(lines) == SHOWN_FAULTS + 2
    assert lines[-1] == "… and 5 more."


def test_a_long_chain_of_versions_is_walked_once() -> None:
    pages = [page_of(f"page{n}", "page0", supersedes=f"page{n + 1}") for n in range(1, 2000)]
    faults = plan_faults(Plan(pages=(page_of("page0", "page1"), *pages, page_of("page2000", "page0"))))
    assert not any("supersedes itself" in fault.text for fault in faults)


# Gaps in sentences.


def drawn(text: str, **names: str) -> set[str]:
    return {filled(text, names, Random(seed)) for seed in range(60)}


@pytest.mark.parametrize(
    ("text", "drawn_of_it"),
    [
        ("The {thing}.", {"The kettle."}),
        ("{a|b|}", {"a", "b", ""}),
        ("{the {thing}|it}", {"the kettle", "it"}),
        ("{10..20:5} %", {"10 %", "15 %", "20 %"}),
        ("€{1..2:0.50}", {"€1.00", "€1.50", "€2.00"}),
        ("€{0.5..0.7:0.1}", {"€0.5", "€0.6", "€0.7"}),
        ("{2000..2001:1}", {"2,000", "2,001"}),
        ("{1..2:1} working days", {"1 working day", "2 working days"}),
        ("{0.1..0.2:0.1} litres, {11..12:1} days", {f"0.{n} litres, {m} days" for n in (1, 2) for m in (11, 12)}),
    ],
)
def test_what_a_gap_gives(text: str, drawn_of_it: set[str]) -> None:
    assert drawn(text, thing="kettle") == drawn_of_it


def test_a_date_is_one_and_of_its_years() -> None:
    days = drawn("{date:2025..2026}")
    assert len(days) > 30
    assert {day.split()[-1] for day in days} == {"2025", "2026"}


def test_a_gap_that_nobody_fills_is_an_error() -> None:
    with pytest.raises(KeyError, match="colour"):
        filled("The {colour} kettle", {}, Random(0))


# ``kb validate`` names what the plan of a knowledge base says against itself, with its line.


def told(folder: Path, broken: Plan) -> list[str]:
    (folder / PLAN_FILE).write_text(plan_text(broken), encoding="utf-8")
    (folder / "rates.md").write_text("# Rates\n\nParcel 1 costs €4.90 per order.\n", encoding="utf-8")
    report = validate(folder)
    return [f"{finding.where} {finding.message}" for check in report.checks for finding in check.findings]


@pytest.mark.parametrize(
    ("broken", "named"),
    [
        (plan_of(OLD.model_copy(update={"supersedes": "rates"}), NEW, OTHER), "rates-2023: supersedes itself: "),
        (
            plan_of(OLD.model_copy(update={"facts": (fact(1, "€3.90"), fact(2, "€7"))}), NEW, OTHER),
            "rates: fact f2 dif",
        ),
        (
            plan_of(OLD, NEW, OTHER.model_copy(update={"facts": (fact(1),)})),
            "gifts: fact f1 stands on rates-2023 already",
        ),
    ],
)
def test_a_fault_of_the_plan_is_named_with_its_line(tmp_path: Path, broken: Plan, named: str) -> None:
    (found,) = [each for each in told(tmp_path, broken) if named in each]
    line = int(found.split()[0].rpartition(":")[2])
    assert named.split(":", maxsplit=1)[0] in (tmp_path / PLAN_FILE).read_text(encoding="utf-8").splitlines()[line - 1]
