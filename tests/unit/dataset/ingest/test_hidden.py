"""Text that nobody would see is left out and counted, and text that is seen is kept."""

from __future__ import annotations

import pytest

from rag_harness.data.loaders.html_pages import parse

HIDES = [
    "hidden",
    "hidden=until-found",
    "aria-hidden=true",
    "style='display:none'",
    "style='DISPLAY : None !important'",
    "style='visibility:hidden'",
    "style='opacity:0'",
    "style='font-size:0'",
    "style='font-size:1px'",
    "style='font-size:0.01em'",
    "style='font-size:0vw'",
    "style='font-size:1.5PT'",
    "style='width:0.01in;overflow:hidden'",
    "style='opacity:1%'",
    "style='position:absolute; left:-9999px'",
    "style='position:fixed;top:-100em'",
    "style='text-indent:-9999px'",
    "style='height:0;overflow:hidden'",
    "style='clip:rect(0, 0, 0, 0)'",
    "style='clip-path:inset(50%)'",
    "style='transform:scale(0)'",
    "style='color:white'",
    "style='color:#FFF'",
    "style='color:rgb(255, 255, 255)'",
    "style='color:rgba(0,0,0,0)'",
    "style='color:transparent'",
    "style='color:#123456;background-color:#123456'",
    "class='x far'",
    "id=far",
]
SHOWS = [
    "",
    "style='display:block'",
    "style='font-size:1em'",
    "style='font-size:60%'",
    "style='opacity:1'",
    "style='position:absolute;top:900px'",
    "style='color:white;background:#333'",
    "style='color:white;background:url(x.png)'",
    "style='color:white;background:white url(x.png)'",
    "style='color:white;background-image:url(x.png)'",
    "style='color:white;background-color:white;background-image:linear-gradient(red, blue)'",
    "style='height:0'",
    "style='height:1in;overflow:hidden'",
    "style='width:1em;overflow:hidden'",
    "style='font-size:1.8vw'",
    "style='font-size:0.4cm'",
    "style='font-size:1rem'",
    "style='opacity:60%'",
    "aria-hidden=false",
    "class=printed",
]
SHEET = (
    "<style>/* .ok{display:none} */ .far, #far{left:-99em;position:absolute} "
    "@media print{.printed{display:none}}</style>"
)


@pytest.mark.parametrize("attributes", HIDES)
def test_hidden_text_is_dropped_and_counted(attributes: str) -> None:
    page = parse(f"{SHEET}<p>before</p><div {attributes}>se<b>cr</b>et <i>text</i></div><p>after".encode())
    assert (page.text, page.hidden) == ("before\n\nafter\n", len("secrettext"))


@pytest.mark.parametrize("attributes", SHOWS)
def test_text_that_is_seen_stays(attributes: str) -> None:
    page = parse(f"{SHEET}<p {attributes}>seen".encode())
    assert (page.text, page.hidden) == ("seen\n", 0)


@pytest.mark.parametrize(
    ("media", "hides"),
    [
        ("", True),
        ("media=all", True),
        ("media='print, SCREEN'", True),
        ("media=print", False),
        ("media='(max-width: 600px)'", False),
    ],
)
def test_a_style_sheet_counts_where_it_is_for_screens(media: str, hides: bool) -> None:
    page = parse(f"<style {media}>.x{{display:none}}</style><p class=x>visible".encode())
    assert page.text == ("" if hides else "visible\n")


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<div style='background-image:url(x)'><p style='color:white'>yes</div>", "yes"),
        ("<div style='background:url(x)'><p style='color:white;background-color:white'>no</div>yes", "yes"),
        ("<div style='color:white'>no<p style='color:black'>yes</div>", "yes"),
        ("<div style='visibility:hidden'>no<p style='visibility:visible'>yes</div>", "yes"),
        ("<div style='font-size:0'>no<p style='font-size:12px'>yes</div>", "yes"),
        ("<div style='display:none'>no<p style='display:block'>no</div>yes", "yes"),
        ("<div style='background:black'><p style='color:white'>yes</div>", "yes"),
        ("<body bgcolor=black><font color=white>yes</font>", "yes"),
        ("<font color=white>no</font>yes", "yes"),
        ("<p hidden>no<p>yes", "yes"),
        ("<ul><li hidden>no<li>yes</ul>", "- yes"),
    ],
)
def test_what_is_inside_may_be_seen_again(html: str, text: str) -> None:
    assert parse(html.encode()).text.strip() == text


@pytest.mark.parametrize(
    "html",
    [
        "<b><div hidden>no</b>no</div>",
        "<span hidden><div>no</span>no</div>no</span>",
        "<div hidden><table><tr><td></div>no</table>no</div>",
        "<div hidden>" + "<div>" * 600 + "</div>" * 500 + "no",
    ],
)
def test_an_end_tag_in_the_wrong_place_shows_nothing_hidden(html: str) -> None:
    page = parse(f"<p>before</p>{html}".encode())
    assert page.text == "before\n"
    assert page.hidden
