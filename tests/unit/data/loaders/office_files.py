"""Office files made by hand: ZIP archives of the parts that readers look for."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from io import BytesIO
from xml.sax.saxutils import escape

_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
WORD_NAMES = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_SLIDE = (
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
    f'xmlns:r="{_OFFICE}" xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"'
)
WORD_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
_SLIDES_TYPE = "application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml"


PICTURE = (
    f'<w:p><w:r><w:drawing xmlns:r="{_OFFICE}" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main">'
    '<wp:inline xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing">'
    '<wp:docPr descr="A lamp."/>'
    '<a:graphic><a:graphicData><pic:pic xmlns:pic="http://schemas.openxmlformats.org/drawingml/2006/picture">'
    '<pic:blipFill><a:blip r:link="out"/></pic:blipFill></pic:pic></a:graphicData></a:graphic></wp:inline>'
    "</w:drawing></w:r></w:p>"
)
"""A paragraph of Word with a picture at the address that its relations name ``out``."""


def archive(parts: Mapping[str, str | bytes]) -> bytes:
    """Return a ZIP archive."""
    made = BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in parts.items():
            packed.writestr(name, content)
    return made.getvalue()


def relations(targets: Mapping[str, tuple[str, str]], external: str = "") -> str:
    """Return relations by id, each with its kind and target; ``external`` is an address of one more."""
    said = "".join(
        f'<Relationship Id="{key}" Type="{_OFFICE}/{kind}" Target="{to}"/>' for key, (kind, to) in targets.items()
    )
    out = f'<Relationship Id="out" Type="{_OFFICE}/image" Target="{external}" TargetMode="External"/>'
    return f'<Relationships xmlns="{_RELATIONS}">{said}{out if external else ""}</Relationships>'


def package(main: str, kind: str, parts: Mapping[str, str | bytes]) -> dict[str, str | bytes]:
    """Return the parts of an Office file whose document is ``main``."""
    types = f'<Types><Override PartName="/{main}" ContentType="{kind}"/></Types>'
    return {
        "[Content_Types].xml": types,
        "_rels/.rels": relations({"r1": ("officeDocument", main)}),
        **parts,
    }


def heading(text: str, level: int) -> str:
    """Return a heading of Word."""
    return f'<w:p><w:pPr><w:pStyle w:val="Heading{level}"/></w:pPr><w:r><w:t>{escape(text)}</w:t></w:r></w:p>'


def said(text: str) -> str:
    """Return a paragraph of Word."""
    return f"<w:p><w:r><w:t>{escape(text)}</w:t></w:r></w:p>"


def grid(rows: Sequence[Sequence[str]]) -> str:
    """Return a table of Word. A cell "^" belongs to the one above."""

    def cell(text: str, below: str) -> str:
        merged = "<w:vMerge/>" if text == "^" else '<w:vMerge w:val="restart"/>' if below == "^" else ""
        return f"<w:tc><w:tcPr>{merged}</w:tcPr>{said('' if text == '^' else text)}</w:tc>"

    after = [*rows[1:], [""] * len(rows[0])]
    lines = ("".join(map(cell, row, below)) for row, below in zip(rows, after, strict=True))
    return f"<w:tbl>{''.join(f'<w:tr>{line}</w:tr>' for line in lines)}</w:tbl>"


def word_parts(*body: str, head: str = "", kind: str = WORD_TYPE, external: str = "") -> dict[str, str | bytes]:
    """Return the parts of a document of Word; ``head`` stands before its first element."""
    names = "".join(
        f'<w:style w:type="paragraph" w:styleId="Heading{n}"><w:name w:val="heading {n}"/></w:style>' for n in (1, 2)
    )
    made = package("word/document.xml", kind, {})
    made["word/document.xml"] = f"{head}<w:document {WORD_NAMES}><w:body>{''.join(body)}</w:body></w:document>"
    made["word/styles.xml"] = f"<w:styles {WORD_NAMES}>{names}</w:styles>"
    made["word/_rels/document.xml.rels"] = relations({"s": ("styles", "styles.xml")}, external)
    return made


def word(*body: str, **about: str) -> bytes:
    """Return a document of Word."""
    return archive(word_parts(*body, **about))


def shape(*lines: str, role: str = "") -> str:
    """Return a shape with lines of text; its role makes it a title or the body."""
    place = f'<p:ph type="{role}"/>' if role else ""
    text = "".join(f"<a:p><a:r><a:t>{escape(line)}</a:t></a:r></a:p>" for line in lines)
    return f"<p:sp><p:nvSpPr><p:nvPr>{place}</p:nvPr></p:nvSpPr><p:txBody>{text}</p:txBody></p:sp>"


def slide_table(rows: Sequence[Sequence[str]]) -> str:
    """Return a table on a slide. A cell "^" belongs to the one above."""

    def cell(text: str) -> str:
        merged, shown = (' vMerge="1"', "") if text == "^" else ("", text)
        return f"<a:tc{merged}><a:txBody><a:p><a:r><a:t>{escape(shown)}</a:t></a:r></a:p></a:txBody></a:tc>"

    lines = "".join(f"<a:tr>{''.join(map(cell, row))}</a:tr>" for row in rows)
    return (
        f"<p:graphicFrame><a:graphic><a:graphicData><a:tbl>{lines}</a:tbl></a:graphicData></a:graphic></p:graphicFrame>"
    )


def chart(title: str, series: str, points: Mapping[str, float]) -> str:
    """Return the part of a chart with one series."""
    names = "".join(f'<c:pt idx="{n}"><c:v>{escape(name)}</c:v></c:pt>' for n, name in enumerate(points))
    values = "".join(f'<c:pt idx="{n}"><c:v>{value}</c:v></c:pt>' for n, value in enumerate(points.values()))
    return (
        f"<c:chartSpace {_SLIDE}><c:chart><c:title><c:tx><a:p><a:r><a:t>{title}</a:t></a:r></a:p></c:tx>"
        f'</c:title><c:ser><c:tx><c:strRef><c:strCache><c:pt idx="0"><c:v>{series}</c:v></c:pt></c:strCache></c:strRef>'
        f"</c:tx><c:cat><c:strCache>{names}</c:strCache></c:cat><c:val><c:numCache>{values}</c:numCache></c:val></c:ser>"
        "</c:chart></c:chartSpace>"
    )


def slides(*contents: str, hidden: Sequence[int] = (), more: Mapping[str, str] | None = None) -> bytes:
    """Return a presentation with a slide of each content, numbered from 1; ``more`` are parts beside them."""
    count = range(1, len(contents) + 1)
    listed = "".join(f'<p:sldId id="{255 + n}" r:id="r{n}"/>' for n in count)
    main = f"<p:presentation {_SLIDE}><p:sldIdLst>{listed}</p:sldIdLst></p:presentation>"
    parts: dict[str, str | bytes] = {
        "ppt/presentation.xml": main,
        "ppt/_rels/presentation.xml.rels": relations({f"r{n}": ("slide", f"slides/slide{n}.xml") for n in count}),
        **(more or {}),
    }
    for n, content in enumerate(contents, 1):
        show = ' show="0"' if n in hidden else ""
        parts[f"ppt/slides/slide{n}.xml"] = (
            f"<p:sld {_SLIDE}{show}><p:cSld><p:spTree>{content}</p:spTree></p:cSld></p:sld>"
        )
    return archive(package("ppt/presentation.xml", _SLIDES_TYPE, parts))
