"""Checks of the judge before the first query: that there is one of its name, with a server, a key and a price."""

from __future__ import annotations

from rag_harness.errors import RegistryError, SettingsError, unknown
from rag_harness.judges.traits import asks_a_model
from rag_harness.models.api_keys import check_called
from rag_harness.models.endpoints import endpoint_of
from rag_harness.models.judge_panel import settings_of_judges
from rag_harness.models.model_names import judge_name
from rag_harness.registry import registered, rivals
from rag_harness.settings import Settings, access_of
from rag_harness.settings.profiles import EMBEDDED_URL


def check_judge(settings: Settings) -> None:
    """Check the judge, or each judge of a panel, for a run that judges.

    Raises:
        SettingsError: the panel cannot be used.
        RegistryError: no judge has that name, or several have it.
        PrerequisiteError: the judge cannot be called; says why.
    """
    for each in settings_of_judges(settings):
        _check_judge(each)
    if settings.panel and settings.engine == "ray":
        raise SettingsError("A panel of judges is asked from the process of the tests: leave out --rag-engine=ray.")


def check_one_judge(settings: Settings, what: str) -> None:
    """Check the judge of ``what``, which takes one judge.

    Raises:
        PrerequisiteError: the settings name a panel, or the judge cannot be called; says why.
    """
    if "," in settings.judge or settings.panel:
        raise SettingsError(f"{what} takes one judge at a time, and --rag-judge={settings.judge} is a panel.")
    check_judge(settings)


def _check_judge(settings: Settings) -> None:
    name = judge_name(settings)
    if name not in registered("judges"):
        raise RegistryError(unknown("judge", name, registered("judges")))
    if len(found := rivals("judges", name)) > 1:
        raise RegistryError(
            f"{len(found)} judges are called {name!r}: {' and '.join(found)}. Which of them would judge is left to "
            f"chance. Uninstall one, or register yours by another name."
        )
    asked = endpoint_of(settings, "judge")
    has_no_server = asked.base_url in ("", EMBEDDED_URL)
    if not (has_no_server or access_of(settings).calls_network) or not asks_a_model(settings):
        return
    if has_no_server:
        raise SettingsError(
            f"The judge {name!r} asks a chat model, but {asked.model!r} is the reader in this process. Name one with "
            f"--rag-judge-model and base_url of the profile's role judge, or leave --rag-judge out."
        )
    check_called(settings, "judge")
