"""The settings that an agent has. They are messages, so lineage inherits them and the nearest wins.

model       ``provider:model``; without it the system's default answers
system      the system prompt
max_tokens  the most tokens of a reply
notify      whether it is told, in a line, when it is idle and has unread mail; else it looks by itself
thinking    how much the model thinks, a dict as in the Messages API
stream_retries  how often a reply that breaks off on its way is asked for again; 1 when it is not set
tools       the names of the tools that it has; without it, all
policies    whether its tools may be used: by name ``allow``, ``ask`` or ``deny``; else each tool's own policy holds
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from ikigai_actors.errors import BadInput
from ikigai_actors.messages import check_text


def _is_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)


POLICIES = ("allow", "ask", "deny")


def _is_policies(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(name, str) and what in POLICIES for name, what in value.items())


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


SETTINGS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "max_tokens": (lambda value: isinstance(value, int) and not isinstance(value, bool), "a whole number of tokens"),
    "model": (lambda value: isinstance(value, str), "'provider:model'"),
    "notify": (lambda value: isinstance(value, bool), "True or False"),
    "policies": (_is_policies, "a dict from tools' names to 'allow', 'ask' or 'deny'"),
    "stream_retries": (_is_count, "a whole number, 0 or more"),
    "system": (lambda value: isinstance(value, str), "text"),
    "thinking": (lambda value: isinstance(value, dict), "a dict as in the Messages API"),
    "tools": (_is_texts, "a list of tools' names"),
}
"""Each setting with what its value must be, as a test and in words."""


def misfits(settings: Mapping[str, Any]) -> dict[str, str]:
    """The settings whose value cannot be used, as a program of ours would not have stored it: by name, what is wrong.

    One that this version does not know is left alone, and None removes a setting.
    """
    return {
        key: f"expected setting {key} to be {SETTINGS[key][1]}, got {value!r}"
        for key, value in settings.items()
        if value is not None and key in SETTINGS and not SETTINGS[key][0](value)
    }


def complaint(settings: Mapping[str, Any]) -> str | None:
    """What is wrong with settings in force, and what to do about it; None when all can be used."""
    wrong = misfits(settings)
    if not wrong:
        return None
    removed = ", ".join(f"{key}=None" for key in wrong)
    told = "; ".join(wrong.values())
    return f"The history holds a wrong setting: {told}. Set it anew, or remove it: configure({removed})."


def check_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as they can be stored, None for one that is removed. Raises `BadInput`."""
    for key, value in settings.items():
        if key not in SETTINGS:
            raise BadInput(f"There is no setting {key!r}; expected one of {', '.join(SETTINGS)}.")
        fits, expected = SETTINGS[key]
        if value is not None and not fits(value):
            raise BadInput(f"Expected setting {key} to be {expected}, got {value!r}.")
        if isinstance(value, str):
            check_text(value, f"setting {key}")
        try:
            json.dumps(value)
        except (TypeError, ValueError) as error:
            raise BadInput(f"Expected setting {key} to be what JSON can hold, got {value!r}: {error}.") from error
    return dict(settings)
