"""OpenAPI: operations and schemas are sections, what they take and give are tables; nothing is unfolded without end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from rag_harness.core.errors import UnreadableError
from rag_harness.data.documents import load, page_files
from rag_harness.data.loaders.openapi import parse

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
