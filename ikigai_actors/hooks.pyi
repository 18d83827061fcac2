# The names that this module hands on: read by type checkers, and by `lazy.handed_on` when the program runs.

from ikigai_actors.tools.hooks.command_hooks import command_hooks as command_hooks
from ikigai_actors.tools.hooks.function import Hook as Hook
from ikigai_actors.tools.hooks.function import hook as hook
from ikigai_actors.tools.hooks.verdict import HookedCall as HookedCall
from ikigai_actors.tools.hooks.verdict import HookedExit as HookedExit
from ikigai_actors.tools.hooks.verdict import HookedReply as HookedReply
from ikigai_actors.tools.hooks.verdict import HookedRequest as HookedRequest
from ikigai_actors.tools.hooks.verdict import HookVerdict as HookVerdict

__all__: list[str]
