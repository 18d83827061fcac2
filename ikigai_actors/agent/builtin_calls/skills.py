"""The built-in call that loads a skill: load_skill. `ikigai_actors.agent.turn.skills` has its rules."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, ClassVar, NamedTuple

from ikigai_actors.agent.builtin_calls.base import Argument, BuiltinCall, Given, text
from ikigai_actors.agent.turn.calls import Call, Progress, progress
from ikigai_actors.agent.turn.events import Continue
from ikigai_actors.agent.turn.skills import LOAD_SKILL, SKILL, files_of, instructions_of, loadable
from ikigai_actors.agent.turn.state import CallUnit, State, Step
from ikigai_actors.agent.turn.steps import advance, messages_of
from ikigai_actors.errors import BadInput
from ikigai_actors.records.log.log_unit import LogUnit
from ikigai_actors.records.messages.blobs import read_blobs
from ikigai_actors.records.messages.messages import Kind
from ikigai_actors.records.messages.skills import blob_of
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import LockedRows, Unit
from ikigai_actors.text import storable
from ikigai_actors.tools.function import cut
from ikigai_actors.tools.policy import SHELL, ToolTraits
from ikigai_actors.tools.skills.front_matter import SKILL_FILE


class LoadedSkill(NamedTuple):
    """The answer of `ReadSkillFile`: the text of one file of a pinned skill."""

    text: str
    about: Mapping[str, str]
    """The name and digest of the skill; and the file, if it is not ``SKILL.md``."""
    files: str
    """A sentence that names the other files of the skill."""


@dataclass(frozen=True, slots=True)
class ReadSkillFile(Unit):
    """The unit that reads a file of a pinned skill; answered with `LoadedSkill`.

    Raises `BadInput` when the stored bytes differ from those that were pinned, or are no text.
    """

    file: str
    sha256: str
    about: Mapping[str, str]
    files: str

    def write(self, tx: Transaction, locked: LockedRows) -> LoadedSkill:
        data = read_blobs(tx, (self.sha256,)).get(self.sha256)
        if data is None or sha256(data).hexdigest() != self.sha256:
            raise BadInput(f"{self.file} of this skill is not in the database as it was pinned. Do without it.")
        try:
            return LoadedSkill(storable(data.decode()), self.about, self.files)
        except UnicodeDecodeError as error:
            raise BadInput(f"{self.file} of this skill is no text.") from error


class LoadSkillCall(BuiltinCall):
    """The call ``load_skill``: show the model the text of a skill, or another of the skill's files."""

    name = LOAD_SKILL
    description = "Load the instructions of a skill that your system prompt lists, or one of the files that they name."
    arguments: ClassVar = {
        "name": Argument("string", "The name of the skill.", required=True),
        "file": Argument("string", "The path of a file of it; without it, its instructions."),
    }

    def begin(self, state: State, call: Call, event: Continue, now: int, tools: Mapping[str, ToolTraits]) -> Step:
        """Return the step that reads the stored file and writes its text as the result.

        If the model sees the text already, the result only names the message that has the text.
        """
        self.check(call.input)
        skill, commands = _skill(state, text(call.input, "name")), SHELL in tools
        path = text(call.input, "file") or SKILL_FILE
        file = "" if path == SKILL_FILE else path
        if (blob := blob_of(skill, path)) is None:
            raise BadInput(f"Skill {skill['name']} has no file {path!r}. {files_of(skill, commands)}")
        done = progress(state.calls, (call.id,), Progress.DONE)
        if (at := event.loaded.get((skill["sha256"], file))) is not None:
            result = (
                f"{file or 'Skill'} {'of skill ' if file else ''}{skill['name']} is loaded already, as message {at}."
            )
            messages = messages_of(state.uuid, state.head, now, ((Kind.TOOL_RESULT, result, call.data),))
            return Step(advance(state, messages, calls=done), LogUnit(state.uuid, messages))
        about = {"name": skill["name"], "sha256": skill["sha256"], **({"file": file} if file else {})}
        source = {"file": path, "blob": blob, "about": about, "files": files_of(skill, commands)}
        unit = CallUnit(state.uuid, state.head + 1, replace(call, input=source), now)
        return Step(advance(state, (unit.message(),), calls=done), unit, call=call.id)

    def act(self, agent: str, arguments: Given, now: int) -> ReadSkillFile:
        return ReadSkillFile(arguments["file"], arguments["blob"], arguments["about"], arguments["files"])

    def to_model(self, answer: LoadedSkill) -> str:
        return cut(answer.text if "file" in answer.about else instructions_of(answer.text, answer.files))

    def noted(self, answer: LoadedSkill) -> Mapping[str, Any]:
        return {SKILL: dict(answer.about)}


CALLS = (LoadSkillCall(),)


def _skill(state: State, name: str) -> Mapping[str, Any]:
    known = loadable(state.view.settings)
    for skill in known:
        if skill["name"] == name:
            return skill
    raise BadInput(f"There is no skill {name!r}. Skills: {', '.join(skill['name'] for skill in known) or 'none'}.")
