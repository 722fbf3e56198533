"""Ask, see the answer appear, open what it rests on; what was checked is said in words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.browser.sampled import one_in
from tests.browser.service.asking import QUESTION, asked, text_of, verdict_of
from tests.browser.service.conftest import Visit
from tests.browser.service.stub import ANSWER, FIRST, TRACE, Stub, answered, citation, events


def test_an_answer_with_its_verdict_and_citations(visit: Visit, stub: Stub) -> None:
    page = visit()
    answer = asked(page)
    assert text_of(answer) == ANSWER
    assert answer.get_by_role("heading", name=QUESTION).is_visible()
    assert "Fairly sure, 83\u00a0%" in answer.locator(".verdict").inner_text()
    assert json.loads(stub.asked("/query")[0]["body"]) == {
        **{"query": QUESTION, "mode": "normal", "debug": False},
        "conversation": FIRST,
    }
    assert "text/event-stream" in stub.asked("/query")[0]["headers"]["accept"]


def test_it_grows_while_it_comes(visit: Visit, stub: Stub) -> None:
    # Long enough for what is looked at meanwhile, on a machine that is busy.
    stub.says = [*events()[:6], 3.0, *events()[6:]]
    page = visit()
    answer = asked(page, state="growing")
    assert "not checked yet" in answer.locator(".verdict").inner_text()
    assert answer.locator(".said").get_attribute("aria-busy") == "true"
    assert 0 < len(answer.locator(".said").text_content() or "") < len(ANSWER)
    page.locator(".answer[data-state=done]").wait_for()
    assert text_of(answer) == ANSWER


def test_a_citation_opens_its_passage_with_the_quote_marked(visit: Visit, stub: Stub) -> None:
    page = visit()
    answer = asked(page)
    answer.get_by_role("button", name="Source 1").click()
    passage = answer.locator("[data-passage='1']")
    assert passage.locator("mark").text_content() == "Lamps can be returned within 45 days.  \nThe label is"
    assert "lamps.md · Returns" in passage.locator("summary").inner_text()
    link = passage.get_by_role("link")
    assert (link.get_attribute("href"), link.get_attribute("rel")) == (
        "https://example.com/lamps",
        "noopener noreferrer",
    )
    assert page.evaluate("[...CSS.highlights.get('claim')].map(String)") == ["You can return lamps within 45 days"]
    answer.get_by_role("button", name="Source 2").click()
    assert page.evaluate("[...CSS.highlights.get('claim')].map(String)") == ["Bulbs stay 💡 with you"]
    assert "page 3" in answer.locator("[data-passage='2'] summary").inner_text()


def test_an_answer_that_is_not_streamed_is_shown_whole(visit: Visit, stub: Stub) -> None:
    stub.says = answered()
    answer = asked(visit())
    assert text_of(answer) == ANSWER
    answer.get_by_role("button", name="Source 2").click()
    assert answer.locator("[data-passage='2'] mark").text_content() == "Opened bulbs stay with you."


def test_what_is_withdrawn_is_shown_as_withdrawn(visit: Visit, stub: Stub) -> None:
    instead = answered(
        answer="I am not sure enough.", citations=[], decision="abstain", confidence=0.2, reasons=["UNGROUNDED_ANSWER"]
    )
    stub.says = [*events()[:-2], ("replace", {"answer": instead["answer"]}), *events(instead, [])[1:]]
    answer = asked(visit())
    assert text_of(answer) == instead["answer"]
    assert "withdrawn" in answer.locator(".box.unsure strong").inner_text()
    assert ANSWER in (answer.locator("del").text_content() or "")
    assert not answer.locator("del").is_visible()
    assert "Declined: only 20 % sure" in answer.locator(".verdict").inner_text().replace("\u00a0", " ")


def test_an_answer_that_ends_otherwise_than_it_came_is_never_changed_silently(visit: Visit, stub: Stub) -> None:
    stub.says = events(answered(answer="Something else.", citations=[]), ["You can return it."])
    answer = asked(visit())
    assert text_of(answer) == "Something else."
    assert answer.locator("del").text_content() == "You can return it."


def test_an_answer_begun_anew_withdraws_what_was_said_before(visit: Visit, stub: Stub) -> None:
    found, *usual = events()
    other = {"sources": [{"source": 1, "document": "second.md", "section": "", "score": 0.5, "text": "Found later."}]}
    stub.says = [found, ("token", {"text": "You ca"}), ("replace", {"answer": ""}), ("retrieval", other), *usual]
    answer = asked(visit())
    assert text_of(answer) == ANSWER
    assert answer.locator("del").all_text_contents() == ["You ca"]
    assert "second.md" in answer.locator("[data-passage='1'] summary").inner_text()
    assert answer.locator("[data-passage='3']").count() == 0


def test_strict_is_asked_for_and_its_verdict_comes_first(visit: Visit, stub: Stub) -> None:
    found, *words, verdict, done = events()
    stub.says = [found, verdict, *words[:4], 0.5, *words[4:], done]
    page = visit()
    page.get_by_label("Strict").check()
    answer = asked(page, state="growing")
    assert "Fairly sure" in verdict_of(answer)
    page.locator(".answer[data-state=done]").wait_for()
    assert json.loads(stub.asked("/query")[0]["body"])["mode"] == "strict"


def test_stop_ends_the_request(visit: Visit, stub: Stub) -> None:
    stub.says = [*events()[:6], 30.0]
    page = visit()
    answer = asked(page, state="growing")
    page.get_by_role("button", name="Stop").click()
    page.locator(".answer[data-state=stopped]").wait_for()
    assert "unfinished" in answer.locator(".verdict").inner_text()
    assert page.get_by_role("button", name="Ask", exact=True).is_visible()
    page.wait_for_timeout(500)
    assert stub.left == 1


@pytest.mark.parametrize(
    ("said", "words"),
    one_in(
        3,
        [
            ({"confidence": 0.97}, "Very sure, 97 %"),
            ({"confidence": 0.999}, "Very sure, over 99 %"),
            ({"confidence": 0.61}, "Somewhat sure, 61 %"),
            ({"confidence": 0.7499}, "Fairly sure, 75 %"),
            ({"confidence": None}, "Passed every check"),
            (
                {"decision": "warn", "confidence": 0.4},
                "Rather unsure, 40 %, with a warning Open the passages before",
            ),
            # A warning does not lower the words: they follow the figure.
            ({"decision": "warn", "confidence": 0.9}, "Fairly sure, 90 %, with a warning Open the passages"),
            ({"decision": "warn", "confidence": None}, "With a warning Open the passages before you rely on it."),
            # An answer was there and was not given: the figure is of that answer.
            ({"decision": "abstain", "confidence": 0.18}, "Declined: only 18 % sure of the answer that it had Ask in"),
            (
                {"decision": "abstain", "confidence": 0.65, "reasons": ["NO_CITATION", "STRICT: only what passes"]},
                "Declined: 65 % sure of the answer that it had",
            ),
            ({"decision": "abstain", "confidence": None}, "Declined to answer Ask in other words"),
            (
                {"decision": "abstain", "confidence": 0.37, "reasons": ["LOW_RETRIEVAL_QUALITY", "LOW_COVERAGE"]},
                "Declined: only 37 % sure that the documents do not answer this",
            ),
            ({"decision": "unchecked", "confidence": 0.7}, "Somewhat sure, 70 %, unchecked The figure is"),
            ({"decision": "unchecked", "confidence": None}, "Unchecked This experiment does not say how sure it is."),
            (
                {"decision": "abstain", "confidence": 0.9, "reasons": ["NOT_IN_SOURCES"]},
                "Declined: 90 % sure that the documents do not answer this Ask in other words, "
                "or add a document that answers it. The passages that were found do not say it. NOT_IN_SOURCES",
            ),
            (
                {"decision": "abstain", "confidence": 0, "reasons": ["MODEL_UNAVAILABLE: DeadlineError"]},
                "No answer just now Ask again in a minute. The model that writes the answers did not answer.",
            ),
            (
                {"reasons": ["UNGROUNDED_CLAIM: it: is so", "A_NEW_CODE: of tomorrow"]},
                "“it: is so”. UNGROUNDED_CLAIM A_NEW_CODE: of tomorrow",
            ),
        ],
    ),
)
def test_how_sure_it_is_in_words(visit: Visit, stub: Stub, said: dict[str, Any], words: str) -> None:
    stub.says = answered(**said)
    assert words in verdict_of(asked(visit()))


@pytest.mark.long
def test_a_higher_figure_never_sounds_less_sure(visit: Visit, stub: Stub) -> None:
    page, heard = visit(), []
    for percent in range(101):
        stub.says = answered(decision="warn" if percent % 2 else "pass", confidence=percent / 100)
        heard.append(verdict_of(asked(page)).partition(",")[0])
        page.locator("#answers").evaluate("it => it.replaceChildren()")
    words = list(dict.fromkeys(heard))
    assert words == ["Very unsure", "Rather unsure", "Somewhat sure", "Fairly sure", "Very sure"]
    assert heard == sorted(heard, key=words.index)


@pytest.mark.parametrize(
    ("reasons", "said"),
    [
        (["LOW_RETRIEVAL_QUALITY", "LOW_RELEVANCE"], ["No passage fits well enough to be shown"]),
        (["NOT_IN_SOURCES"], ["No passage was found"]),
        (["CHIT_CHAT"], []),
    ],
)
def test_where_no_passage_is_shown_it_agrees_with_the_reasons(
    visit: Visit, stub: Stub, reasons: list[str], said: list[str]
) -> None:
    done = answered(answer="I don't know.", citations=[], decision="abstain", confidence=0.3, reasons=reasons)
    stub.says = [("retrieval", {"sources": []}), *events(done)[1:]]
    assert asked(visit()).locator("h4").all_inner_texts() == said


def test_a_stream_may_be_cut_anywhere(visit: Visit, stub: Stub) -> None:
    stub.bytes_at_once = 7
    answer = asked(visit())
    assert text_of(answer) == ANSWER
    assert answer.locator("[data-source]").count() == 2


def test_several_sources_in_one_mark_are_a_button_each(visit: Visit, stub: Stub) -> None:
    text = "It may [Sources 1, 3]. Not so [Source 9]."
    stub.says = events(answered(answer=text, citations=[]))
    answer = asked(visit())
    assert text_of(answer) == text
    assert answer.locator("[data-source]").evaluate_all("all => all.map(it => it.dataset.source)") == ["1", "3"]
    assert answer.locator(".wrong").inner_text() == "[Source 9]"


def test_a_mark_shows_the_quote_of_its_own_claim(visit: Visit, stub: Stub) -> None:
    text = "Lamps come back [Source 1]. Bulbs do not [Source 1]."
    quotes = ["Lamps can be returned within 45 days.", "Bulbs cannot."]
    claims = ["Lamps come back", "Bulbs do not"]
    cited = [citation(text, claim, 1, quote) for claim, quote in zip(claims, quotes, strict=True)]
    stub.says = events(answered(answer=text, citations=cited))
    answer = asked(visit())
    marks = answer.locator("[data-passage='1'] mark")
    for place, quote in enumerate(quotes):
        answer.locator("[data-source]").nth(place).click()
        assert marks.all_inner_texts() == [quote]
    answer.locator("[data-source]").nth(1).click()
    assert not answer.locator("[data-passage='1']").evaluate("it => it.open"), "a second click closes it"
    answer.locator("[data-passage='1'] summary").click()
    marks.nth(1).wait_for()
    assert marks.all_inner_texts() == quotes, "opened by itself, a passage shows all that is quoted of it"


def test_thumbs_and_words_are_kept_with_the_trace(visit: Visit, stub: Stub) -> None:
    page = visit()
    answer = asked(page)
    answer.get_by_role("button", name="No").click()
    answer.get_by_text("Thank you: kept.").wait_for()
    answer.get_by_label("What was right or wrong?").fill("It is 30 days.")
    answer.get_by_role("button", name="Send").click()
    answer.get_by_text("your words are kept").wait_for()
    sent = [json.loads(one["body"]) for one in stub.asked(f"/traces/{TRACE}/rating")]
    assert sent == [{"thumb": -1, "comment": ""}, {"thumb": -1, "comment": "It is 30 days."}]


def test_only_the_end_is_told_to_who_does_not_see_it(visit: Visit, stub: Stub) -> None:
    page = visit(before=_LISTEN)
    stub.says = events(pause=0.01)
    asked(page)
    assert page.evaluate("told") == ["Asked.", f"Fairly sure, 83\u00a0%. {ANSWER}"]


_LISTEN = """addEventListener('DOMContentLoaded', () => {
    window.told = []
    const said = document.getElementById('said'), all = { childList: true, characterData: true, subtree: true }
    new MutationObserver(() => told.push(said.textContent)).observe(said, all)
})"""
