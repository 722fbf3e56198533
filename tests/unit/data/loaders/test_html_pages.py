"""Text that nobody would see is left out and counted, and text that is seen is kept."""

from __future__ import annotations

import pytest

from rag_harness.core.errors import UnreadableError
from rag_harness.data.loaders.html_pages import parse
from rag_harness.retrieval.chunking.markdown import read_sections

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


# HTML becomes the Markdown that a person would have written of what they see.


def markdown(html: str) -> str:
    return parse(html.encode()).text.strip()


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<h1>A <b>B</b></h1><h3>C\n D</h3>", "# A B\n\n### C D"),
        ("<p>one<p>two<br>three", "one\n\ntwo\nthree"),
        ("<div>a<div>b</div>c</div>", "a\n\nb\n\nc"),
        ("<ul><li>a<li>b<ol start=3><li>c<li>d</ol></ul>e", "- a\n- b\n  3. c\n  4. d\n\ne"),
        ("<ul><li><p>a</p><p>b</p></li><li>c</ul>", "- a\n\n  b\n\n- c"),
        ("<blockquote><p>a</p><ul><li>b</ul></blockquote>", "> a\n\n> - b"),
        ("<pre>\n  x = 1\n\n  y = 2\n</pre>", "```\n  x = 1\n\n  y = 2\n```"),
        ("<pre>a ``` b</pre>", "````\na ``` b\n````"),
        ("<p>Call <code>f(x)</code>.", "Call `f(x)`."),
        ("<a href='/x (1)'>here</a>", "[here](/x%20%281%29)"),
        ("<a href='https://a.org'>a</a> <a href='#b'>b</a> <a href='javascript:c'>c</a>", "[a](https://a.org) b c"),
        ("<a href='/x'>a<p>b</p></a>", "a\n\nb"),
        ("<img alt='a lamp' src=x>", "a lamp"),
        ("a<hr>b", "a\n\n* * *\n\nb"),
        ("<hr><p>title: x</p><hr>", "* * *\n\ntitle: x\n\n* * *"),
        ("a&nbsp;&amp;\n\t b &lt;c&gt;", "a & b <c>"),
        ("<dl><dt>a<dd>b</dl>", "a\n\nb"),
    ],
)
def test_structure_is_kept(html: str, expected: str) -> None:
    assert markdown(html) == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<table><tr><th>a<th>b<tr><td>1<td>2|3</table>", "| a | b |\n| --- | --- |\n| 1 | 2\\|3 |"),
        ("<table><tr><td colspan=2>a<td>b<tr><td>c</table>", "| a |  | b |\n| --- | --- | --- |\n| c |  |  |"),
        ("<table><caption>T</caption><tr><td>a<td><ul><li>b<li>c</ul></table>", "T\n\n| a | b c |\n| --- | --- |"),
        ("<table><tr><td>a</td></tr><tr><td>b</td></tr></table>", "a\n\nb"),
        ("<table><tr><td>a<td><h2>B</h2><p>c</table>", "a\n\n## B\n\nc"),
        ("<table><tr><td>a<td><table><tr><td>1<td>2</table></table>", "a\n\n| 1 | 2 |\n| --- | --- |"),
    ],
)
def test_tables_are_tables_unless_they_arrange_the_page(html: str, expected: str) -> None:
    assert markdown(html) == expected


@pytest.mark.parametrize("line", ["# a", "- a", "1. a", "> a", "| a |", "---", "===", "```", "* * *", "&lt;div>"])
def test_plain_text_stays_plain_text(line: str) -> None:
    sections = read_sections(markdown(f"<p>before</p><p>{line}</p>"))
    assert [section.path for section in sections] == [()]
    assert not any(block.code or block.header for block in sections[0].blocks)


def test_headings_become_sections_of_chunks() -> None:
    sections = read_sections(markdown("<h1>Returns</h1><p>a</p><h2>Lamps</h2><p>b</p>"))
    assert [section.path for section in sections] == [("Returns",), ("Returns", "Lamps")]


@pytest.mark.parametrize(
    "html",
    [
        "<script>no</script>",
        "<style>no{}</style>",
        "<nav><ul><li>no</nav>",
        "<div role=navigation>no</div>",
        "<template>no</template>",
        "<svg><title>no</title><text>no</text></svg>",
        "<select><option>no</select>",
        "<!-- no -->",
        "<![if x]>",
        "<noscript>no</noscript>",
    ],
)
def test_what_is_no_text_of_the_page_is_dropped_and_is_not_hidden_text(html: str) -> None:
    page = parse(f"<p>before{html}<p>after".encode())
    assert (page.text, page.hidden) == ("before\n\nafter\n", 0)


def test_the_title_is_the_pages() -> None:
    assert parse(b"<title> A\n&amp; B </title><p>text").title == "A & B"


def test_a_nav_that_is_never_closed_ends_where_the_page_begins() -> None:
    assert markdown("<nav><a>menu</a><main><h1>A</h1>text</main>") == "# A\n\ntext"


@pytest.mark.parametrize(
    "declared", ["<meta charset=latin-1>", "<meta http-equiv=x content='text/html; charset=cp1252'>"]
)
def test_the_charset_that_the_page_declares(declared: str) -> None:
    assert parse(f"{declared}<p>café".encode("latin-1")).text == "café\n"


@pytest.mark.parametrize(
    "html",
    [
        "<table>" + "<tr><td>7<td><td><td><td>7" * 40 + "</table>",
        "".join(f"<p><a href='https://shop.example/{'x' * 300}/{n}'>page {n}</a>" for n in range(40)),
    ],
)
def test_our_own_marks_and_addresses_are_no_garbage(html: str) -> None:
    assert "| 7 |" in parse(html.encode()).text or "page 39" in parse(html.encode()).text


def test_garbage_in_a_table_is_garbage() -> None:
    with pytest.raises(UnreadableError, match="neither letters nor digits"):
        parse(("<table>" + "<tr><td>@#$<td>%^&*" * 100).encode())
