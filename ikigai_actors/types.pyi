# The names that this module hands on: read by type checkers, and by `lazy.handed_on` when the program runs.

from ikigai_actors.actors.actor import ActorGone as ActorGone
from ikigai_actors.agent.statistics import AgentStatistics as AgentStatistics
from ikigai_actors.agent.statistics import SystemStatistics as SystemStatistics
from ikigai_actors.agent.statistics import Tally as Tally
from ikigai_actors.agent.statistics import TurnStatistics as TurnStatistics
from ikigai_actors.agent.turn.calls import PendingCall as PendingCall
from ikigai_actors.agent.waits import WaitResult as WaitResult
from ikigai_actors.attachments import Attachment as Attachment
from ikigai_actors.records.agents.registry import AgentRecord as AgentRecord
from ikigai_actors.records.agents.registry import Handle as Handle
from ikigai_actors.records.documents import Document as Document
from ikigai_actors.records.documents import Documents as Documents
from ikigai_actors.records.documents import DocumentVersion as DocumentVersion
from ikigai_actors.records.hosts.liveness import Sign as Sign
from ikigai_actors.records.log.diff import Diff as Diff
from ikigai_actors.records.log.diff import Tail as Tail
from ikigai_actors.records.log.history import ReplayRange as ReplayRange
from ikigai_actors.records.log.merge_source import MergedDocument as MergedDocument
from ikigai_actors.records.mail.mail import Mail as Mail
from ikigai_actors.records.mail.mail import Mailbox as Mailbox
from ikigai_actors.records.mail.mail import Preview as Preview
from ikigai_actors.records.mail.timers import Timer as Timer
from ikigai_actors.records.messages.messages import Kind as Kind
from ikigai_actors.records.messages.steered import Steered as Steered
from ikigai_actors.records.proof.chain_check import Problem as Problem
from ikigai_actors.records.proof.checkpoint import Checkpointed as Checkpointed
from ikigai_actors.records.proof.verify import Verified as Verified
from ikigai_actors.records.transfer.export import Exported as Exported
from ikigai_actors.records.transfer.format import Record as Record
from ikigai_actors.records.transfer.format import RecordFile as RecordFile
from ikigai_actors.store.hosts.rows import HostRecord as HostRecord
from ikigai_actors.store.journal import JournalStatistics as JournalStatistics
from ikigai_actors.system.context import Context as Context
from ikigai_actors.system.handles.outcomes import Compacted as Compacted
from ikigai_actors.system.handles.outcomes import Merged as Merged
from ikigai_actors.system.receipts import Receipt as Receipt
from ikigai_actors.system.reply_stream import AsyncReplyStream as AsyncReplyStream
from ikigai_actors.system.reply_stream import ReplyStream as ReplyStream
from ikigai_actors.system.reply_stream import StreamPiece as StreamPiece
from ikigai_actors.tools.signature import Signature as Signature
from supervisors.orphans import OrphanPolicy as OrphanPolicy

__all__: list[str]
