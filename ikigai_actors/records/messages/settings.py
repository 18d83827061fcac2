"""The settings of an agent. They are stored as messages, so children inherit them, and the latest value counts.

    model           ``provider:model``, or several with commas between them: the next model is asked when a service is
                    not available; without this setting the system's default model answers
    system          the system prompt
    max_tokens      the most tokens of a reply
    temperature, top_p, stop_sequences
                    as in the Messages API; a provider leaves out a parameter that its service does not know
    context_window  the window of the model, in tokens; without it, only a refusal shows that a request is too long
    notify          whether an idle agent gets a notice of unread mail; otherwise it must check by itself
    background      whether the service generates replies in the background and stores them, so that a reply is read
                    after a crash and not paid for twice: for OpenAI's Responses alone; off when it is not set
    options         a dict of further fields of requests to the model's service: they go to the provider as they are
    thinking        how much the model thinks, a dict as in the Messages API
    effects         whether tools run, or recorded results replace them, in an experiment: see
                    `ikigai_actors.agent.turn.record`; only a fork of a trial can remove this setting
    max_agents      how many agents may live in its branch (the child of agent 0 that it comes from, and all below that)
                    when its model forks; 1,000 when it is not set
    max_steps       how often its model may be asked in one turn; 50 when it is not set
    urgency         how long requests may wait for a batch of their service, at the price of a batch: ``1h``, ``24h``,
                    or ``now`` for no batch, the default; a request is sent directly if the service has no batches
    stuck_after     seconds without a heartbeat in a turn, after which its supervisor gets a notice, once; 0: never
    stream_retries  how often a reply that breaks off is requested again; 1 when it is not set
    service_retries how often a request is sent again that a service refuses for the moment; 5 when it is not set
    tools           the names of the agent's tools; all tools when it is not set
    defer           whether the model has to find most tools (`ikigai_actors.agent.turn.found_tools`): ``on``, ``off``,
                    or ``auto``, the default: only if the service's cache stays valid when a tool is found
    instructions    the instructions of a project, which follow the system prompt, each with its path and digest
    fork_models     the models that the agent's model may name for a child that it forks; none when it is not set
    kinds           the kinds of agents that the agent may fork, each pinned by its digest (`records.messages.kinds`)
    skills          the skills that the agent's model may load, each pinned by its digest (`records.messages.skills`)
    hooks           the names of the hooks that check the agent's calls; the hooks of agents above it apply, too
    hook_commands   the commands of the workspace that are asked as hooks: see `records.messages.hook_commands`
    card            the agent card for agents of other systems: see `records.messages.cards`
    questions       the people that the agent's questions ask, and the steps while nobody answers: see
                    `records.messages.question_terms`
    compact         whether the history is summarised automatically when it comes near the model's window: ``auto``, the
                    default, or ``off``
    compact_at      the size of the history for that: a part of the window, 0.8 when not set, or a number of tokens
    compact_model   the model that writes summaries, ``provider:model``; without it, the agent's own

A setting that an agent does not have is the system's default, or the provider's.
"""

import json
import math
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, NamedTuple

from ikigai_actors.arguments import LONGEST_TIME, check_mapping
from ikigai_actors.errors import BadInput
from ikigai_actors.records.messages.cards import is_card
from ikigai_actors.records.messages.forms import are_references
from ikigai_actors.records.messages.hook_commands import are_pinned_commands
from ikigai_actors.records.messages.kinds import are_kinds
from ikigai_actors.records.messages.question_terms import are_terms
from ikigai_actors.records.messages.skills import are_instructions, are_skills
from ikigai_actors.text import check_text

IMPORTED = "imported"
"""The key in the setting ``effects`` of an agent that another program has recorded. It is no trial, and the setting can
be removed.
"""


def is_trial(settings: Mapping[str, Any]) -> bool:
    """Return whether an agent with these settings is a trial, or comes from one. A trial has no effects outside."""
    effects = settings.get("effects")
    return effects is not None and not effects.get(IMPORTED)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(element, str) for element in value)


_RESULT = (str, dict, str, bool)
"""The types of the entries of each recorded call. A list of attachments may follow."""

_WORD = (int, int, int, str, dict)
"""The types of the entries of each recorded steering message: see `ikigai_actors.agent.turn.recorded_words`."""


def _is_effects(value: Any) -> bool:
    if not isinstance(value, dict) or not value.keys() <= {
        "record",
        "words",
        "run",
        "missing",
        "once",
        "files",
        IMPORTED,
    }:
        return False
    record = value.get("record", [])
    recorded = isinstance(record, list) and all(
        isinstance(entry, list)
        and [type(part) for part in entry[:4]] == [*_RESULT]
        and (len(entry) == 4 or (len(entry) == 5 and are_references(entry[4])))
        for entry in record
    )
    words = value.get("words", [])
    return (
        recorded
        and isinstance(words, list)
        and all(isinstance(word, list) and [type(part) for part in word] == [*_WORD] for word in words)
        and _is_texts(value.get("run", []))
        and value.get("missing", "stop") in ("stop", "tell")
        and value.get("once", True) is True
        and value.get(IMPORTED, True) is True
        and value.get("files", "overlay") == "overlay"
    )


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST


def _is_number(value: Any, least: float, most: float) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and least <= value <= most
    )


def _is_thinking(value: Any) -> bool:
    """Return whether the Messages API may accept the value.

    Only known keys are checked, since the API may learn new ones.
    """
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return False
    budget: Any = value.get("budget_tokens", 1)
    return _is_count(budget) and budget > 0


FORK_MODELS = "fork_models"
"""The setting that lists the models that a model may name for a child."""

LIVING_LIMIT = 1_000
"""The default for the most living agents in a branch when a model forks. It stops a fork bomb."""

MAX_STEPS = 50
"""The default for the most requests to a model in one turn."""

STREAM_RETRIES = 1
"""The default for how many times a reply that breaks off is requested again."""

SERVICE_RETRIES = 5
"""The default for how many times a request is sent again that a service refuses for the moment."""

URGENCIES: Mapping[str, int] = {"now": 0, "1h": 3_600_000, "24h": 24 * 3_600_000}
"""The milliseconds that a request may wait for a batch, by the value of the setting ``urgency``."""

_MOST = 2**31
"""A number above every count that a setting may have."""


class WrittenAs(Enum):
    """The ways in which a person writes the value of a setting, and so how its text is parsed."""

    JSON = "JSON"
    TEXT = "text as it is"
    TEXTS = "words with commas between them, or JSON"
    FLAG = "on or off, or JSON"


class Setting(NamedTuple):
    """The rule for the values of a setting."""

    fits: Callable[[Any], bool]
    """Returns whether a value is valid."""
    expected: str
    """The expected value, in words."""
    of_the_model: bool = False
    """Whether the setting is passed to the model. A process may set defaults for such settings."""
    written: WrittenAs = WrittenAs.JSON


SETTINGS: Mapping[str, Setting] = {
    "background": Setting(lambda value: isinstance(value, bool), "True or False", True, WrittenAs.FLAG),
    "card": Setting(is_card, "a dict with name, description, and perhaps version and skills (id, name, description)"),
    "compact": Setting(lambda value: value in ("auto", "off"), "'auto' or 'off'", written=WrittenAs.TEXT),
    "compact_at": Setting(
        lambda value: (_is_number(value, 0, 1) and value > 0) or (_is_count(value) and value > 1),
        "a part of the window, above 0 and up to 1, or a whole number of tokens",
    ),
    "compact_model": Setting(lambda value: isinstance(value, str), "'provider:model'", written=WrittenAs.TEXT),
    "context_window": Setting(lambda value: _is_count(value) and value > 0, "a whole number of tokens, 1 or more"),
    "defer": Setting(lambda value: value in ("auto", "on", "off"), "'auto', 'on' or 'off'", written=WrittenAs.TEXT),
    "effects": Setting(_is_effects, "a dict with record, run and missing, as an experiment makes it"),
    FORK_MODELS: Setting(
        lambda value: isinstance(value, list) and _is_texts(value) and all(model.strip() for model in value),
        "a list of models, as ['provider:model']",
        written=WrittenAs.TEXTS,
    ),
    "hooks": Setting(
        lambda value: isinstance(value, list) and all(isinstance(name, str) and name for name in value),
        "a list of names of hooks",
        written=WrittenAs.TEXTS,
    ),
    "hook_commands": Setting(are_pinned_commands, "a list of commands, as agent.use_hooks() makes it"),
    "instructions": Setting(are_instructions, "a list of instructions, as agent.use_instructions(DIRECTORY) makes it"),
    "kinds": Setting(are_kinds, "a list of kinds of agents, as agent.use_kinds(DIRECTORY) makes it"),
    "max_agents": Setting(lambda value: _is_count(value) and value > 0, "a whole number, 1 or more"),
    "max_steps": Setting(lambda value: _is_count(value) and value > 0, "a whole number, 1 or more"),
    "max_tokens": Setting(lambda value: _is_count(value) and value > 0, "a whole number of tokens, 1 or more", True),
    "model": Setting(lambda value: isinstance(value, str), "'provider:model', or several", written=WrittenAs.TEXT),
    "notify": Setting(lambda value: isinstance(value, bool), "True or False", written=WrittenAs.FLAG),
    "options": Setting(
        lambda value: isinstance(value, dict) and all(isinstance(name, str) for name in value),
        "a dict of fields of the model's service, as {'top_k': 40}",
        True,
    ),
    "questions": Setting(are_terms, "a dict with to, within, default, remind and escalate, as {'within': '4h'}"),
    "skills": Setting(are_skills, "a list of skills, as agent.use_skills(DIRECTORY) makes it"),
    "stuck_after": Setting(lambda value: _is_number(value, 0, LONGEST_TIME), "seconds, 0 or more"),
    "service_retries": Setting(_is_count, "a whole number, 0 or more"),
    "stream_retries": Setting(_is_count, "a whole number, 0 or more"),
    "stop_sequences": Setting(
        lambda value: _is_texts(value) and all(text.strip() for text in value),
        "a list of texts that are not blank",
        True,
        WrittenAs.TEXTS,
    ),
    "system": Setting(lambda value: isinstance(value, str), "text", True, WrittenAs.TEXT),
    "temperature": Setting(lambda value: _is_number(value, 0, 2), "a number from 0 to 2", True),
    "thinking": Setting(_is_thinking, "a dict as in the Messages API, as {'type': 'adaptive'}", True),
    "tools": Setting(_is_texts, "a list of tools' names", written=WrittenAs.TEXTS),
    "urgency": Setting(lambda value: value in tuple(URGENCIES), "'now', '1h' or '24h'", written=WrittenAs.TEXT),
    "top_p": Setting(lambda value: _is_number(value, 0, 1), "a number from 0 to 1", True),
}
"""The rules of all settings, by name."""


def misfits(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return a fault for each setting with an invalid value, by name. Only an edited database has such values.

    A setting that this version does not know is left alone. None removes a setting, and is valid.
    """
    return {
        key: f"expected setting {key} to be {SETTINGS[key].expected}, got {value!r}"
        for key, value in settings.items()
        if value is not None and key in SETTINGS and not SETTINGS[key].fits(value)
    }


def complaint(settings: Mapping[str, Any]) -> str | None:
    """Return a text about invalid settings in force and how to mend them; None when all are valid."""
    wrong = misfits(settings)
    if not wrong:
        return None
    removed = ", ".join(f"{key}=None" for key in wrong)
    complaints = "; ".join(wrong.values())
    return f"The history holds a wrong setting: {complaints}. Set it again, or remove it: configure({removed})."


_WORDS = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}
"""The words for yes and no that a person may write."""


def check_defaults(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Check the default settings that a process gives its agents, which are never stored. Raises `BadInput`."""
    for key in check_mapping(settings, "settings", "a dict of settings"):
        if key in SETTINGS and not SETTINGS[key].of_the_model:
            raise BadInput(f"Setting {key} has no default: an agent has it or has not. Set it there: /set {key} VALUE.")
    return {key: value for key, value in check_settings(settings).items() if value is not None}


def parse_setting(name: str, text: str) -> Any:
    """Parse the value of a setting as a person wrote it.

    Text settings are taken as they are; numbers and dicts are JSON; a list is JSON, or words with commas between them;
    a flag is ``on`` or ``off``. Empty text, or ``null`` where JSON is expected, gives None, which removes the setting.
    Raises `BadInput`.
    """
    if name not in SETTINGS:
        raise BadInput(f"There is no setting {name!r}; expected one of {', '.join(SETTINGS)}.")
    text, written = text.strip(), SETTINGS[name].written
    if not text:
        return None
    if written is WrittenAs.TEXT:
        return check_settings({name: text})[name]
    if written is WrittenAs.FLAG and text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        value = json.loads(text)
    except ValueError:
        listed = [word.strip() for word in text.split(",")]
        value = listed if written is WrittenAs.TEXTS else text
    if isinstance(value, str) and written is WrittenAs.TEXTS:
        value = [value]
    return check_settings({name: value})[name]


def check_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Check settings, and return them in the form that is stored; None removes a setting. Raises `BadInput`."""
    for key, value in settings.items():
        if key not in SETTINGS:
            raise BadInput(f"There is no setting {key!r}; expected one of {', '.join(SETTINGS)}.")
        if value is not None and not SETTINGS[key].fits(value):
            raise BadInput(f"Expected setting {key} to be {SETTINGS[key].expected}, got {value!r}.")
        if isinstance(value, str):
            check_text(value, f"setting {key}")
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise BadInput(f"Expected setting {key} to be what JSON can hold, got {value!r}: {error}.") from error
    return dict(settings)
