"""How to reproduce the figures of a run: the commands, and the versions and digests that they need."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from rag_harness.page.content import Block, Code, Facts, Prose
from rag_harness.page.run import Run
from rag_harness.settings import options
from rag_harness.settings.profiles import BUILT_IN_PROFILES

_NOT_SAID = frozenset(
    [
        *("output", "logs", "cache_dir", "overwrite", "rerecord", "qdrant_url"),
        *("save", "compare", "misses", "export", "gate", "report"),
    ]
)
"""Options about locations of files and printed output. Gates are those of the ini file."""


def again(run: Run) -> Iterator[Block]:
    """Yield the commands, and the versions and digests that they need."""
    yield Code([*_commands(run)])
    if not run.manifest.commit:
        yield Prose("The commit that the run was at is not known: its folder was no git repository.", "unsure")
    yield Facts([(name, said) for name, said in _met(run) if said])


def _commands(run: Run) -> Iterator[str]:
    if run.manifest.commit:
        yield f"git checkout {run.manifest.commit}"
    yield " ".join(["pytest", *_marked(list(run.experiments)), *_options(run)])
    yield "rag-harness report output -o report.html"


def _marked(experiments: Sequence[str]) -> list[str]:
    """Return the selection by markers, where all experiments have one."""
    if not experiments or not all(name.isidentifier() for name in experiments):
        return []
    return ["-m", shlex.quote(" or ".join(experiments))]


def _options(run: Run) -> Iterator[str]:
    """Yield the options whose values are neither defaults nor the profile's."""
    settings = run.manifest.settings
    profile = BUILT_IN_PROFILES.get(str(settings.get("profile", "")))
    for option in options():
        value = settings.get(option.name, option.default)
        is_list, flag = option.default == (), f"--rag-{option.name.replace('_', '-')}"
        default = [] if is_list else option.default
        given = getattr(profile, option.name, default)
        if option.name in _NOT_SAID or value in (default, given, None):
            continue
        if option.default is False:
            yield flag
        else:
            yield from (f"{flag}={shlex.quote(str(each))}" for each in (value if is_list else [value]))


def _met(run: Run) -> Iterator[tuple[str, str]]:
    """Yield versions and digests."""
    manifest = run.manifest
    yield "versions", ", ".join(f"{name} {version}" for name, version in sorted(manifest.packages.items()))
    yield "data", ", ".join(f"{name} {digest}" for name, digest in sorted(manifest.digests.items()) if digest)
    for name in run.experiments:
        yield f"fingerprint of {name}", ", ".join(run.suites[name].fingerprints)
    authors = {author: None for name in run.experiments for author in run.suites[name].authors}
    yield "panel", ", ".join(dict.fromkeys(run.suites[name].panel for name in run.experiments))
    yield "judge", "; ".join(f"{judge}, {model}, revision {revision}" for judge, model, revision in authors)
    models = [manifest.settings.get(role) for role in ("chat_model", "embed_model", "rerank_model")]
    yield "models", ", ".join(str(model) for model in models if model)
