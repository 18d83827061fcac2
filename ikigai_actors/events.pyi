# The names that this module hands on: read by type checkers, and by `lazy.handed_on` when the program runs.

from ikigai_actors.agent.instruments import Instrument as Instrument
from ikigai_actors.agent.subscriptions import BatchTrouble as BatchTrouble
from ikigai_actors.agent.subscriptions import Event as Event
from ikigai_actors.agent.subscriptions import HookFailed as HookFailed
from ikigai_actors.agent.subscriptions import HostChanged as HostChanged
from ikigai_actors.agent.subscriptions import HostEnded as HostEnded
from ikigai_actors.agent.subscriptions import HostsDiffer as HostsDiffer
from ikigai_actors.agent.subscriptions import Mailed as Mailed
from ikigai_actors.agent.subscriptions import PromptKept as PromptKept
from ikigai_actors.agent.subscriptions import StoreTrouble as StoreTrouble
from ikigai_actors.agent.subscriptions import StreamCut as StreamCut
from ikigai_actors.agent.subscriptions import Streamed as Streamed
from ikigai_actors.agent.subscriptions import Subscription as Subscription
from ikigai_actors.agent.subscriptions import SystemTrouble as SystemTrouble
from ikigai_actors.agent.subscriptions import ToolTrouble as ToolTrouble
from ikigai_actors.agent.subscriptions import WindowNearlyFull as WindowNearlyFull
from ikigai_actors.records.agents.registry import Died as Died
from ikigai_actors.records.agents.registry import Renamed as Renamed
from ikigai_actors.records.agents.registry import StatusSet as StatusSet
from ikigai_actors.records.messages.messages import Message as Message
from ikigai_actors.system.event_feed import AsyncEventFeed as AsyncEventFeed
from ikigai_actors.system.event_feed import EventFeed as EventFeed
from ikigai_actors.tools.definitions import ToolDifference as ToolDifference

__all__: list[str]
