"""The commands that change an agent's history, the part of it that the model sees, and the agent's settings."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ikigai_actors.actors.futures import Future, may_block
from ikigai_actors.actors.wait_graph import Until
from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.ways import RESULT, check_merge
from ikigai_actors.arguments import check_choice, check_flag, check_timeout
from ikigai_actors.errors import BadInput
from ikigai_actors.programs.acts import AgainAct, KeyedAct, VerbAct, program_frame
from ikigai_actors.records.agents.registry import Handle, uuid_of
from ikigai_actors.records.agents.rules import SetSkillRules, rules_for
from ikigai_actors.records.messages.settings import check_settings
from ikigai_actors.records.messages.skills_beside import SKILLS
from ikigai_actors.system.births import note_of
from ikigai_actors.system.handles.base import H
from ikigai_actors.system.handles.commands.base import CommandBase
from ikigai_actors.system.handles.outcomes import Compacted, Merged, compacted, merged
from ikigai_actors.system.hook_files import find_hooks, pin_hooks
from ikigai_actors.system.kind_files import find_kinds, usual_kind_places
from ikigai_actors.system.kinds import pin_kinds
from ikigai_actors.system.skills import PathLike, check_digests, check_only, check_place, chosen, pin, rules_of_skills
from ikigai_actors.text import check_text
from ikigai_actors.tools.skills.digests import LONGEST_INSTRUCTIONS
from ikigai_actors.tools.skills.folders import FoundSkill
from ikigai_actors.tools.skills.instructions import instructions_of_user, naming_further, read_instructions


class HistoryCommands(CommandBase[H]):
    """The commands that change an agent's history, the part of it that the model sees, and the agent's settings."""

    __slots__ = ()

    def note(self, data: Mapping[str, Any], timeout: float | None = None) -> Future[int]:
        """Write a note for programs into the log. Models do not see notes.

        Args:
            data: any dict that JSON can hold.
            timeout: seconds to wait; None waits forever.

        Returns:
            The position of the note, which is a message of kind ``note`` with this ``data``.

        Raises:
            BadInput: JSON cannot hold the data, or the data has a key that is reserved for the book of an experiment.
        """
        if not (content := note_of(data)):
            raise BadInput("Expected a note to say something; got an empty dict.")
        if (frame := program_frame("note", timeout=timeout)) is not None and frame.me.uuid == self.uuid:
            return VerbAct(frame, "note", {"data": json.dumps(content)})
        return self._tell(lambda caller: on.ForkTrials(content, (), caller), self._future(timeout))

    def clear(self, timeout: float | None = None) -> Future[int]:
        """Start a new conversation. The model sees no earlier messages; the settings stay.

        Args:
            timeout: seconds to wait; None waits forever.

        Returns:
            The position of the clear.
        """
        return self._tell(on.Clear, self._future(timeout))

    def mark(self, label: str | None = None, timeout: float | None = None) -> Future[int]:
        """Set a mark, to which `rewind` can go back.

        Args:
            label: the name of the mark. If a label is used again, the latest mark counts. None for no label.
            timeout: seconds to wait; None waits forever.

        Returns:
            The position of the mark.
        """
        text = "" if label is None else check_text(label, "label")
        return self._tell(lambda caller: on.SetMark(text, caller), self._future(timeout))

    def rewind(self, label: str | None = None, timeout: float | None = None) -> Future[int]:
        """Go back to a mark, an inherited one too. Settings stay as they are.

        Args:
            label: the latest mark with this label; None is the latest mark.
            timeout: seconds to wait; None waits forever.

        Returns:
            The position of the rewind.

        Raises:
            MarkNotFound: there is no such mark.
        """
        text = None if label is None else check_text(label, "label")
        return self._tell(lambda caller: on.Rewind(text, caller), self._future(timeout))

    def undo(self, timeout: float | None = None) -> Future[int]:
        """Take back the latest prompt of the history, an inherited one too, and everything after it.

        This rewinds the history to before that prompt: conversation and marks become what they were. Settings stay, and
        so does what tools did to the world. The call waits for a turn in progress.

        Args:
            timeout: seconds to wait; None waits forever.

        Returns:
            The position of the rewind.

        Raises:
            NoTurn: there is no prompt to take back.
        """
        return self._tell(on.Undo, self._future(timeout))

    def compact(
        self, focus: str | None = None, text: str | None = None, timeout: float | None = None
    ) -> Future[Compacted]:
        """Let the agent's model write a summary that replaces earlier messages, so that the next requests are smaller.

        The latest messages stay verbatim, and so does the prompt of an open turn. Nothing is deleted, and `uncompact`
        brings all messages back. In a turn, the summary is made before the next request to the model.

        Args:
            focus: what the summary should keep above all; None for no preference.
            text: a summary that you have written or edited, so no model is asked. If the latest message is a summary,
                the text replaces it.
            timeout: seconds to wait; None waits forever.

        Returns:
            The position of the summary, and the sizes before and after.

        Raises:
            BadInput: the text is about as long as the messages that it replaces.
            NothingToCompact: so little was said that a summary would save nothing.
            ProviderError: the model gave no summary; or the agent's model is a function, and no ``compact_model`` is
                set.
            TurnInterrupted: the compaction was interrupted.
        """
        if text is not None and focus is not None:
            raise BadInput(
                "Expected one of focus, for the model that writes a summary, and text, the summary itself; got both."
            )
        if text is not None and not check_text(text, "text").strip():
            raise BadInput("Expected text to be a summary; got a blank one.")
        asked, summary = "" if focus is None else check_text(focus, "focus"), text or ""
        future = self._future(timeout, compacted, until=Until.STEP)
        return self._tell(lambda caller: on.Compact(asked, caller, summary), future)

    def uncompact(self, timeout: float | None = None) -> Future[int]:
        """Remove the latest summary.

        The model sees the messages again that the summary replaced, and all messages since.

        Args:
            timeout: seconds to wait; None waits forever.

        Returns:
            The position of the change in the log.

        Raises:
            NothingToUncompact: no summary is in force.
        """
        return self._tell(on.Uncompact, self._future(timeout))

    def merge(
        self,
        child: Handle | str,
        how: str = RESULT,
        positions: Sequence[int] = (),
        timeout: float | None = None,
        *,
        key: str | None = None,
    ) -> Future[Merged]:
        """Merge the work of an agent below this one. This agent's model then sees the merged text, as a quotation.

        The child can be merged again after it has said more, and then only the new part is taken over. Documents are
        shared between agents, so the merge only names those that the child has written, with their conflicts. A busy
        agent merges after its turn.

        Args:
            child: an agent that this one has forked or supervises, directly or not, dead or alive; a handle, or a text
                as in `send`.
            how: ``result`` takes over the result with which the child has exited, or else its latest answer.
                ``summary`` has the child's model write a summary of its work, for which this agent pays. ``pick``
                quotes some of the child's messages.
            positions: for ``pick``, the positions of these messages.
            timeout: seconds to wait; None waits forever.
            key: 1 to 200 printable characters that name this merge for this agent. A second call with the key, in any
                process and after any crash, merges nothing, and returns the result of the first one.

        Returns:
            The text that was taken over, its position, and the documents.

        Raises:
            AgentNotFound, AmbiguousAgent: no agent, or several agents, have this name or prefix.
            NotBelow: this agent has neither forked nor supervises the child.
            TurnOpen: a turn of the child is open.
            AlreadyMerged: the child has said nothing since it was last merged.
            NothingToMerge: the child has said nothing of that kind.
            HeadMoved: the child has gone on during the merge; merge it again.
            BadInput: a message at one of the positions cannot be picked.
            ProviderError: the child's model gave no summary.
            BudgetExceeded: a budget of this agent has no room for the summary.
            TurnInterrupted: the merge was interrupted.
            KeyTaken: the key names another call.
        """
        picked = check_merge(how, positions)
        check_timeout(timeout)
        if (frame := program_frame("merge", key=key, timeout=timeout)) is not None:
            other = getattr(child, "uuid", child)
            if frame.me.uuid == self.uuid:
                asked = {"agent": other, "how": how, "positions": json.dumps(picked) if picked else None}
                return VerbAct(frame, "merge", asked, merged)
            who = type(self)(self.system, self.uuid)

            def once(key: str) -> dict[str, Any]:
                return asdict(who.merge(other, how, picked, key=key).get())

            return KeyedAct(frame, "merge", (self.uuid, other, how, picked), once, merged)

        def take() -> Future[Merged]:
            uuid = uuid_of(self.system._store, child)
            call = self._call(key, "merge", {"child": uuid, "how": how, "positions": picked}, how)
            return self._tell(lambda caller: on.Merge(uuid, how, picked, caller), self._future(timeout, merged), call)

        return self._beside(take, timeout)

    def merge_files(
        self, child: Handle | str | None = None, how: str | None = None, timeout: float | None = None
    ) -> Future[list[str]]:
        """Merge a child's changes to the files of a workspace with ``on_fork="overlay"`` or ``"worktree"``.

        All changes are taken over, or none. The child can be merged again after it has changed more files, and then
        only the new changes are taken over. A busy agent merges after its turn, and the running calls of both agents
        end first.

        Args:
            child: an agent whose files began as a copy of the files of this agent or of one of its children, dead or
                alive; a handle, or a text as in `send`.
            how: ``apply`` for files in layers, ``branch`` for worktrees: git merges the branch of the child, with its
                uncommitted changes, into the branch of this agent. None chooses the way that fits the workspace.
            timeout: seconds to wait; None waits forever.

        Returns:
            The paths of the changed files, relative to the directory.

        Raises:
            AgentNotFound, AmbiguousAgent: no agent, or several agents, have this name or prefix.
            NotBelow: the child's files did not begin as a copy of this agent's files.
            FilesConflict: both have changed the same files. Nothing was merged.
            BadInput: one of the two agents has no files of its own, or there is no workspace.
        """
        check_timeout(timeout)
        if how is not None:
            check_choice(how, "how", ("apply", "branch"))

        def take() -> Future[list[str]]:
            uuid = self.uuid if child is None else uuid_of(self.system._store, child)
            return self._tell(lambda caller: on.MergeFiles(uuid, caller, how or ""), self._future(timeout))

        return self._beside(take, timeout)

    def use_instructions(
        self, place: PathLike | None = None, *, user: bool = False, off: bool = False, timeout: float | None = None
    ) -> Future[int]:
        """Give the agent instructions, which follow its system prompt: a directory's ``AGENTS.md``, else ``CLAUDE.md``.

        The present text of the file is stored, and replaces earlier instructions of the agent. Children that are forked
        later inherit it. Such files in subdirectories are only named, for the model to read.

        Args:
            place: the directory of a project; None for no project.
            user: whether instructions of the user come first: such a file in ``~/.agents``, else in ``~/.claude``.
            off: whether to refuse the instructions instead: the agent does not get them, and no shell proposes them
                again.
            timeout: seconds to wait; None waits forever.

        Returns:
            The position of the change in the log.

        Raises:
            BadInput: there is no such file, the file cannot be read, or it is too long.
        """
        where = None if place is None else check_place(place)
        users, refused = check_flag(user, "user"), check_flag(off, "off")
        check_timeout(timeout)
        self.system._check_open()
        if where is None and not users:
            raise BadInput("Expected the directory of a project, or user=True, or both; got neither.")

        def change() -> Future[int]:
            files = [instructions_of_user()] if users else []
            if where is not None:
                room = LONGEST_INSTRUCTIONS - sum(len(file.text) for file in files)
                files.append(naming_further(read_instructions(Path(where).absolute()), room))
            entries = [file.entry | ({"off": True} if refused else {}) for file in files]
            settings = check_settings({"instructions": entries})
            return self._tell(lambda caller: on.Configure(settings, caller), self._future(timeout))

        return self._beside(change, timeout)

    def use_hooks(
        self, *, only: Sequence[str] | None = None, off: bool = False, timeout: float | None = None
    ) -> Future[int]:
        """Pin commands of the workspace as hooks of this agent and of children that are forked later.

        The present commands of ``.claude/settings.json`` are stored, so a later change of the file changes no agent. By
        naming the commands, you approve of them. They run in the sandbox of the workspace.

        Args:
            only: the names of the commands to pin; None pins all commands of the file.
            off: whether to refuse the commands instead: they do not run, and no shell proposes them again.
            timeout: seconds to wait; None waits forever.

        Returns:
            The position of the change in the log.

        Raises:
            BadInput: there is no such command, or an agent would have too many of them.
        """
        names, refused = check_only(only, "hooks"), check_flag(off, "off")
        check_timeout(timeout)
        self.system._check_open()

        def change() -> Future[int]:
            directory = self.system._workspace or Path.cwd()
            log = self.system._log_cache.load(self.uuid)
            pinned = pin_hooks(log.view(log.head).settings, find_hooks(directory), names, directory, refused)
            settings = check_settings(pinned)
            return self._tell(lambda caller: on.Configure(settings, caller), self._future(timeout))

        return self._beside(change, timeout)

    def use_kinds(
        self,
        place: PathLike | None = None,
        *,
        only: Sequence[str] | None = None,
        off: bool = False,
        timeout: float | None = None,
    ) -> Future[int]:
        """Pin kinds of agents, of which ``fork(kind=...)`` then makes children.

        The agent's model and later children can use them.

        The present contents of the files are stored, so a later change of the files changes no agent. By naming the
        directory, or the kinds, you approve of their texts. The skills that a kind names must be skills of this agent.

        Args:
            place: a file of a kind, or a directory with such files. None for the usual directories, as for
                ``system.kinds.find()``; then `only` must name some kinds.
            only: the names of the kinds to pin; None pins all.
            off: whether to refuse the kinds instead: no child is of such a kind, and no shell proposes it again until
                its file changes.
            timeout: seconds to wait; None waits forever.

        Returns:
            The position of the change in the log.

        Raises:
            BadInput: there is no such place or kind, the agent would have too many kinds, or it lacks a skill.
        """
        where, names = None if place is None else check_place(place), check_only(only, "kinds")
        refused = check_flag(off, "off")
        check_timeout(timeout)
        self.system._check_open()
        if where is None and names is None:
            raise BadInput("Expected a directory with kinds, or only=[...] with names of kinds; got neither.")

        def change() -> Future[int]:
            places = usual_kind_places(self.system._workspace or Path.cwd()) if where is None else [where]
            log = self.system._log_cache.load(self.uuid)
            place = "the usual places" if where is None else where
            pinned = pin_kinds(
                log.view(log.head).settings, find_kinds(places), names, place, refused, self._texts_of_skills
            )
            settings = check_settings(pinned)
            return self._tell(lambda caller: on.Configure(settings, caller), self._future(timeout))

        return self._beside(change, timeout)

    def _texts_of_skills(self, names: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        texts: Sequence[Mapping[str, Any]] = self._skill_texts(names).get(SKILLS, ())
        return texts

    def use_skills(
        self,
        place: PathLike | None = None,
        *,
        only: Sequence[str] | None = None,
        off: bool = False,
        unlisted: bool = False,
        tools_of: Sequence[str] = (),
        timeout: float | None = None,
    ) -> Future[int]:
        """Pin skills. The agent's model may load them, and so may the models of children that are forked later.

        The present contents of the files are stored, so a later change of the files changes no agent. By naming the
        directory, or the skills, you approve of their texts.

        Args:
            place: a directory with skills, which are folders with a ``SKILL.md``. None for the usual directories, as
                for ``system.skills.find()``; then `only` must name some skills.
            only: the names of the skills to pin; None pins all.
            off: whether to refuse the skills instead: no model loads them, and no shell proposes them again until their
                files change.
            unlisted: whether the system prompt leaves out the skills. The model loads one whose name it knows, or that
                it finds with ``find_tools``.
            tools_of: the digests (`FoundSkill.sha256`) of those of the skills whose ``allowed-tools`` you have seen and
                allow. Each entry that a rule can express becomes a rule that allows these calls, for this agent and all
                below it that have exactly this skill in use. Earlier rules of these skills end.
            timeout: seconds to wait; None waits forever.

        Returns:
            The position of the change in the log.

        Raises:
            BadInput: there is no such directory or skill, or no longer one with such a digest, or the agent would have
                too many skills or rules.
        """
        where, names = None if place is None else check_place(place), check_only(only)
        digests = check_digests(tools_of)
        refused, hidden = check_flag(off, "off"), check_flag(unlisted, "unlisted")
        check_timeout(timeout)
        self.system._check_open()
        if where is None and names is None:
            raise BadInput("Expected a directory with skills, or only=[...] with names of skills; got neither.")

        def change() -> Future[int]:
            skills = self.system.skills.find(*([] if where is None else [where]))
            picked = chosen(skills, names, "the usual places" if where is None else where)
            log = self.system._log_cache.load(self.uuid)
            settings = log.view(log.head).settings
            checked, blobs = pin(settings, picked, refused, hidden)
            if (unit := self._skill_rules(settings, picked, [] if refused else digests)) is None:
                return self._tell(lambda caller: on.Configure(checked, caller, blobs), self._future(timeout))

            def allow_and_pin() -> Future[int]:
                self._write(unit, timeout).get()  # the rules first: they hold only where the skill is in use
                return self._tell(lambda caller: on.Configure(checked, caller, blobs), self._future(timeout))

            may_wait = self._waits or may_block()
            return allow_and_pin() if may_wait else self.system._beside.forward(allow_and_pin)

        return self._beside(change, timeout)

    def _skill_rules(
        self, settings: Mapping[str, Any], picked: Sequence[FoundSkill], digests: Sequence[str]
    ) -> SetSkillRules | None:
        """Return the unit that replaces the rules of skills by those that are allowed now; None if there are none."""
        new = rules_of_skills(picked, digests)
        for rule in [rule for rules in new.values() for rule in rules]:
            self.system._check_new_rule(rule)
        names = {skill.name for skill in picked}
        earlier = {skill["sha256"] for skill in settings.get("skills") or () if skill["name"] in names}
        ended = earlier | {skill.sha256 for skill in picked}
        in_force = self.system._store.read(lambda tx: rules_for(tx, self.uuid))
        if not new and not any(rule.agent == self.uuid and rule.skill in ended for rule in in_force):
            return None
        return SetSkillRules(self.uuid, ended, new, self.system._clock.now_ms())

    def configure(self, /, *, timeout: float | None = None, **settings: Any) -> Future[int]:
        """Change settings. Children that are forked later inherit them.

        Args:
            timeout: seconds to wait; None waits forever.
            settings: ``model``, ``system``, ``max_tokens``, ``temperature`` and others, see
                `ikigai_actors.records.messages.settings`; None removes one.

        Returns:
            The position of the change in the log.

        Raises:
            BadInput: a setting is unknown, or its value is wrong.
        """
        checked = check_settings(settings)
        if (frame := program_frame("configure", timeout=timeout)) is not None and frame.me.uuid == self.uuid:
            if "model" in settings or "effects" in settings:
                raise BadInput(
                    "Expected other settings than model and effects: the turn of a program goes on with these."
                )
            return VerbAct(frame, "configure", {"data": json.dumps(checked)})
        if frame is not None:
            return AgainAct(
                frame,
                "configure",
                [self.uuid, checked],
                lambda: type(self)(self.system, self.uuid).configure(**settings).get(),
            )
        return self._tell(lambda caller: on.Configure(checked, caller), self._future(timeout))
