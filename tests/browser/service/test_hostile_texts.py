"""Texts of strangers stay texts: nothing of them runs, leads away, turns its neighbours round, or chokes the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.hostile import ALL, LONG, UNBROKEN
from tests.browser.service.asking import asked, text_of
from tests.browser.service.conftest import Visit
from tests.browser.service.near import Near
from tests.browser.service.stub import Refusal, Stub, answered, citation, document, events
from tests.browser.service.test_add import added

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page


EVIL = ALL.replace("\x00", "").replace(": ", ":")
SHOWN = EVIL.replace("\x1b", r"\u001b").replace("\x7f", r"\u007f").replace("\u202e", r"\u202e")
"""As a page shows it: what would turn it, or is no sign, is written out."""
_LOOSE = """() => {
    // Texts with an override whose element does not keep it to itself.
    const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT), found = []
    for (let node = walker.nextNode(); node; node = walker.nextNode())
        if (node.data.includes('\\u202e') && !node.parentElement.closest('bdi, [dir=auto]')) found.push(node.data)
    return found
}"""
_HANDLERS = "all => all.filter(it => [...it.attributes].some(one => one.name.startsWith('on'))).length"


@pytest.fixture
def evil(stub: Stub) -> Stub:
    """A stub that is hostile wherever a text goes."""
    text = f"{EVIL} [Source 1]"
    source = {"source": 1, "document": EVIL, "section": EVIL, "score": 0.5, "text": EVIL}
    cited = [citation(text, EVIL, 1, EVIL[:40], url="javascript:alert(1)")]
    done = answered(answer=text, citations=cited, reasons=[f"UNGROUNDED_CLAIM: {EVIL}", EVIL], decision="warn")
    stub.says = [("retrieval", {"sources": [source]}), ("token", {"text": f"not {EVIL}"}), *events(done)[1:]]
    stub.documents = [document(EVIL, status="failed", why=EVIL), document(f"{EVIL} 2")]
    stub.experiment = EVIL
    return stub


def everywhere(page: Page) -> Locator:
    """Come to each text of a stranger."""
    answer = asked(page, EVIL)
    answer.get_by_role("button", name="Source 1").click()
    added(page, f"{EVIL.replace('/', '')}.md").locator(".good").wait_for()
    page.locator("[data-document]").nth(2).wait_for()
    page.evaluate("document.querySelectorAll('details').forEach(it => { it.open = true })")
    return answer


def test_nothing_of_it_runs_or_leads_away(visit: Visit, evil: Stub) -> None:
    page = visit()
    answer = everywhere(page)
    assert page.locator("main :is(img, iframe, object, script, style, link, base, meta)").count() == 0
    links = page.locator("a:not(.skip)").evaluate_all("all => all.map(it => it.getAttribute('href')[0])")
    assert links == ["#"], "javascript: is not an address that a link may have"
    assert page.locator("*").evaluate_all(_HANDLERS) == 0
    assert text_of(answer) == f"{SHOWN} [Source 1]", "it is shown as the text that it is"
    assert SHOWN in (answer.locator("del").text_content() or "")


def test_directions_do_not_reach_over_their_neighbours(visit: Visit, evil: Stub) -> None:
    page = visit()
    everywhere(page)
    assert page.evaluate(_LOOSE) == []


def test_what_the_server_refuses_with_is_a_text_too(visit: Visit, evil: Stub, near: Near) -> None:
    near.statuses |= {422, 403}
    evil.refuses = {"POST /query": Refusal(422, EVIL), "GET /documents": Refusal(403, EVIL)}
    page = visit()
    asked(page, state="failed")
    assert page.locator("main img").count() == 0
    assert page.evaluate(_LOOSE) == []
    assert SHOWN in (page.locator(".answer .bad").text_content() or "")


def test_the_policy_refuses_what_is_not_the_pages(visit: Visit, near: Near) -> None:
    page = visit()
    refused = page.evaluate("""async () => {
        const said = []
        try { document.body.innerHTML = '<b>x</b>' } catch (error) { said.push(error.name) }
        try { document.body.setAttribute('onclick', 'window.wasRun = true') } catch (error) { said.push(error.name) }
        document.body.click()
        said.push(await fetch('https://example.com/').then(() => 'fetched', () => 'fetch refused'))
        return [...said, window.wasRun]
    }""")
    assert refused == ["TypeError", "TypeError", "fetch refused", None]
    assert not [line for line in near.found if line.startswith(("request:", "asked for:"))]
    assert near.found
    near.found.clear()


def test_a_million_letters_are_shown_when_they_are_asked_for(visit: Visit, stub: Stub) -> None:
    long = f"It is so [Source 1]. {LONG} And so [Source 2]."
    pieces = [long[at : at + 500] for at in range(0, len(long), 500)]
    stub.says = events(answered(answer=long, citations=[]), pieces)
    answer = asked(visit())
    assert len(text_of(answer)) < 25_000, "what stands in the page at first"
    assert answer.locator("[data-source]").count() == 1
    answer.get_by_role("button", name="Show all 1,080,0").click()
    assert text_of(answer) == long
    assert answer.locator("[data-source]").count() == 2


def test_a_passage_of_a_million_letters_shows_what_is_around_its_quote(visit: Visit, stub: Stub) -> None:
    quote, text = "Here it stands.", "It is so [Source 1]."
    source = {"source": 1, "document": "long.md", "section": "", "score": 0.5, "text": LONG + quote + LONG}
    done = answered(answer=text, citations=[citation(text, "It is so", 1, quote)])
    stub.says = [("retrieval", {"sources": [source]}), *events(done)[1:]]
    answer = asked(visit())
    answer.get_by_role("button", name="Source 1").click()
    assert answer.locator("mark").text_content() == quote
    assert len(answer.locator("[data-passage='1']").text_content() or "") < 25_000


def test_a_word_without_end_does_not_widen_the_page(visit: Visit, stub: Stub) -> None:
    source = {"source": 1, "document": UNBROKEN, "section": UNBROKEN, "score": 0.5, "text": UNBROKEN}
    said = answered(
        answer=f"{UNBROKEN[:9_000]} [Source 1]", citations=[], reasons=[f"UNGROUNDED_CLAIM: {UNBROKEN}", UNBROKEN]
    )
    stub.says = [("retrieval", {"sources": [source]}), *events(said)[1:]]
    stub.documents = [document(UNBROKEN[:250], status="failed", why=UNBROKEN)]
    page = visit(viewport={"width": 360, "height": 740})
    asked(page, UNBROKEN[:2_000]).get_by_role("button", name="Source 1").click()
    page.get_by_role("button", name="Delete").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate("document.querySelector('#delete-dialog').scrollWidth") <= 360
