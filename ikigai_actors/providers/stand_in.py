"""The rule by which the offline provider may answer though nobody chose it: no real model has replied before. Pure.

If nobody names a model and there is no key, the offline provider answers, so that everything can be tried. In the
history of a real model, its replies would remain, and an experiment would judge them.
"""

from collections.abc import Collection, Iterable

from ikigai_actors.providers.anthropic import AnthropicProvider
from ikigai_actors.providers.offline import OfflineProvider

_OWN = f"{OfflineProvider.name}:"
_ASK = "or ask for the offline provider: --model offline."
_NAME = "--provider MODULE:CLASS or --app MODULE:NAME, in a program ActorSystem.open(provider=...)"
UNWRITTEN = (
    "Nobody named a model and ANTHROPIC_API_KEY is not set, so only the offline provider could answer. Set the key, or "
    f"name a provider ({_NAME}), {_ASK}"
)
"""The error text with which an experiment on a history without a reply is refused."""


def notice(writer: str, known: Collection[str]) -> str:
    """Return the notice that the offline provider answers although nobody chose it.

    Args:
        writer: a model that wrote in the database, as ``provider:model``; empty when the offline one wrote everything.
        known: as for `why_silent`.
    """
    if writer:
        return why_silent(writer, known, "in this database")
    return "No ANTHROPIC_API_KEY is set: the offline provider answers with what each agent remembers."


def other_writer(writers: Iterable[str]) -> str:
    """Return the first of these models, each ``provider:model``, that is not the offline one.

    Empty if there is none.
    """
    return next((writer for writer in writers if writer and not writer.startswith(_OWN)), "")


def why_silent(writer: str, known: Collection[str], wrote: str = "this history") -> str:
    """Return the sentence on why the offline provider does not answer, and what to do.

    Args:
        writer: the model that wrote, as ``provider:model``.
        known: the names of the available providers: of this program, of the configuration, of installed packages.
        wrote: the text that the model wrote, as ``this history``.
    """
    provider, _, _ = writer.partition(":")
    missing, way = f"its provider {provider!r} is not here", f"Name the provider ({_NAME}), {_ASK}"
    if provider in known:
        way = f"Name it (--model {writer}, or model = {writer!r} in ikigai.toml), {_ASK}"
        missing = "no model is named here"
    if provider == AnthropicProvider.name:
        missing, way = "ANTHROPIC_API_KEY is not set", f"Set the key, {_ASK}"
    said = f"{writer.removesuffix(':')} wrote {wrote}, and {missing}."
    return f"{said} The offline provider answers only what it wrote alone. {way}"
