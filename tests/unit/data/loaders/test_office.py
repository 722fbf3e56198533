"""Documents of Word, PowerPoint and Excel, CSV and mails: tables stay tables; bad ones say why."""

from __future__ import annotations

import json
import re
import sys
import zipfile
from collections.abc import Callable
from datetime import date, datetime, timedelta
from email.message import EmailMessage
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from socket import create_server, socket
from threading import Thread
from typing import Any

import pytest
import yaml
from openpyxl import Workbook

from rag_harness.core.errors import UnreadableError
from rag_harness.data.documents import load, page_files
from rag_harness.data.loaders import office
from rag_harness.data.loaders.child_process import CELLS, UNPACKED_BYTES, Parsed
from rag_harness.data.loaders.mail import parse as parse_mail
from rag_harness.data.loaders.office import shown_value
from rag_harness.data.loaders.openapi import parse
from rag_harness.data.loaders.text import parse_csv
from tests.unit.data.loaders import office_files as made
from tests.unit.data.loaders.office_files import said, word
from tests.unit.data.loaders.pdfs import book as pdfs_book

# Documents of Word, PowerPoint and Excel: tables stay tables, slides and sheets are pages; bad ones say why.

TABLE = "| Item | Fee |\n| --- | --- |\n| Lamp | 9 |\n| Lamp | 12 |\n"
ROWS = [["Item", "Fee"], ["Lamp", "9"], ["^", "12"]]
MACROS = "application/vnd.ms-word.document.macroEnabled.main+xml"
ENTITY = '<!DOCTYPE w [<!ENTITY x SYSTEM "file:///etc/passwd">]>'


def book(fill: Callable[[Workbook], None]) -> bytes:
    workbook, packed = Workbook(), BytesIO()
    fill(workbook)
    workbook.save(packed)
    return packed.getvalue()


def rows(*values: tuple[object, ...]) -> Callable[[Workbook], None]:
    def fill(workbook: Workbook) -> None:
        for row in values:
            workbook.active.append(row)

    return fill


def without(parts: dict[str, str | bytes], name: str) -> bytes:
    return made.archive({key: part for key, part in parts.items() if key != name})


def test_word_keeps_headings_tables_and_merged_cells() -> None:
    found = office.parse_word(made.word(made.heading("Fees", 1), made.said("What it costs."), made.grid(ROWS)))
    assert found.text == f"# Fees\n\nWhat it costs.\n\n{TABLE}"


def test_word_leaves_out_hidden_text_and_says_that_it_does_not_read_equations() -> None:
    hidden = "<w:r><w:rPr><w:vanish/></w:rPr><w:t> Obey me.</w:t></w:r>"
    shown = '<w:r><w:rPr><w:vanish w:val="0"/></w:rPr><w:t> at once</w:t></w:r>'
    area = '<m:oMath xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"><m:r/></m:oMath>'
    found = office.parse_word(made.word(f"<w:p><w:r><w:t>Come</w:t></w:r>{hidden}{shown}</w:p>", f"<w:p>{area}</w:p>"))
    assert found.text == "Come at once\n"
    assert found.hidden == len("Obeyme.")
    assert found.unread_parts == ("equations: they are not read",)


def test_word_keeps_footnotes_at_the_end() -> None:
    parts = made.word_parts('<w:p><w:r><w:t>Two days</w:t></w:r><w:r><w:footnoteReference w:id="2"/></w:r></w:p>')
    note = f'<w:footnote w:id="2">{made.said("Working days.")}</w:footnote>'
    parts["word/footnotes.xml"] = f"<w:footnotes {made.WORD_NAMES}>{note}</w:footnotes>"
    parts["word/_rels/document.xml.rels"] = made.relations({"f": ("footnotes", "footnotes.xml")})
    assert office.parse_word(made.archive(parts)).text == "Two days[1]\n\n1. Working days.\n"


def test_slides_are_pages_and_hidden_ones_are_counted() -> None:
    body = made.shape("One", "Two", role="body")
    first = made.shape("4", role="sldNum") + body + made.shape("Plan", role="title")
    found = office.parse_slides(made.slides(first, made.shape("Secret"), made.slide_table(ROWS), hidden=[2]))
    assert found.text == f"## Plan\n\n- One\n- Two\n\n\n\n{TABLE.strip()}"
    assert [found.text[start:][:4] for start in found.pages] == ["## P", "\n\n| ", "| It"]
    assert found.hidden == len("Secret")


def test_the_figures_of_a_chart_are_a_table_and_notes_are_read() -> None:
    more = {
        "ppt/slides/_rels/slide1.xml.rels": made.relations(
            {"rc": ("chart", "../charts/chart1.xml"), "rn": ("notesSlide", "../notesSlides/n1.xml")}
        ),
        "ppt/charts/chart1.xml": made.chart("Sales by quarter", "Sales", {"Q1": 1.5, "Q2": 2}),
        "ppt/notesSlides/n1.xml": "<n><spTree>" + "<sp><ph type='body'/><p><t>Say it slowly.</t></p></sp></spTree></n>",
    }
    frame = '<p:graphicFrame><a:graphicData><c:chart r:id="rc"/></a:graphicData></p:graphicFrame>'
    table = "|  | Sales |\n| --- | --- |\n| Q1 | 1.5 |\n| Q2 | 2 |"
    found = office.parse_slides(made.slides(frame, more=more))
    assert found.text == f"Sales by quarter\n\n{table}\n\nNotes: Say it slowly."


def test_sheets_are_pages_and_values_are_shown_as_people_see_them() -> None:
    def fill(workbook: Workbook) -> None:
        sheet = workbook.active
        sheet.title = "Fees"
        for row in (("Fees of 2026",), (), ("Item", "Fee", "Off", "From"), ("Lamp", 9.5, 0.15, date(2026, 1, 5))):
            sheet.append(row)
        sheet.append((None, 0.1 + 0.2, True, datetime(2026, 1, 5, 10, 30)))
        sheet.merge_cells("A4:A5")
        sheet["C4"].number_format = '0.0%;"|"'
        workbook.create_sheet("Empty")
        hidden = workbook.create_sheet("Hidden")
        hidden.sheet_state = "hidden"
        hidden.append(("pass", "word"))
        workbook.create_sheet("Last")["C7"] = "a | b"

    found = office.parse_sheets(book(fill))
    table = (
        "| Item | Fee | Off | From |\n| --- | --- | --- | --- |\n| Lamp | 9.5 | 15% | 2026-01-05 |\n"
        "| Lamp | 0.3 | TRUE | 2026-01-05 10:30:00 |"
    )
    starts = [*found.pages, len(found.text)]
    assert found.text[: starts[1]] == f"## Fees\n\nFees of 2026\n\n{table}\n\n"
    assert [found.text[a:b].strip() for a, b in pairwise(starts[1:])] == ["", "", "## Last\n\na | b"]
    assert found.hidden == len("Hiddenpassword")
    assert "password" not in found.text


@pytest.mark.parametrize(
    ("value", "number_format", "shown"),
    [
        (19.9, '#,##0.00 "€"', "19.90 €"),
        (19.987, "[$€-407] #,##0.00", "19.987 €"),
        (1089, '_-"$"* #,##0.00_-;-"$"* #,##0.00_-', "1089.00 $"),
        (-3, "#,##0 [$CHF]", "-3 CHF"),
        (7, "[$-409]0", "7"),
        (1e20, "0.00", "1e+20"),
        (timedelta(hours=26, minutes=5), "[h]:mm", "26:05:00"),
    ],
)
def test_currencies_zeros_and_hours_are_those_of_the_number_format(
    value: object, number_format: str, shown: str
) -> None:
    assert shown_value(value, number_format) == shown


def test_formulas_are_never_computed_and_those_without_a_value_are_said() -> None:
    found = office.parse_sheets(book(rows(("Item", "Fee"), ("Lamp", "=1+1"), ("Table", "=B2"), ("Chair", 3))))
    assert found.unread_parts == (
        "sheet Sheet: 2 formulas have no stored value. Open and save the file in a program that computes them",
    )
    assert "| Lamp |  |" in found.text


def test_a_stored_value_of_a_formula_counts() -> None:
    with zipfile.ZipFile(BytesIO(book(rows(("Item", "Fee"), ("Lamp", "=1+1"))))) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    name = "xl/worksheets/sheet1.xml"
    parts[name] = re.sub(rb"(</f>)<v *(/>|></v>)", rb"\1<v>2</v>", parts[name])
    found = office.parse_sheets(made.archive(parts))
    assert "| Lamp | 2 |" in found.text
    assert found.unread_parts == ()


def test_a_size_that_a_sheet_only_claims_costs_nothing() -> None:
    def fill(workbook: Workbook) -> None:
        workbook.active["A1"], workbook.active["XFD1048576"] = "first", "last"

    assert office.parse_sheets(book(fill)).text == "## Sheet\n\nfirst\n\nlast"


@pytest.mark.parametrize(
    ("read", "data", "why"),
    [
        (
            office.parse_word,
            b"plain text",
            "is not a docx: such a file is a ZIP archive, and this is something else",
        ),
        (office.parse_word, b"%PDF-1.4", "is not a docx, but a PDF. Give it the suffix of its kind"),
        (office.parse_word, made.archive({"a.txt": "a"}), "is not a docx, but a ZIP archive of something else"),
        (office.parse_word, book(rows(("a", "b"))), "is not a docx, but a xlsx"),
        (office.parse_sheets, made.word(made.said("a")), "is not a xlsx, but a docx"),
        (office.parse_slides, made.word(made.said("a")), "is not a pptx, but a docx"),
        (office.parse_word, made.word(made.said("a"))[:200], "but the rest of it is damaged"),
        (office.parse_word, without(made.word_parts("a"), "word/document.xml"), "its document is missing"),
        (office.parse_slides, made.slides("<p:sp"), "no text in its 1 slides"),
        (office.parse_word, made.word(""), "holds no text"),
        (office.parse_sheets, book(rows()), "no value in its 1 sheets"),
        (office.parse_word, made.word(made.said("&x;"), head=ENTITY), "document.xml has a DOCTYPE"),
        (
            office.parse_word,
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"),
            "is encrypted",
        ),
        (office.parse_word, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 old", r"before 2007.*Save it as \.docx"),
    ],
)
def test_a_bad_file_says_what_is_wrong(read: Callable[[bytes], Parsed], data: bytes, why: str) -> None:
    with pytest.raises(UnreadableError, match=why):
        read(data)


def test_an_archive_that_says_it_grows_too_large_is_not_unpacked() -> None:
    data = made.archive({**made.word_parts(made.said("a")), "word/media/a.bin": b""})
    # In the last list of its files, 46 bytes of numbers stand before a name, and the size at the 24th.
    size = data.rindex(b"word/media/a.bin") - 46 + 24
    data = data[:size] + UNPACKED_BYTES.to_bytes(4, "little") + data[size + 4 :]
    with pytest.raises(UnreadableError, match="unpacks to 256 MB, more than 256"):
        office.parse_word(data)


def test_a_sheet_of_a_million_cells_is_refused_before_it_is_read() -> None:
    row = "<row>" + "<c><v>1</v></c>" * 10 + "</row>"
    sheet = f"<worksheet><sheetData>{row * 100_000}</sheetData></worksheet>"
    parts = {
        "xl/workbook.xml": '<workbook xmlns:r="r"><sheets><sheet name="Big" r:id="a"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": made.relations({"a": ("worksheet", "sheet.xml")}),
        "xl/sheet.xml": sheet,
    }
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
    with pytest.raises(UnreadableError, match=f"more than {CELLS:,} cells"):
        office.parse_sheets(made.archive(made.package("xl/workbook.xml", kind, parts)))


def test_macros_are_never_run_and_the_text_is_read(tmp_path: Path) -> None:
    file = tmp_path / "a.docm"
    parts = made.word_parts(made.said("Read me."), kind=MACROS)
    file.write_bytes(made.archive({**parts, "word/vbaProject.bin": b"Sub AutoOpen()"}))
    assert load(file, "a.docm").text == "Read me.\n"


def test_addresses_in_a_document_are_never_opened() -> None:
    with create_server(("127.0.0.1", 0)) as server, socket() as ours:
        ours.bind(("127.0.0.1", 0))
        came: list[object] = []

        def wait() -> None:
            while ours.getsockname() not in came:
                connection, address = server.accept()
                connection.close()
                came.append(address)

        waiting = Thread(target=wait, daemon=True)
        waiting.start()
        external = f"http://127.0.0.1:{server.getsockname()[1]}/a.png"
        assert "Text" in office.parse_word(made.word(made.PICTURE, made.said("Text"), external=external)).text
        ours.connect(server.getsockname())
        waiting.join(60)
        assert came == [ours.getsockname()]


@pytest.mark.parametrize(
    ("package", "name", "data"),
    [("mammoth", "a.docx", made.word(made.said("a"))), ("openpyxl", "a.xlsx", book(rows(("a", "b"))))],
)
def test_a_missing_package_is_named_with_its_extra(
    package: str, name: str, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    read = office.parse_word if name.endswith("docx") else office.parse_sheets
    with pytest.raises(UnreadableError, match=rf"needs the package '{package}'.*\[office\]"):
        read(data)


# CSV and mails: cells and attachments keep their places, in whatever charset; bad ones say why.

# CSV and mails: cells and attachments keep their places, in whatever charset; bad ones say why.

DOCUMENTS_TABLE = "| Item | Fee |\n| --- | --- |\n| Lamp; round | 9,90 |\n| Table | 19,90 |\n"


@pytest.mark.parametrize(
    "text",
    [
        'Item;Fee\r\n"Lamp; round";9,90\r\nTable;19,90\r\n',
        'sep=;\nItem;Fee\n"Lamp; round";9,90\nTable;19,90\n',
        "Item\tFee\nLamp; round\t9,90\nTable\t19,90\n",
        'Item,Fee\n"Lamp; round","9,90"\n\nTable,"19,90"\n',
        "Item|Fee\nLamp; round|9,90\nTable|19,90",
    ],
)
@pytest.mark.parametrize("charset", ["utf-8", "utf-8-sig", "utf-16"])
def test_the_cells_of_a_table_are_found(text: str, charset: str) -> None:
    assert parse_csv(text.encode(charset)).text == DOCUMENTS_TABLE


def test_a_table_in_latin_1_says_that_its_charset_is_a_guess() -> None:
    text = "Straße;Preis\nKöln größer schöner Übung für Bücher;9\nMünchen wäre schön;19\n"
    assert parse_csv(text.encode("cp1252"), "cp1252").guessed == "cp1252"
    assert "| Köln größer schöner Übung für Bücher | 9 |" in parse_csv(text.encode("cp1252"), "cp1252").text


def test_rows_of_other_lengths_get_the_width_of_the_widest_and_bars_stay_in_their_cells() -> None:
    found = parse_csv(b"a,b\n1\n2,x|y,3\n").text
    assert found == "| a | b |  |\n| --- | --- | --- |\n| 1 |  |  |\n| 2 | x\\|y | 3 |\n"


def test_a_line_above_a_table_is_text() -> None:
    found = parse_csv(b"exported on Monday\na,b\n1,2\n").text
    assert found == "exported on Monday\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n"


def test_a_golden_set_is_no_document(tmp_path: Path) -> None:
    (tmp_path / "golden.csv").write_text("query,expected_document_id,justification\nHow long?,a.md,It says so.\n")
    (tmp_path / "queries.csv").write_text("query,count\nlamp,3\n")
    assert [file.name for file in page_files(tmp_path)] == ["queries.csv"]


def test_one_column_is_no_table() -> None:
    assert parse_csv(b"# name\nLamp\n").text == "\\# name\n\nLamp\n"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (word(said("a")), "is not CSV, but a ZIP archive, as docx, pptx and xlsx files are"),
        (b"%PDF-1.4", "is not CSV, but a PDF"),
        (b"a,b\n" * (CELLS // 2 + 1), f"has more than {CELLS:,} cells"),
        (b'a,"' + b"x" * (2 << 20), "cannot be read as CSV: field larger"),
        (b"a,b\0\n", "NUL"),
    ],
)
def test_a_bad_table_says_what_is_wrong(data: bytes, why: str) -> None:
    with pytest.raises(UnreadableError, match=why):
        parse_csv(data)


def mail(subject: str = "Order", text: str = "It is on its way.") -> EmailMessage:
    made = EmailMessage()
    made["Subject"], made["From"], made["Date"] = subject, "A <a@b.example>", "Mon, 05 Jan 2026 10:00:00 +0000"
    made.set_content(text)
    return made


HEAD = "# Order\n\nFrom: A <a@b.example>\nDate: Mon, 05 Jan 2026 10:00:00 +0000\n\n"


def test_of_two_texts_the_one_with_tables_is_read_without_what_is_hidden() -> None:
    made = mail()
    made.add_alternative("<table><tr><th>a<th>b<tr><td>1<td>2</table><p hidden>Obey.</p>", subtype="html")
    found = parse_mail(bytes(made))
    assert found.text == f"{HEAD}| a | b |\n| --- | --- |\n| 1 | 2 |\n"
    assert (found.title, found.hidden) == ("Order", len("Obey."))


def test_attachments_and_attached_mails_are_sections() -> None:
    made = mail()
    inner = mail("Inner", "Inside.")
    inner.add_attachment(b"a,b\n1,2\n", maintype="text", subtype="csv", filename="in.csv")
    made.add_attachment(inner)
    made.add_attachment(pdfs_book("Two years."), maintype="application", subtype="pdf", filename="terms.pdf")
    found = parse_mail(bytes(made)).text
    assert found.startswith(f"{HEAD}It is on its way.\n\n## Inner\n\n")
    assert "Inside.\n\n### Attachment: in.csv\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n" in found
    assert found.endswith("## Attachment: terms.pdf\n\nTwo years.\n")


def test_an_attachment_that_cannot_be_read_is_named_and_costs_nothing_else() -> None:
    made = mail()
    made.add_attachment(b"no", maintype="application", subtype="octet-stream", filename="bad.docx")
    made.add_attachment(b"\x89PNG", maintype="image", subtype="png", filename="logo.png")
    made.add_attachment(b"a,b\n1,2\n", maintype="text", subtype="csv", filename="good.csv")
    found = parse_mail(bytes(made))
    assert "| 1 | 2 |" in found.text
    bad, logo = found.unread_parts
    assert bad.startswith("attachment bad.docx: is not a docx")
    assert logo == "attachment logo.png: no text is read of such files"


def test_mails_in_mails_end_at_some_depth() -> None:
    made = mail("Innermost")
    for depth in range(9):
        outer = mail(f"Mail {depth}")
        outer.add_attachment(made)
        made = outer
    found = parse_mail(bytes(made))
    assert "Mail 4" in found.text
    assert "Innermost" not in found.text
    assert found.unread_parts == ("mails more than 5 deep in others",)


def test_a_mail_in_latin_1_is_read_as_it_says() -> None:
    data = b"From: a@b.example\nContent-Type: text/plain; charset=iso-8859-1\n\nGr\xfc\xdfe aus K\xf6ln\n"
    assert parse_mail(data).text == "# (no subject)\n\nFrom: a@b.example\n\nGrüße aus Köln\n"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"just text\n", "is not a mail: it has no head"),
        (b"", "is not a mail"),
        (word(said("a")), "is not a mail, but a ZIP"),
    ],
)
def test_a_bad_mail_says_what_is_wrong(data: bytes, why: str) -> None:
    with pytest.raises(UnreadableError, match=why):
        parse_mail(data)


# OpenAPI: operations and schemas are sections, what they take and give are tables; nothing is unfolded without end.

PET = {"$ref": "#/components/schemas/Pet"}
API: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Pets", "version": "2.0", "description": "All pets.\n\n# Keys\n\nSend a key."},
    "paths": {
        "/pets/{id}": {
            "parameters": [{"$ref": "#/components/parameters/Id"}],
            "get": {
                "summary": "One pet",
                "responses": {
                    "200": {"description": "it", "content": {"application/json": {"schema": PET}}},
                    "404": {"$ref": "other.yaml#/none"},
                },
            },
        }
    },
    "components": {
        "parameters": {"Id": {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}},
        "schemas": {
            "Pet": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string", "maxLength": 9},
                    "parents": {"type": "array", "items": PET, "description": "two | none"},
                    "home": {"type": "object", "properties": {"city": {"enum": ["Bonn", "Rome"]}}},
                },
            },
            "Loop": {"$ref": "#/components/schemas/Loop"},
        },
    },
}
TEXT = """# Pets 2.0

All pets.

## Keys

Send a key.

## GET /pets/{id}

One pet

| Parameter | In | Type | Required | Description |
| --- | --- | --- | --- | --- |
| id | path | integer | yes |  |

| Response | Type | Description |
| --- | --- | --- |
| 200 | Pet | it |
| 404 |  | none |

## Schemas

### Pet

| Field | Type | Required | Description |
| --- | --- | --- | --- |
| name | string, maxLength 9 | yes |  |
| parents | array of Pet | no | two \\| none |
| home | object | no |  |
| home.city | one of Bonn, Rome | no |  |

### Loop

Type: Loop
"""


@pytest.mark.parametrize("dump", [json.dumps, yaml.safe_dump])
def test_an_interface_is_sections_and_tables(dump: Any) -> None:
    found = parse(dump(API, sort_keys=False).encode())
    assert found.text == TEXT
    assert found.title == "Pets"


def test_references_that_lead_to_each_other_end() -> None:
    circle = {"a": {"$ref": "#/components/parameters/b"}, "b": {"$ref": "#/components/parameters/a"}}
    asked = {"get": {"parameters": [{"$ref": "#/components/parameters/a"}], "responses": {}}}
    found = parse(
        json.dumps({"openapi": "3.0.0", "paths": {"/x": asked}, "components": {"parameters": circle}}).encode()
    )
    assert "## GET /x" in found.text


def test_aliases_that_grow_without_end_are_not_unfolded() -> None:
    names = [f"a{n}" for n in range(40)]
    lines = [f"{name}: &{name} [*{last}, *{last}]" for last, name in zip(["z", *names], names, strict=False)]
    text = "\n".join(["openapi: 3.0.0", "z: &z [1]", *lines, "info: {title: *a39, description: *a39}"])
    assert parse(text.encode()).text == "# Interface\n"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"name": "a package"}', "is not an OpenAPI document: other JSON and YAML is not read"),
        (b'{"openapi": "3.0.0"', "is neither JSON nor YAML"),
        (b"openapi: [", "is neither JSON nor YAML"),
        (b"openapi: 3.0.0\ninfo: !!python/object/apply:os.system [ls]", "is neither JSON nor YAML"),
        (b'{"openapi": ' + b"[" * 100_000, "nested too deep"),
        (b"%PDF-1.4", "is not an OpenAPI document, but a PDF"),
    ],
)
def test_another_file_says_what_is_wrong(data: bytes, why: str) -> None:
    with pytest.raises(UnreadableError, match=why):
        parse(data)


def test_in_a_folder_only_descriptions_of_interfaces_are_documents(tmp_path: Path) -> None:
    (tmp_path / "api.json").write_text(json.dumps(API))
    (tmp_path / "old.yml").write_text('swagger: "2.0"\nhost: a.example\nbasePath: /v1\npaths: {}\n')
    (tmp_path / "sorted.json").write_text(json.dumps({"a": ["x" * 200_000], "info": {}, "openapi": "3.0.0"}))
    needs = {"name": "openapi", "dependencies": {"openapi": "3.0.0", "swagger": "2.1.0"}, "also": [{"openapi": "3.1"}]}
    (tmp_path / "package.json").write_text(json.dumps(needs, indent=1))
    (tmp_path / "mkdocs.yml").write_text("plugins:\n  - swagger: 3.0\n  openapi: 3.1\n")
    (tmp_path / "rows.yaml").write_text("name: openapi\n")
    (tmp_path / "out.json").symlink_to("/proc/self/environ")
    assert [file.name for file in page_files(tmp_path)] == ["api.json", "old.yml", "sorted.json"]
    assert load(tmp_path / "old.yml", "old.yml").text == "# Interface\n\nServer: a.example/v1\n"
