"""CSV and mails: cells and attachments keep their places, in whatever charset; bad ones say why."""

from __future__ import annotations

from email.message import EmailMessage
from pathlib import Path

import pytest

from rag_harness.core.errors import UnreadableError
from rag_harness.data.documents import page_files
from rag_harness.data.loaders.child_process import CELLS
from rag_harness.data.loaders.mail import parse as parse_mail
from rag_harness.data.loaders.text import parse_csv
from tests.unit.dataset.ingest.office_files import said, word
from tests.unit.dataset.ingest.pdfs import book

TABLE = "| Item | Fee |\n| --- | --- |\n| Lamp; round | 9,90 |\n| Table | 19,90 |\n"


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
    assert parse_csv(text.encode(charset)).text == TABLE


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
        (word(said("a")), "is no CSV, but a ZIP archive, as docx, pptx and xlsx files are"),
        (b"%PDF-1.4", "is no CSV, but a PDF"),
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
    made.add_attachment(book("Two years."), maintype="application", subtype="pdf", filename="terms.pdf")
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
    assert bad.startswith("attachment bad.docx: is no docx")
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
    [(b"just text\n", "is no mail: it has no head"), (b"", "is no mail"), (word(said("a")), "is no mail, but a ZIP")],
)
def test_a_bad_mail_says_what_is_wrong(data: bytes, why: str) -> None:
    with pytest.raises(UnreadableError, match=why):
        parse_mail(data)
