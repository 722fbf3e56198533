"""Tables of endpoints and numbers of the reliability engine: what is read, refused or removed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, fields, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import RagHarnessError, SettingsError
from rag_harness.core.settings import Settings, env_name, masked, options
from rag_harness.core.settings.configurations import NORMAL, STRICT, USUAL, ReliabilityNumbers, reliability_numbers
from rag_harness.core.settings.endpoints import EndpointSpec, read_endpoint, read_endpoints
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.settings.removed import RARE_TABLE, REMOVED
from rag_harness.diagnosis.tuning.space import read_space
from rag_harness.frontends.pytest_plugin.options import hint_at_misspelt
from rag_harness.pipelines.endpoint.experiment import build
from rag_harness.pipelines.parts import RunParts
from rag_harness.runs.distributed.ledger import share_of

URL = 'url = "http://127.0.0.1:8000/query"\n'


def read(folder: Path, text: str, name: str = "my_service") -> EndpointSpec:
    file = folder / f"{name}.toml"
    file.write_text(text, encoding="utf-8")
    return read_endpoint(file)


def test_an_address_is_enough(tmp_path: Path) -> None:
    spec = read(tmp_path, URL)
    assert (spec.name, spec.kind, spec.method) == ("my_service", "json", "POST")
    assert (json.loads(spec.body), spec.read.answer) == ({"query": "{{query}}"}, "answer")


def test_a_file_may_name_its_experiment(tmp_path: Path) -> None:
    assert read(tmp_path, f'name = "prod"\n{URL}').name == "prod"


def test_a_body_is_a_table_or_json(tmp_path: Path) -> None:
    table = read(tmp_path, URL + '[body]\nq = "{{query}}"\nk = 5\n')
    text = read(tmp_path, URL + """body = '{"q": "{{query}}", "k": 5}'\n""")
    assert json.loads(table.body) == json.loads(text.body) == {"q": "{{query}}", "k": 5}


def test_a_get_sends_nothing(tmp_path: Path) -> None:
    spec = read(tmp_path, 'url = "http://h/s?q={{query}}"\nmethod = "get"\n')
    assert (spec.method, spec.body) == ("GET", "")


def test_an_empty_body_is_none(tmp_path: Path) -> None:
    assert read(tmp_path, 'url = "http://h/s?q={{query}}"\nbody = ""\n').body == ""
    with pytest.raises(SettingsError, match="body is not JSON"):
        read(tmp_path, URL + 'kind = "openai"\nmodel = "m"\nbody = ""\n')


def test_a_chat_endpoint_is_asked_as_chat_endpoints_are(tmp_path: Path) -> None:
    spec = read(tmp_path, URL + 'kind = "openai"\nmodel = "m"\n[body]\ntemperature = 0\n')
    body = json.loads(spec.body)
    assert (body["model"], body["stream"], body["temperature"]) == ("m", True, 0)
    assert body["messages"] == "{{messages}}"
    assert spec.read.answer == "choices[0].message.content"


def test_a_body_that_speaks_of_streaming_has_the_last_word(tmp_path: Path) -> None:
    spec = read(tmp_path, URL + 'kind = "openai"\nmodel = "m"\nbody = {stream = false}\n')
    assert json.loads(spec.body).keys() == {"model", "messages", "stream"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no url"),
        ('ulr = "http://x"', "Unknown key 'ulr'. Did you mean 'url'?"),
        ('url = "ftp://x"', "expected http://"),
        ('url = "http://"', "expected http://"),
        ('url = "http://h:port/"', "url is"),
        ('url = "http://u:p@h/"', "holds a user or a password"),
        ('url = "http://h/?api_key=abc"', 'Name its variable there: "${API_KEY}"'),
        (URL + "url = 3", "is not TOML"),
        ("url = 3", "url is 3: expected a string"),
        (URL + 'kind = "grpc"', "Unknown kind 'grpc'"),
        (URL + "timeout = -1", "timeout is -1: expected a number, 0 or more"),
        (URL + "concurrency = 1.5", "expected a whole number"),
        (URL + "rpm = true", "rpm is True"),
        (URL + "usd_per_call = inf", "usd_per_call is inf"),
        (URL + "headers = 1", "headers is int"),
        (URL + "headers = {a = 1}", "header 'a' is not a string"),
        (URL + "read = 1", "read is 1: expected a table"),
        (URL + '[read]\nanwser = "a"', "Unknown key 'anwser'. Did you mean 'answer'?"),
        (URL + "[read]\nanswer = 1", "answer is 1: expected a string"),
        (URL + '[stream]\ntokens = "a"', "Did you mean 'token'?"),
        (URL + "body = '{'", "body is not JSON"),
        (URL + "body = '3'", "expected an object or a list"),
        (URL + "body = {at = 2026-01-01}", "Write dates in quotes"),
        (URL + 'body = {key = "${KEY}"}', "body holds ${KEY}"),
        (URL + 'kind = "mcp"', "has no tool"),
        (URL + 'kind = "openai"', "has no model"),
        (URL + 'arguments = {q = "{{query}}"}', "arguments is not read where kind is"),
        ('name = "a b"\n' + URL, "is not a name for an experiment"),
        ('name = "golden"\n' + URL, "is not a name for an experiment"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SettingsError) as error:
        read(tmp_path, text)
    assert said in str(error.value)
    assert "my_service.toml" in str(error.value)


@pytest.mark.parametrize(
    "header",
    [
        'authorization = "Bearer abcdefgh"',
        'x-api-key = "abc"',
        'x-tenant = "sk-abcdefgh12345"',
        'x-tenant = "Bearer ${KEY} sk-abcdefgh12345 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"',
        'cookie = "session=1"',
    ],
)
def test_a_secret_in_a_header_is_refused_and_not_repeated(tmp_path: Path, header: str) -> None:
    with pytest.raises(SettingsError, match="holds a secret") as error:
        read(tmp_path, f"{URL}[headers]\n{header}\n")
    assert header.partition('"')[2].rstrip('"') not in str(error.value)


def test_a_header_may_name_a_variable_or_say_what_is_no_secret(tmp_path: Path) -> None:
    spec = read(tmp_path, URL + '[headers]\nauthorization = "Bearer ${MY_KEY}"\nx-tenant = "study"\n')
    assert dict(spec.headers) == {"authorization": "Bearer ${MY_KEY}", "x-tenant": "study"}


@pytest.mark.parametrize("header", ['x-name = "Müller"', '"x name" = "a"', '"" = "a"'])
def test_what_can_be_no_header_is_refused(tmp_path: Path, header: str) -> None:
    with pytest.raises(SettingsError, match=r"not a string of one line of ASCII|not a name of a header"):
        read(tmp_path, f"{URL}[headers]\n{header}\n")


@pytest.mark.parametrize("name", ["skip", "xfail", "parametrize"])
def test_a_marker_that_does_something_is_no_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingsError, match="is not a name for an experiment"):
        read(tmp_path, URL, name)


@pytest.mark.parametrize("name", ["missing.toml", "."])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        read_endpoints(tmp_path, [name])


def project(folder: Path, **urls: str) -> Path:
    tables = [f'[tool.rag_harness.endpoints.{name}]\nurl = "{url}"\n' for name, url in urls.items()]
    (folder / "pyproject.toml").write_text("\n".join(tables))
    return folder


def test_pyproject_and_files_together(tmp_path: Path) -> None:
    read(project(tmp_path, a="http://a/"), URL, "b")
    settings = load_settings({"endpoint": ["b.toml"]}, rootdir=tmp_path)
    assert [spec.name for spec in settings.endpoints] == ["a", "b"]
    assert hash(settings) == hash(load_settings({"endpoint": ["b.toml"]}, rootdir=tmp_path))


def test_two_of_one_name_are_refused(tmp_path: Path) -> None:
    read(project(tmp_path, b="http://a/"), URL, "b")
    with pytest.raises(SettingsError, match=r"Two endpoints are called 'b': pyproject.toml.* and .*b.toml"):
        load_settings({"endpoint": ["b.toml"]}, rootdir=tmp_path)


def test_a_table_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.rag_harness.endpoints]\nmine = 3\n")
    with pytest.raises(SettingsError, match=r"endpoints.mine\] is 3: expected a table"):
        load_settings(rootdir=tmp_path)


def test_the_settings_hold_the_name_of_a_key_and_not_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-planted-0123456789")
    read(tmp_path, URL + '[headers]\nauthorization = "Bearer ${MY_KEY}"\n')
    settings = load_settings({"endpoint": ["my_service.toml"]}, rootdir=tmp_path)
    said = f"{settings!r} {masked(settings)}"
    assert "${MY_KEY}" in said
    assert "planted" not in said


def test_each_worker_gets_its_part_of_the_caps() -> None:
    spec = EndpointSpec("a", "http://a/", concurrency=8, rpm=60.0)
    settings: Any = replace(Settings(), endpoints=(spec,))
    (share,) = share_of(settings, 4).endpoints
    assert (share.concurrency, share.rpm) == (2, 15.0)


# Any value under any key of a service's or a space's TOML is read, or refused by our error that names the file.

SCHEMAS = Path(__file__).parents[4] / "docs/schemas"
VALUES = (
    *("0", "-1", "3.5", "nan", "inf", "9" * 400, "true", "1979-05-27", "1979-05-27T07:32:00Z", "07:32:00"),
    *('""', '"x"', '"$"', '"$["', '"("', '"{{"', '"{{query}"', '"${"', '"{}"', '"[]"', '"3"', '"NaN"', '"\\u0000"'),
    *('"http://["', '"http://h:99999"', "[]", "[1]", '["a"]', "[[]]", "[{}]", "[nan]", "[1979-05-27]"),
    *("'" + "[" * depth + "]" * depth + "'" for depth in (900, 2_000)),
    *("{}", "{a = 1}", "{a = {}}", '{a = "x"}', "{a = [1]}", "{a = nan}", "{a = 1979-05-27}", "[{contains = 1}]"),
)
DEEPEST = "'" + "[" * 200_000 + "]" * 200_000 + "'"
"""More than the stack of a parser in C bears. TOML takes 50 ms for it, most of all the others together."""
JSON_TEXTS = ("body", "arguments")
"""How keys end whose values may be JSON in a text."""
UNREADABLE = ("[" * 3000, "9" * 5000)
SERVICES = {
    "json": ['url = "http://127.0.0.1:9/ask"'],
    "get": ['url = "http://127.0.0.1:9/ask?q={{query}}"', 'method = "GET"'],
    "sse": ['url = "http://127.0.0.1:9/ask"', 'kind = "sse"'],
    "openai": ['url = "http://127.0.0.1:9/v1"', 'kind = "openai"', 'model = "m"'],
    "mcp": ['url = "http://127.0.0.1:9/mcp"', 'kind = "mcp"', 'tool = "ask"'],
    "traces": ['url = "http://127.0.0.1:9/ask"', 'traces = "otlp"'],
    "session": [
        'url = "http://127.0.0.1:9/ask"',
        'headers.x-session = "{{session}}"',
        'session.path = "id"',
        'session.open.url = "/new"',
    ],
}
SPACE = ['objective = "evidence_recall"', "parameters.top_k = [3, 5]"]


def keys(schema: Any, before: str = "") -> Iterator[str]:
    for name, inside in schema.get("properties", {}).items():
        yield f"{before}{name}"
        yield from keys(inside, f"{before}{name}.")


def keys_of(name: str) -> list[str]:
    return [*keys(json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))), "unknown"]


def written(folder: Path, lines: list[str], key: str, value: str) -> Path:
    """Write a file in which the value takes the place of what stood under its key."""
    kept = [each for each in lines if not f"{each.partition(' = ')[0]}.".startswith(f"{key}.")]
    file = folder / "svc.toml"
    file.write_text("\n".join([*kept, f"{key} = {value}", ""]), encoding="utf-8")
    return file


def read_any(reader: Callable[[Path], Any], file: Path) -> Any:
    """Return what the file describes; None where it is refused."""
    try:
        return reader(file)
    except SettingsError as refused:
        said = str(refused)
    assert str(file) in said, said
    return None


def faults(
    lines: list[str],
    keys: Iterable[str],
    read_whole: Callable[[Path], object],
    folder: Path,
    deepest: tuple[str, ...] = JSON_TEXTS,
) -> Iterator[str]:
    """Yield each key with a value that is neither read nor refused by an error that names the file."""
    for key in keys:
        for value in (*VALUES, *([DEEPEST] if key.endswith(deepest) else ())):
            file = written(folder, lines, key, value)
            try:
                read_whole(file)
            except Exception as error:
                yield f"{key} = {value[:40]}: {error!r:.200}"


def faults_of_service(
    service: str, keys: Iterable[str], folder: Path, deepest: tuple[str, ...] = JSON_TEXTS
) -> list[str]:
    parts = RunParts(Settings(rootdir=str(folder), mode="replay"))

    def built(file: Path) -> None:
        spec = read_any(read_endpoint, file)
        if spec is not None:
            with suppress(RagHarnessError):
                build(spec, parts)

    return [f"{service}: {fault}" for fault in faults(SERVICES[service], keys, built, folder, deepest)]


ENDPOINT = [*keys_of("endpoint"), "arguments", "headers.x", "headers.authorization"]
OWN = {
    "json": ("",),
    "get": ("url", "method", "body"),
    "sse": ("url", "kind", "stream", "body", "arguments"),
    "openai": ("url", "kind", "model", "body", "arguments"),
    "mcp": ("url", "kind", "tool", "body", "arguments"),
    "traces": ("url", "traces"),
    "session": ("url", "headers", "history", "session"),
}
"""How keys begin that one service reads otherwise than a JSON service does, which is asked for every key."""


@pytest.mark.parametrize("service", SERVICES)
def test_a_service(service: str, tmp_path: Path) -> None:
    keys = [key for key in ENDPOINT if key.startswith(OWN[service])]
    assert keys
    assert not (found := faults_of_service(service, keys, tmp_path)), "\n".join(found)


@pytest.mark.long
@pytest.mark.parametrize("service", SERVICES)
def test_every_key_of_a_service(service: str, tmp_path: Path) -> None:
    assert not (found := faults_of_service(service, ENDPOINT, tmp_path, ("",))), "\n".join(found)


def test_a_space(tmp_path: Path) -> None:
    keys = [*keys_of("space"), "parameters.top_k", "parameters.top_k.values", "parameters.top_k.if"]
    assert not (found := [*faults(SPACE, keys, lambda file: read_any(read_space, file), tmp_path)]), "\n".join(found)


@pytest.mark.parametrize("value", UNREADABLE, ids=["deep", "many digits"])
def test_what_toml_itself_cannot_read(value: str, tmp_path: Path) -> None:
    """Under which key it stands does not matter."""
    assert read_any(read_endpoint, written(tmp_path, SERVICES["json"], "name", value)) is None
    assert read_any(read_space, written(tmp_path, SPACE, "name", value)) is None


@pytest.mark.parametrize(
    ("body", "expected"),
    [("3", "3: expected an object: "), ("[1]", r"\[1\]: expected an object: "), ("true", "True: expected an object: ")],
)
def test_a_chat_endpoint_whose_body_has_no_names(body: str, expected: str, tmp_path: Path) -> None:
    file = written(tmp_path, SERVICES["openai"], "body", body)
    with pytest.raises(SettingsError, match=f"^{re.escape(str(file))}: body is {expected}"):
        read_endpoint(file)


# Thresholds and weights of the reliability engine: from pyproject.toml and options, and what is refused.

TABLE = """
[tool.rag_harness.reliability]
thresholds = { passed = 0.65, warned = 0.3 }
strict.passed = 0.9
weights = { relevance = 0.7, margin = 0.1, coverage = 0.2, dispersion = 0 }
formula = { alpha = 1, beta = 0.0 }
"""

DOCS = Path(__file__).parents[4] / "docs"


def read_numbers(root: Path, table: str = "") -> object:
    (root / "pyproject.toml").write_text(table, encoding="utf-8")
    return load_settings(rootdir=root).reliability_numbers


def test_a_suite_that_sets_none_has_none(tmp_path: Path) -> None:
    assert read_numbers(tmp_path) is None
    assert reliability_numbers(tmp_path / "no such folder") is None


def test_a_table_replaces_what_it_names_and_leaves_the_rest(tmp_path: Path) -> None:
    assert read_numbers(tmp_path, TABLE) == ReliabilityNumbers(
        replace(NORMAL, passed=0.65, warned=0.3),
        replace(STRICT, passed=0.9),
        replace(USUAL.weights, relevance=0.7, margin=0.1, coverage=0.2, dispersion=0.0),
        replace(USUAL.formula, alpha=1.0, beta=0.0),
    )


@pytest.mark.parametrize(
    ("inside", "said"),
    [
        ("threshold.passed = 0.7", "Unknown key 'threshold'. Did you mean 'thresholds'?"),
        ("thresholds.pased = 0.7", ".thresholds]: Unknown key 'pased'. Did you mean 'passed'?"),
        ("strict.go-on = 0.7", ".strict]: Unknown key 'go-on'. Did you mean 'go_on'?"),
        ("weights.relevence = 0.4", "Unknown key 'relevence'. Did you mean 'relevance'?"),
        ("thresholds = 0.7", ".thresholds] is 0.7: expected a table of numbers."),
        ("thresholds.passed = 1.4", "passed is 1.4: expected a number from 0 to 1."),
        ("thresholds.passed = -0.1", "passed is -0.1: expected a number from 0 to 1."),
        ("thresholds.passed = nan", "passed is nan: expected a number from 0 to 1."),
        ("thresholds.passed = true", "passed is True: expected a number from 0 to 1."),
        ("thresholds.passed = '0.7'", "passed is '0.7': expected a number from 0 to 1."),
        (
            "weights.relevance = 0.5",
            "the sum of relevance 0.5, margin 0.2, coverage 0.2, dispersion 0.2 is 1.1, but must be 1.",
        ),
        ("formula.alpha = 0.6", "the sum of alpha 0.6, beta 0.5 is 1.1, but must be 1."),
        ("thresholds.warned = 0.61", "in thresholds, warned 0.61 is more than passed 0.6."),
        ("strict.fallback = 0.66", "in strict, fallback 0.66 is more than go_on 0.65."),
        ("thresholds.passed = 0.75", "passed is 0.75, but strict.passed is 0.7: mode strict may not ask for less."),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(tmp_path: Path, inside: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read_numbers(tmp_path, f"[tool.rag_harness.reliability]\n{inside}\n")
    assert said in str(caught.value)


def test_weights_that_are_no_exact_floats_have_the_sum_1(tmp_path: Path) -> None:
    weights = {"relevance": 0.7, "margin": 0.2, "coverage": 0.1, "dispersion": 0}
    assert reduce(add, weights.values()) != 1  # sum() is exact since Python 3.12
    lines = "\n".join(f"{name} = {value}" for name, value in weights.items())
    assert read_numbers(tmp_path, f"[tool.rag_harness.reliability.weights]\n{lines}\n") is not None


def test_the_numbers_as_shipped() -> None:
    """A calibration names the numbers of a suite only where they are others. So who changes these, calibrates anew."""
    assert asdict(USUAL) == {
        "thresholds": {
            **{"go_on": 0.55, "fallback": 0.35, "relevance": 0.35, "coverage": 0.5, "grounded": 0.7},
            **{"claim": 0.5, "agreement": 0.5, "passed": 0.6, "warned": 0.2},
        },
        "strict": {
            **{"go_on": 0.65, "fallback": 0.45, "relevance": 0.5, "coverage": 0.6, "grounded": 0.8},
            **{"claim": 0.6, "agreement": 0.7, "passed": 0.7, "warned": 0.4},
        },
        "weights": {"relevance": 0.4, "margin": 0.2, "coverage": 0.2, "dispersion": 0.2},
        "formula": {"alpha": 0.5, "beta": 0.5, "gamma": 0.5},
    }


def test_the_table_of_the_page_is_read(tmp_path: Path) -> None:
    (shown,) = re.findall(r"```toml\n(.*?)```", (DOCS / "how-to" / "reliability.md").read_text(encoding="utf-8"), re.S)
    found = read_numbers(tmp_path, shown)
    assert isinstance(found, ReliabilityNumbers)
    assert (found.thresholds.passed, found.strict.passed, found.formula.beta) == (0.65, 0.8, 0.4)


def test_the_reference_has_every_threshold_with_its_default() -> None:
    page = (DOCS / "reference" / "reliability.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`\w+`, `\w+`|`\w+`) \| ([\d., ]+) \| ([\d., ]+) \|", page, re.M)
    told: dict[str, tuple[float, float]] = {}
    for names, normal, strict in rows:
        values = zip(map(float, normal.split(",")), map(float, strict.split(",")), strict=True)
        told |= dict(zip(re.findall(r"\w+", names), values, strict=True))
    strict_ones = asdict(STRICT)
    assert told == {name: (value, strict_ones[name]) for name, value in asdict(NORMAL).items()}


# An option that was removed answers with its successor, wherever it is still written.


@pytest.mark.parametrize("name", REMOVED)
def test_each_removed_option_names_its_successor(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    flag = f"--rag-{name.replace('_', '-')}"
    with pytest.raises(SettingsError, match=rf"^{flag} is not an option any more: .+\.$"):
        hint_at_misspelt(None, ["-q", f"{flag}=1"])  # type: ignore[arg-type]
    monkeypatch.setenv(f"RAG_{name.upper()}", "1")
    with pytest.raises(SettingsError) as caught:
        load_settings(rootdir=tmp_path)
    assert str(caught.value) == f"The variable RAG_{name.upper()} is not an option any more: {REMOVED[name]}."
    assert name not in {each.name for each in options()}


def test_a_variable_of_dotenv_is_refused_too(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("RAG_SEED=3\n")
    with pytest.raises(SettingsError, match="The variable RAG_SEED is not an option any more"):
        load_settings(rootdir=tmp_path)


def rare() -> list[str]:
    return [each.name for each in fields(Settings) if each.metadata.get("place") == RARE_TABLE]


def test_what_the_rare_table_takes_are_the_options_that_name_it() -> None:
    assert sorted(rare()) == sorted(name for name, instead in REMOVED.items() if RARE_TABLE in instead)


def test_the_rare_table_sets_them(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.rag_harness.settings]\nmax_answer = 9\nqdrant_cluster = ["shards=6"]\nprecision = "bfloat16"\n'
    )
    found = load_settings(rootdir=tmp_path)
    assert (found.max_answer, found.qdrant_cluster, found.precision) == (9, ("shards=6",), "bfloat16")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "max_anser = 9",
            "pyproject.toml, [tool.rag_harness.settings]: Unknown key 'max_anser'. Did you mean 'max_answer'?",
        ),
        ("top_k = 9", "pyproject.toml, [tool.rag_harness.settings]: Unknown key 'top_k'."),
        (
            "max_answer = 0",
            "max_answer is 0: Input should be greater than or equal to 1. "
            "Set it in [tool.rag_harness.settings] of pyproject.toml.",
        ),
    ],
)
def test_what_the_rare_table_cannot_have_is_refused(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.rag_harness.settings]\n{line}\n")
    with pytest.raises(SettingsError) as caught:
        load_settings(rootdir=tmp_path)
    assert str(caught.value).startswith(said)


def test_no_variable_sets_what_a_table_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    placed = [each for each in fields(Settings) if "place" in each.metadata]
    assert {env_name(each).removeprefix("RAG_").lower() for each in placed} <= REMOVED.keys()
