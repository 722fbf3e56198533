"""Plans without a model: of each shipped domain, of any size, the same for a seed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from rag_harness.__main__ import CANNOT_RUN, main
from rag_harness.authoring.kb.embedded_planner import deal, domain_names, drafted_page, planned, read_domain
from rag_harness.authoring.kb.plan import (
    FACT_KINDS,
    MOST_PAGES,
    PAGE_KINDS,
    Plan,
    PlanPage,
    PlanRequest,
    plan_text,
    read_plan,
)
from rag_harness.authoring.kb.plan_checks import plan_faults
from rag_harness.core.errors import DataError
from rag_harness.core.text.contradictions import contradictions

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
    assert "rot is 0.2: 0.1 of 10 pages is no whole number of pairs" in capsys.readouterr().out


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
