"""Finds the tests of a config or a test file, with what its defaults add and each combination of its variables.

Code is not run and nothing is fetched: tests that come of code or of the web are noted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from rag_harness.authoring.importing.notes import Notes
from rag_harness.authoring.importing.promptfoo.csv_tests import row_as_test
from rag_harness.authoring.importing.promptfoo.files_beside import with_variables
from rag_harness.dataset.records.json_records import MOST_JSON
from rag_harness.dataset.records.reading import is_table, records_in
from rag_harness.dataset.records.source_text import text_of
from rag_harness.dataset.records.yaml_values import MOST_YAML, read_yaml
from rag_harness.errors import DataError
from rag_harness.files.json_text import read_json
from rag_harness.files.referenced_files import referenced_files

YAML = (".yaml", ".yml")
"""Endings of files in YAML."""
_OF_CONFIGS = frozenset({"tests", "scenarios", "prompts", "providers", "targets", "defaultTest"})
_TEMPLATE = "#/assertionTemplates/"
_MOST_COMBINATIONS = 10_000
Test = Mapping[str, Any]


class FoundTest(NamedTuple):
    """A test with all that it owes, and its place."""

    where: str
    test: Test


class _Read(NamedTuple):
    value: Any
    place: Callable[..., str]


def tests_in(file: Path, notes: Notes) -> Iterator[FoundTest]:
    """Yield the tests of a config, a test file or a CSV file.

    Raises:
        DataError: a file is missing or malformed, or variables have too many combinations.
    """
    if is_table(file):
        yield from _of_rows(file)
        return
    read = _read(file)
    if isinstance(read.value, dict) and _OF_CONFIGS & read.value.keys():
        yield from _of_config(file, read, notes)
    else:
        yield from _expanded(_listed(file, read, notes))


def _of_config(file: Path, read: _Read, notes: Notes) -> Iterator[FoundTest]:
    config = read.value
    default = config.get("defaultTest") or {}
    if isinstance(default, str):
        default = _read(_named(file, default, f"{file}: defaultTest")[0]).value
    _check_test(default, f"{file}: defaultTest")
    default = with_variables(default, file.parent, f"{file}: defaultTest", notes)
    templates = config.get("assertionTemplates") or {}
    stated = _entries(file, config.get("tests"), read, ("tests",), notes)
    found = (each for part in (stated, _of_scenarios(file, read, notes)) for each in part)
    yield from _expanded(FoundTest(where, _referred(_merged(default, test), templates)) for where, test in found)


def _of_scenarios(file: Path, read: _Read, notes: Notes) -> Iterator[FoundTest]:
    """Yield each test of a scenario with each of its configurations."""
    for number, scenario in enumerate(read.value.get("scenarios") or ()):
        place = read.place("scenarios", number)
        _check_test(scenario, place)
        stated = scenario.get("config")
        configs = [*_entries(file, stated, read, ("scenarios", number, "config"), notes)]
        if not stated:
            configs = [FoundTest(place, {})]
        tests = [*_entries(file, scenario.get("tests"), read, ("scenarios", number, "tests"), notes)]
        for config, test in product(configs, tests or [FoundTest(place, {})]):
            yield FoundTest(config.where if stated else test.where, _merged(config.test, test.test))


def _entries(file: Path, entries: Any, read: _Read, path: Sequence[str | int], notes: Notes) -> Iterator[FoundTest]:
    """Yield the tests of a list, those of files that it names among them."""
    listed = entries if isinstance(entries, list) else [entries] if entries else []
    for number, each in enumerate(listed):
        where = read.place(*path, number) if isinstance(entries, list) else read.place(*path)
        named = each.get("path") if isinstance(each, dict) and "vars" not in each else each
        if isinstance(named, str):
            yield from _of_named(file, named, where, notes)
        else:
            _check_test(each, where)
            yield FoundTest(where, with_variables(each, file.parent, where, notes))


def _of_named(file: Path, name: str, where: str, notes: Notes) -> Iterator[FoundTest]:
    if "://" in name and not name.startswith("file://"):
        notes.lose("tests from the web: save them as a file", where)
        return
    suffix = Path(name.partition("#")[0]).suffix.lower()
    if suffix not in (".csv", ".tsv", ".json", ".jsonl", *YAML):
        known = "a spreadsheet: save it as CSV" if suffix.startswith(".xls") else "made by code, which is not run"
        notes.lose(f"tests in a file that is not read, {known}", where)
        return
    for each in _named(file, name, where):
        yield from _of_rows(each) if is_table(each) else _listed(each, _read(each), notes)


def _of_rows(file: Path) -> Iterator[FoundTest]:
    yield from (FoundTest(each.where, row_as_test(each.values)) for each in records_in(file))


def _listed(file: Path, read: _Read, notes: Notes) -> Iterator[FoundTest]:
    entries = read.value if isinstance(read.value, list) else [read.value]
    for number, each in enumerate(entries):
        where = read.place(number)
        _check_test(each, where)
        yield FoundTest(where, with_variables(each, file.parent, where, notes))


def _read(file: Path) -> _Read:
    if file.suffix.lower() == ".jsonl":
        records = [*records_in(file)]
        places = [each.where for each in records]
        return _Read([each.values for each in records], lambda number, *_: places[number])
    if file.suffix.lower() in YAML:
        found = read_yaml(text_of(file, MOST_YAML), str(file))
        return _Read(found.value, lambda *path: f"{file}:{found.line_of(*path)}")
    try:
        value = read_json(text_of(file, MOST_JSON))
    except ValueError as error:
        raise DataError(f"{file}: no JSON: {error}") from None
    return _Read(value, lambda *path: f"{file}, {'.'.join(map(str, path))}")


def _named(file: Path, name: str, where: str) -> Sequence[Path]:
    try:
        return referenced_files(file.parent, name)
    except DataError as error:
        raise DataError(f"{where}: {error}") from None


def _merged(default: Test, test: Test) -> Test:
    """Return a test with what a default adds: variables and labels that it has not, assertions before its own."""
    objects = {key: {**_object_of(default, key), **_object_of(test, key)} for key in ("vars", "metadata", "options")}
    before = () if objects["options"].get("disableDefaultAsserts") else default.get("assert") or ()
    return {**default, **test, **objects, "assert": [*before, *(test.get("assert") or ())]}


def _object_of(test: Test, key: str) -> Mapping[str, Any]:
    value = test.get(key)
    return value if isinstance(value, dict) else {}


def _referred(test: Test, templates: Mapping[str, Any]) -> Test:
    """Return a test whose references to assertion templates are replaced by these."""
    found = []
    for each in test.get("assert") or ():
        ref = each.get("$ref") if isinstance(each, dict) else None
        name = ref.removeprefix(_TEMPLATE) if isinstance(ref, str) else None
        template = templates.get(name) if name is not None else None
        found.append({**template, **{k: v for k, v in each.items() if k != "$ref"}} if template else each)
    return {**test, "assert": found}


def _expanded(tests: Iterator[FoundTest]) -> Iterator[FoundTest]:
    """Yield a test for each combination of variables that are lists, as promptfoo makes them."""
    for where, test in tests:
        variables = _object_of(test, "vars")
        lists = {name: value for name, value in variables.items() if isinstance(value, list) and value}
        if _object_of(test, "options").get("disableVarExpansion"):
            lists = {}
        if (count := prod(map(len, lists.values()))) > _MOST_COMBINATIONS:
            raise DataError(f"{where}: its variables have {count:,} combinations; {_MOST_COMBINATIONS:,} are read.")
        for values in product(*lists.values()):
            yield FoundTest(where, {**test, "vars": {**variables, **dict(zip(lists, values, strict=True))}})


def _check_test(value: Any, where: str) -> None:
    if not isinstance(value, dict):
        raise DataError(f"{where}: a test was expected, an object with vars and assert; found {value!r:.60}.")
    if not isinstance(asserted := value.get("assert") or [], list):
        raise DataError(f"{where}: assert was expected to be a list; found {asserted!r:.60}.")
