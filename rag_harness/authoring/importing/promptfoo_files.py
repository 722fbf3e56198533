"""The files of promptfoo: configs, CSV, variables, and texts in files beside them."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from rag_harness.authoring.importing.records import Notes
from rag_harness.core.errors import DataError
from rag_harness.core.files import FILE, referenced_files
from rag_harness.core.json_text import read_json
from rag_harness.data.record_files import MOST_JSON, MOST_YAML, is_table, read_yaml, records_in
from rag_harness.data.source_records import text_of

# Types of assertions of promptfoo, and what they are here. expectations.md has the same table for people.

OF_TEXT: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "contains": ("contains", {"case": True}),
    "icontains": ("contains", {}),
    "starts-with": ("starts_with", {"case": True}),
    "equals": ("equals", {"case": True}),
    "regex": ("regex", {"case": True}),
    "finish-reason": ("finishes", {}),
}
"""Types whose value is a text: our kind and its options."""
OF_TEXTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "contains-any": ("contains_any", {"case": True}),
    "contains-all": ("contains_all", {"case": True}),
    "icontains-any": ("contains_any", {}),
    "icontains-all": ("contains_all", {}),
}
"""Types whose value is a list of texts."""
OF_THRESHOLD: Mapping[str, str] = {"latency": "max_ms", "cost": "max_usd"}
"""Types whose threshold is what is demanded."""
OF_LIKENESS: Mapping[str, str] = {"rouge-n": "rouge_l", "similar": "similar", "similar:cosine": "similar"}
"""Types of a text and a threshold, 0.75 where none is stated."""
OF_CRITERION = ("llm-rubric", "g-eval", "model-graded-closedqa")
"""Types of a criterion in words."""
JUDGED: Mapping[str, str] = {
    "answer-relevance": "answer_relevancy",
    "context-recall": "context_recall",
    "context-relevance": "context_precision",
    "context-faithfulness": "faithfulness",
    "factuality": "answer_correctness",
    "model-graded-factcheck": "answer_correctness",
}
"""Types that are judged measures here."""
WITH_REFERENCE = ("context-recall", "factuality", "model-graded-factcheck", "equals", "similar", "similar:cosine")
"""Types whose value is the right answer; the first of a test counts."""

_LITTLE = "it says little of answers; token_f1 and rouge_l say more"
_CODE = "code, which is not run: write a kind of expectation of your own (docs/how-to/expectations.md)"
_FORMAT = "a format that answers of a RAG system do not have"
_SERVICE = "a service of others"
_TOOLS = "calls of tools and steps are not demanded by a line of questions"
_WEB = "asks the web or an agent"
_COMPARES = "a comparison of experiments says more: rag-harness report"
_PERPLEXITY = "needs log-probabilities of the answering model"
UNMATCHED: Mapping[str, str] = {
    **dict.fromkeys(("levenshtein", "bleu", "gleu", "meteor"), _LITTLE),
    **dict.fromkeys(("javascript", "python", "ruby", "webhook"), _CODE),
    **dict.fromkeys(("is-html", "contains-html", "is-sql", "contains-sql", "is-xml", "contains-xml"), _FORMAT),
    **dict.fromkeys(("moderation", "classifier", "pi", "guardrails", "guardrail"), _SERVICE),
    **dict.fromkeys(("perplexity", "perplexity-score"), _PERPLEXITY),
    **dict.fromkeys(("select-best", "max-score"), _COMPARES),
    **dict.fromkeys(("search-rubric", "research-rubric", "agent-rubric", "video-rubric"), _WEB),
    **dict.fromkeys(
        (
            "is-valid-function-call",
            "is-valid-openai-function-call",
            "is-valid-openai-tools-call",
            "tool-call-f1",
            "skill-used",
        ),
        _TOOLS,
    ),
    "contains-json": "JSON inside other text; ask the pipeline for JSON, and is_json or json finds it",
    "conversation-relevance": "of a whole conversation; a rubric on its turns says it",
    "noise-sensitivity": "a judged measure here: --rag-measures=noise_sensitivity",
    "human": "a person: rag-harness judge sample",
    "similar:dot": "another likeness than the cosine",
    "similar:euclidean": "another likeness than the cosine",
}
"""Types without a counterpart, each with the reason."""
UNMATCHED_BEGINNINGS: Mapping[str, str] = {
    "trajectory:": _TOOLS,
    "trace-": _TOOLS,
    "promptfoo:redteam:": "an attack; docs/how-to/metamorphic.md has injections",
}
"""Beginnings of such types."""
TYPES = frozenset(
    {*OF_TEXT, *OF_TEXTS, *OF_THRESHOLD, *OF_LIKENESS, *OF_CRITERION, *JUDGED, *UNMATCHED, "is-json", "is-refusal",
     "word-count", "assert-set"}
)  # fmt: skip
"""All types that are known."""


def why_unmatched(kind: str) -> str:
    """Return why a type has no counterpart."""
    if kind in UNMATCHED:
        return UNMATCHED[kind]
    return next((why for begin, why in UNMATCHED_BEGINNINGS.items() if kind.startswith(begin)), "an unknown type")


# A row of promptfoo's CSV as a test: variables, ``__expected`` columns, labels.
#
# ``contains: Paris``, ``similar(0.8): Hello``, ``not-contains-any: a, "b, c"``; a text without a type is ``equals``.

_CONFIG = re.compile(r"__config:__expected(\d{0,4}):(\w{1,80})")
_EXPECTED = re.compile(r"__expected(\d{0,4})")
_THRESHOLD = re.compile(r"\((\d{1,12}(?:\.\d{1,12})?)\)")
_SCRIPT = {"javascript": "javascript", "fn": "javascript", "eval": "javascript", "python": "python"}
_RUBRIC = {"grade": "llm-rubric"}
_USUAL = {"similar": 0.8, "rouge-n": 0.75}
"""Thresholds of a compact text that states none."""
_METADATA = "__metadata:"
_OPTIONS = {"__prefix": "prefix", "__suffix": "suffix"}


def row_as_test(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as a test of a config has it. Columns that promptfoo does not know are variables."""
    configs = {found.groups(): value for name, value in row.items() if (found := _CONFIG.fullmatch(name)) and value}
    test: dict[str, Any] = {"vars": {}, "assert": [], "metadata": {}, "options": {}}
    for name, value in row.items():
        if found := _EXPECTED.fullmatch(name):
            if value and value.strip():
                test["assert"].append({**assertion_of(value), **_config(configs, found[1])})
        elif name.startswith(_METADATA):
            key = name.removeprefix(_METADATA)
            test["metadata"][key.removesuffix("[]")] = _listed(value or "") if key.endswith("[]") else value
        elif name in _OPTIONS:
            test["options"][_OPTIONS[name]] = value
        elif name in ("__description", "__threshold", "__providerOutput"):
            test[name[2:]] = value
        elif not name.startswith(("__config:", "__metric")):
            test["vars"][name] = value or ""
    return test


def _config(configs: Mapping[tuple[str | Any, ...], Any], number: str) -> dict[str, Any]:
    """Return the configuration of an assertion: that for all ``__expected`` columns, and that for its own column."""
    own = {key: value for (of, key), value in configs.items() if of in ("", number)}
    return {key: _as_number(value) if key in ("threshold", "weight") else value for key, value in own.items()}


def assertion_of(text: str) -> dict[str, Any]:
    """Return the assertion that a compact text means."""
    head, colon, rest = text.partition(":")
    if colon and head in _SCRIPT | _RUBRIC:
        return {"type": (_SCRIPT | _RUBRIC)[head], "value": rest.strip()}
    if text.startswith("file://"):
        return {"type": "python" if ".py" in text else "javascript", "value": text}
    kind, rest = _known_type(text)
    bare = kind.removeprefix("not-")
    if not kind:
        return {"type": "equals", "value": text}
    stated = _THRESHOLD.match(rest)
    rest = rest[stated.end() :] if stated else rest
    if rest and not rest.startswith(":"):
        return {"type": "equals", "value": text}
    value = rest[1:].strip()
    threshold = float(stated[1]) if stated else _USUAL.get(bare)
    return {
        "type": kind,
        "value": _listed(value) if bare in OF_TEXTS else value or None,
        **({} if threshold is None else {"threshold": threshold}),
    }


def _known_type(text: str) -> tuple[str, str]:
    """Return the type that a text begins with, and the rest of the text; the longest of several types."""
    bare = text.removeprefix("not-")
    begin = next((each for each in UNMATCHED_BEGINNINGS if bare.startswith(each)), "")
    if begin:
        name = re.split(r"[(:\s]", bare[len(begin) :], maxsplit=1)[0]
        found = f"{begin}{name}"
    else:
        found = max((each for each in TYPES if bare.startswith(each)), key=len, default="")
    return (text[: len(text) - len(bare)] + found, bare[len(found) :]) if found else ("", text)


def _listed(text: str) -> list[str]:
    r"""Return the texts between commas. A text with a comma is in quotes, or has ``\,``."""
    # A line break in a text does not end a row, but csv takes it for an end.
    plain = text.replace("\\,", "\0").replace("\n", "\1").replace("\r", "\2")
    rows: Iterator[list[str]] = csv.reader([plain], skipinitialspace=True)
    found = [each.replace("\0", ",").replace("\1", "\n").replace("\2", "\r").strip() for each in next(rows, [])]
    return [each for each in found if each]


def _as_number(value: Any) -> Any:
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


# Texts that a config keeps in files beside it: ``file://parts/a.txt``. No code is run, nothing else is read.

_TEXTS = (".txt", ".md")
_VALUES = (".json", ".yaml", ".yml")
_SHOWN = 60
_MOST = 4 << 20
"""The most bytes of such a file."""


class UnreadFileError(ValueError):
    """A file cannot be read as a text; the message says why, for behind a colon."""


def is_file(value: Any) -> TypeGuard[str]:
    """Return whether a value names a file in place of a text."""
    return isinstance(value, str) and value.startswith(FILE)


def text_beside(name: str, folder: Path) -> str:
    """Return the text of a file as a variable has it: YAML is written as JSON, as promptfoo does.

    Args:
        name: the file, with or without ``file://``.
        folder: the folder of the config.

    Raises:
        UnreadFileError: the file is missing, of another kind, malformed, or not below the folder.
    """
    value = value_beside(name, folder)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def value_beside(name: str, folder: Path) -> Any:
    """Return the content of a file: a text, or the value of JSON or YAML.

    Raises:
        UnreadFileError: as ``text_beside``.
    """
    shown = name.removeprefix(FILE)
    if "*" in shown:
        raise UnreadFileError(f"{shown} names several files: name each")
    ending = Path(shown).suffix.lower()
    if ending not in (*_TEXTS, *_VALUES):
        raise UnreadFileError(f"{shown} is none of {', '.join((*_TEXTS, *_VALUES))}")
    try:
        (file,) = referenced_files(folder, shown)
        text = text_of(file, _MOST)
        if ending in _TEXTS:
            return text.strip()
        return read_json(text) if ending == ".json" else read_yaml(text, shown).value
    except (DataError, OSError) as error:
        raise UnreadFileError(str(error).rstrip(".")) from None
    except ValueError as error:
        raise UnreadFileError(f"{shown}: {error}") from None


def with_variables(test: Mapping[str, Any], folder: Path, where: str, notes: Notes) -> Mapping[str, Any]:
    """Return a test with its variables, read from the files that it names. Unreadable files are noted."""
    stated = test.get("vars")
    named = [stated] if isinstance(stated, str) else stated if isinstance(stated, list) else None
    if named is None:
        return test
    variables: dict[str, Any] = {}
    for each in named:
        try:
            value = value_beside(each, folder) if isinstance(each, str) else each
            if not isinstance(value, dict):
                raise UnreadFileError(f"{str(each)[:_SHOWN]} holds no object of variables")
            variables |= value
        except UnreadFileError as error:
            notes.lose(f"variables in a file: {error}", where)
    return {**test, "vars": variables}


# Code is not run and nothing is fetched: tests that come of code or of the web are noted.

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


class _ParsedFile(NamedTuple):
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
        yield from _expanded(_tests_in_config(file, read, notes))


def _of_config(file: Path, read: _ParsedFile, notes: Notes) -> Iterator[FoundTest]:
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


def _of_scenarios(file: Path, read: _ParsedFile, notes: Notes) -> Iterator[FoundTest]:
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


def _entries(
    file: Path, entries: Any, read: _ParsedFile, path: Sequence[str | int], notes: Notes
) -> Iterator[FoundTest]:
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
        yield from _of_rows(each) if is_table(each) else _tests_in_config(each, _read(each), notes)


def _of_rows(file: Path) -> Iterator[FoundTest]:
    yield from (FoundTest(each.where, row_as_test(each.values)) for each in records_in(file))


def _tests_in_config(file: Path, read: _ParsedFile, notes: Notes) -> Iterator[FoundTest]:
    entries = read.value if isinstance(read.value, list) else [read.value]
    for number, each in enumerate(entries):
        where = read.place(number)
        _check_test(each, where)
        yield FoundTest(where, with_variables(each, file.parent, where, notes))


def _read(file: Path) -> _ParsedFile:
    if file.suffix.lower() == ".jsonl":
        records = [*records_in(file)]
        places = [each.where for each in records]
        return _ParsedFile([each.values for each in records], lambda number, *_: places[number])
    if file.suffix.lower() in YAML:
        found = read_yaml(text_of(file, MOST_YAML), str(file))
        return _ParsedFile(found.value, lambda *path: f"{file}:{found.line_of(*path)}")
    try:
        value = read_json(text_of(file, MOST_JSON))
    except ValueError as error:
        raise DataError(f"{file}: no JSON: {error}") from None
    return _ParsedFile(value, lambda *path: f"{file}, {'.'.join(map(str, path))}")


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


# Variables in the texts of a config: ``{{name}}``. Filters, conditions and code are left to promptfoo.

_NAME = re.compile(r"\{\{[ \t]{0,20}([A-Za-z_][A-Za-z0-9_.]{0,80})[ \t]{0,20}\}\}")


class TemplateLeftError(ValueError):
    """A text asks for more than variables that are known."""


def filled(value: Any, variables: Mapping[str, Any]) -> Any:
    """Return a value with its variables filled in, also inside lists and objects.

    Raises:
        TemplateLeftError: a text has a filter, a condition or an unknown variable.
    """
    if isinstance(value, list):
        return [filled(each, variables) for each in value]
    if isinstance(value, dict):
        return {key: filled(each, variables) for key, each in value.items()}
    if not isinstance(value, str) or ("{{" not in value and "{%" not in value):
        return value
    parts = _NAME.split(value)
    texts = [_text(part, variables) if place % 2 else _checked(part) for place, part in enumerate(parts)]
    return "".join(texts)


def _text(name: str, variables: Mapping[str, Any]) -> str:
    if name not in variables or isinstance(variables[name], (list, dict)):
        raise TemplateLeftError(f"the variable {name!r} is not text of the test")
    return str(variables[name])


def _checked(text: str) -> str:
    if "{{" in text or "{%" in text:
        raise TemplateLeftError(f"the template {text[max(0, text.find('{')) :][:40]!r} is more than a variable")
    return text
