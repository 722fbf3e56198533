"""Documents of Word, PowerPoint and Excel: tables stay tables, slides and sheets are pages; bad ones say why."""

from __future__ import annotations

import re
import sys
import zipfile
from collections.abc import Callable
from datetime import date, datetime, timedelta
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from socket import create_server, socket
from threading import Thread

import pytest
from openpyxl import Workbook

from rag_harness.core.errors import UnreadableError
from rag_harness.data.documents import load
from rag_harness.data.loaders import office
from rag_harness.data.loaders.child_process import CELLS, UNPACKED_BYTES, Parsed
from rag_harness.data.loaders.office import shown_value
from tests.unit.data.loaders import office_files as made

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
            "is no docx: such a file is a ZIP archive, and this is something else",
        ),
        (office.parse_word, b"%PDF-1.4", "is no docx, but a PDF. Give it the suffix of its kind"),
        (office.parse_word, made.archive({"a.txt": "a"}), "is no docx, but a ZIP archive of something else"),
        (office.parse_word, book(rows(("a", "b"))), "is no docx, but a xlsx"),
        (office.parse_sheets, made.word(made.said("a")), "is no xlsx, but a docx"),
        (office.parse_slides, made.word(made.said("a")), "is no pptx, but a docx"),
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
