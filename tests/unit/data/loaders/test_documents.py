"""CSV and mails: cells and attachments keep their places, in whatever charset; bad ones say why."""

from __future__ import annotations

import json
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
import yaml

from rag_harness.core.errors import UnreadableError
from rag_harness.data.documents import load, page_files
from rag_harness.data.loaders.child_process import CELLS
from rag_harness.data.loaders.mail import parse as parse_mail
from rag_harness.data.loaders.openapi import parse
from rag_harness.data.loaders.text import parse_csv
from tests.unit.data.loaders.office_files import said, word
from tests.unit.data.loaders.pdfs import book

# CSV and mails: cells and attachments keep their places, in whatever charset; bad ones say why.

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
        (b'{"name": "a package"}', "is no OpenAPI document: other JSON and YAML is not read"),
        (b'{"openapi": "3.0.0"', "is neither JSON nor YAML"),
        (b"openapi: [", "is neither JSON nor YAML"),
        (b"openapi: 3.0.0\ninfo: !!python/object/apply:os.system [ls]", "is neither JSON nor YAML"),
        (b'{"openapi": ' + b"[" * 100_000, "nested too deep"),
        (b"%PDF-1.4", "is no OpenAPI document, but a PDF"),
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
