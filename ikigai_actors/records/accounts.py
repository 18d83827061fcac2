"""Tables ``accounts`` and ``account_flows``: credentials at remote MCP servers, and authorization flows in progress.

A credential belongs to a server and a subject, a label of agents with its value, as ``user=anna``. The row is sealed
(`ikigai_actors.records.sealed`) for exactly this server and subject. No other module reads these columns.

    a flow begins      its row has the SHA-256 of ``state``, and the sealed data for its second half, for 10 minutes
    a flow is taken    the row is deleted before the code is redeemed, so a second request finds no row
    a flow ends        one commit has the credential, and the decisions on the calls that wait for it
    a renewal begins   the process that sets ``renewing_until`` renews; others wait for a new version, 30 s at most
    a renewal ends     the row has version + 1 and the new credential; or it is deleted, and a person is asked again

If a process crashes between the answer of the service and the commit, and the service accepts a refresh token only
once, the credential is lost: the next renewal is refused, and a person is asked to connect the account again.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ikigai_actors.records.hosts.remote_commands import AddRemoteCommand
from ikigai_actors.records.log.heads import section
from ikigai_actors.records.questions.asked import CONNECT
from ikigai_actors.records.questions.questions import QuestionRow, open_questions, question_with
from ikigai_actors.store.base import Row, Transaction
from ikigai_actors.store.unit import LockedRows, Unit

FLOW_MS = 10 * 60 * 1000
"""Milliseconds for which a flow can be finished."""

RENEWAL_MS = 30 * 1000
"""Milliseconds after which another process may begin a renewal that has not ended."""


class AccountRow(NamedTuple):
    """A row of table ``accounts``: the sealed credential of one subject at one server."""

    server: str
    subject: str
    version: int
    """Raised by one with each renewal."""
    renewing_until: int | None
    issuer: str
    scope: str
    expires_at: int | None
    """When the access token ends, in milliseconds since 1970 (UTC); None where that is not known."""
    sealed: bytes


def account_place(server: str, subject: str) -> str:
    """Return the place for which `SealedBox` seals the credential of an account: the server and the subject."""
    return f"account\n{server}\n{subject}"


def flow_place(state: str) -> str:
    """Return the place for which `SealedBox` seals the data of an authorization flow, by the SHA-256 of its state."""
    return f"flow\n{state}"


def account_of(tx: Transaction, server: str, subject: str) -> AccountRow | None:
    """Return the account of a subject at a server; None if there is none."""
    return next(iter(map(_account, tx.run("account", server=server, subject=subject))), None)


def every_account(tx: Transaction) -> Iterator[AccountRow]:
    """Return all accounts, by server and subject."""
    return map(_account, tx.run("every_account"))


def _account(row: Row) -> AccountRow:
    known = AccountRow._make(row)
    return known._replace(sealed=bytes(known.sealed))


@dataclass(frozen=True, slots=True)
class KeepAccount(Unit):
    """Store a credential; an earlier credential of the account is replaced."""

    server: str
    subject: str
    issuer: str
    scope: str
    expires_at: int | None
    sealed: bytes

    def write(self, tx: Transaction, locked: LockedRows) -> None:
        tx.run(
            "keep_account", server=self.server, subject=self.subject, issuer=self.issuer, scope=self.scope,
            expires_at=self.expires_at, sealed=self.sealed,
        )  # fmt: skip


def questions_for_account(tx: Transaction, account: KeepAccount, asked: str) -> list[QuestionRow]:
    """Return the open questions that a new account answers.

    These are the question ``asked``, and every other request for this account that needs no more rights than it has.
    """
    return [
        row for row in open_questions(tx) if row.id == asked or (row.kind == CONNECT and _asks_for(tx, row, account))
    ]


def _asks_for(tx: Transaction, row: QuestionRow, account: KeepAccount) -> bool:
    for message in section(tx, row.agent, row.position - 1, row.position):
        wanted = message.data.get("connect") or {}
        if (wanted.get("server"), wanted.get("subject")) == (account.server, account.subject):
            return set(str(wanted.get("scope") or "").split()) <= set(account.scope.split())
    return False


@dataclass(frozen=True, slots=True)
class ConnectAccount(Unit):
    """Store a credential, and answer the questions of the calls that wait for the account, in one commit.

    The calls restart.
    """

    account: KeepAccount
    asked: tuple[QuestionRow, ...]
    """The questions that the account answers."""
    now: int

    concerns_others = True
    concerns_hosts = True

    @property
    def touches(self) -> tuple[str, ...]:
        return tuple(sorted({row.agent for row in self.asked}))

    def write(self, tx: Transaction, locked: LockedRows) -> None:
        self.account.write(tx, locked)
        for asked in self.asked:
            row, agent = question_with(tx, asked.id), locked.get(asked.agent)
            if row is None or not row.is_open or agent is None or agent.status == "dead":
                continue
            decision = {
                "reply": row.reply, "call": row.call, "approved": True, "reason": "", "always": "",
                "by": f"account:{self.account.subject}", "question": row.id,
            }  # fmt: skip
            AddRemoteCommand(row.agent, "decide", json.dumps(decision), self.now).write(tx, locked)


@dataclass(frozen=True, slots=True)
class ClaimRenewal(Unit):
    """Claim the renewal of a credential's version; answered with True, or False if another process has claimed it."""

    server: str
    subject: str
    version: int
    now: int

    def write(self, tx: Transaction, locked: LockedRows) -> bool:
        rows = tx.run(
            "claim_renewal", server=self.server, subject=self.subject, version=self.version, now=self.now,
            until=self.now + RENEWAL_MS,
        )  # fmt: skip
        return bool(rows)


@dataclass(frozen=True, slots=True)
class EndRenewal(Unit):
    """Write the renewed credential of a version, or drop the account.

    Answered with whether that version was still there.
    """

    server: str
    subject: str
    version: int
    sealed: bytes | None
    """The renewed credential; None where the service takes the old one no more."""
    expires_at: int | None = None
    scope: str = ""

    def write(self, tx: Transaction, locked: LockedRows) -> bool:
        where = {"server": self.server, "subject": self.subject, "version": self.version}
        if self.sealed is None:
            return bool(tx.run("drop_account", **where))
        return bool(tx.run("renew_account", sealed=self.sealed, expires_at=self.expires_at, scope=self.scope, **where))


@dataclass(frozen=True, slots=True)
class FreeRenewal(Unit):
    """Release the claim of a renewal, because the service could not be reached."""

    server: str
    subject: str
    version: int

    def write(self, tx: Transaction, locked: LockedRows) -> None:
        tx.run("free_renewal", server=self.server, subject=self.subject, version=self.version)


@dataclass(frozen=True, slots=True)
class RemoveAccount(Unit):
    """Remove an account; answered with its row, or None where there is none."""

    server: str
    subject: str

    def write(self, tx: Transaction, locked: LockedRows) -> AccountRow | None:
        row = account_of(tx, self.server, self.subject)
        if row is not None:
            tx.run("drop_account", server=row.server, subject=row.subject, version=row.version)
        return row


@dataclass(frozen=True, slots=True)
class SealAgain(Unit):
    """Replace the sealed credential of a version by the same one sealed with another key.

    Answered with whether that version was still there.
    """

    server: str
    subject: str
    version: int
    sealed: bytes

    def write(self, tx: Transaction, locked: LockedRows) -> bool:
        return bool(
            tx.run("seal_again", server=self.server, subject=self.subject, version=self.version, sealed=self.sealed)
        )


@dataclass(frozen=True, slots=True)
class BeginFlow(Unit):
    """Store the first half of an authorization flow. Expired flows are deleted."""

    state: str
    """The SHA-256 of the state."""
    question: str
    now: int
    sealed: bytes

    def write(self, tx: Transaction, locked: LockedRows) -> None:
        tx.run("drop_flows", now=self.now)
        tx.run("begin_flow", state=self.state, question=self.question, until=self.now + FLOW_MS, sealed=self.sealed)


@dataclass(frozen=True, slots=True)
class TakeFlow(Unit):
    """Delete an authorization flow.

    Answered with the id of its question and its sealed data, or None if there is no such flow.
    """

    state: str
    now: int

    def write(self, tx: Transaction, locked: LockedRows) -> tuple[str, bytes] | None:
        rows = tx.run("take_flow", state=self.state)
        live = [row for row in rows if int(row[1]) > self.now]
        return (str(live[0][0]), bytes(live[0][2])) if live else None
