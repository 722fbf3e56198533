"""Is the chat endpoint there, and does it take the key? One request, for its list of models; nothing is generated."""

from __future__ import annotations

from rag_harness.commands.checkup.presence import Presence
from rag_harness.settings import Settings
from rag_harness.settings.profiles import EMBEDDED_URL

_SECONDS = 10
_REFUSED = (401, 403)
_SERVER_FAULT = 500


def chat_server(settings: Settings) -> Presence:
    """Ask the chat endpoint for its models. The key goes to that server alone: a redirection is not followed."""
    import httpx2

    url, key, what = settings.chat_base_url, settings.chat_key, "chat endpoint"
    if url in ("", EMBEDDED_URL):
        return Presence("ok", what, f"none: {settings.chat_model} answers in this process")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        status = httpx2.get(f"{url.rstrip('/')}/models", headers=headers, timeout=_SECONDS).status_code
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        remedy = "is it running, is base_url of its role answer right, is there a proxy between?"
        return Presence("broken", what, f"{url} cannot be reached: {type(error).__name__}", remedy)
    if status in _REFUSED:
        said = "the key that is set" if key else "a request without a key"
        return Presence("broken", what, f"{url} refuses {said} (HTTP {status})", "set the key of this endpoint")
    if status >= _SERVER_FAULT:
        return Presence("broken", what, f"{url} answers with HTTP {status}", "see the log of that server")
    return Presence("ok", what, f"{url} answers (HTTP {status})")
