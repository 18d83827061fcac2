"""The commands that set which calls of an agent's tools need a person."""

from ikigai_actors.actors.futures import Future
from ikigai_actors.arguments import check_count
from ikigai_actors.programs.acts import VerbAct, program_frame
from ikigai_actors.records.agents.rules import AddRule, RemoveRule
from ikigai_actors.system.handles.base import H
from ikigai_actors.system.handles.commands.base import CommandBase
from ikigai_actors.tools.rules.rule import Rule, Scope, new_rule


class RuleCommands(CommandBase[H]):
    """The commands that set which calls of an agent's tools need a person."""

    __slots__ = ()

    def set_rule(
        self, decision: str, tool: str, pattern: str = "", *, scope: str = Scope.BELOW, timeout: float | None = None
    ) -> Future[Rule]:
        """Give the agent a rule that allows calls of a tool, denies them, or asks a person about them.

        The rules of the agent and of all agents above it in the tree of supervisors hold for a call. Among the rules
        that fit the call, one that denies takes precedence over one that asks, and that over one that allows. If no
        rule fits, the tool's own policy decides. A rule holds for every call that begins after its commit, on every
        host.

        Args:
            decision: ``allow``, ``ask`` or ``deny``.
            tool: the name of the tool; ``*`` in it is any text, as in ``git__*``.
            pattern: which calls it fits; empty for all. For bash the words of a command, as ``"git log *"``: ``*`` is
                any one word, and as the last one any further words. Only a command of plain words can be allowed so,
                which does not change the shell as ``cd`` does, and it runs apart from what earlier ones have defined;
                a denial looks at whatever the text may run, and is no fence. For tools of files a path beneath the
                directory: ``*`` is any text within a name, ``**`` any names. Other tools have no patterns: a rule with
                one fits every call that it denies or asks about, and allows none.
            scope: ``below``: the agent and all below it; ``self``: the agent alone.
            timeout: seconds to wait; None waits forever.

        Returns:
            The rule, with its number. A rule that the agent has already is not added again.

        Raises:
            AgentNotFound, AgentDead: there is no such living agent.
            BadInput: the rule has faults, or the agent has 200 rules; or the rule allows all of bash, which runs on
                this host without its intended sandbox.
        """
        new = new_rule(decision, tool, pattern, scope)
        self.system._check_new_rule(new)
        if (frame := program_frame("set_rule", timeout=timeout)) is not None:
            asked = {"agent": self.uuid, "decision": new.decision, "tool": tool, "pattern": pattern or None}
            return VerbAct(
                frame, "set_rule", {**asked, "scope": new.scope}, lambda number: Rule(self.uuid, number, *new)
            )
        return self._write(AddRule(self.uuid, new, self.system._clock.now_ms()), timeout)

    def remove_rule(self, number: int, timeout: float | None = None) -> Future[Rule]:
        """Remove a rule of the agent, and return it.

        Args:
            number: the number of the rule among the rules of the agent.
            timeout: seconds to wait; None waits forever.

        Raises:
            RuleNotFound: the agent itself has no such rule.
        """
        number = check_count(number, "the number of a rule", least=1)
        return self._write(RemoveRule(self.uuid, number, self.system._clock.now_ms()), timeout)
