"""Tokens: the database knows their hashes alone, and each lets its principal in until it ends."""

import json
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, BadInput, OfflineProvider
from ikigai_actors.errors import NotAllowed
from ikigai_actors.reach.access import Access
from ikigai_actors.records.tokens import token_digest, token_of
from ikigai_actors.shell.cli.main import run
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.verbs.principal import Principal
from ikigai_actors.verbs.table import load
from ikigai_actors.verbs.tools import CalledPlace, call
from ikigai_actors.verbs.verb import Verb, VerbGroup

DAY = 24 * 3600 * 1000


def verb(name: str) -> Verb:
    group = load("token")
    assert isinstance(group, VerbGroup)
    return next(verb for verb in group.verbs if verb.name == name)


def test_a_token_lets_its_principal_in_until_it_expires_or_is_revoked(durable: str) -> None:
    with ActorSystem.open(durable, OfflineProvider()) as host, AttachedSystem.open(durable) as system:
        kid = host.root.fork(name="kid")
        place = CalledPlace(Access.of(system))
        arguments = {"principal": "anna", "roles": ["prompt", "lead"], "under": "kid", "days": 2}
        made = call(place, verb("create"), arguments).value
        assert isinstance(made, dict)
        secret, now = str(made["token"]), system._clock.now_ms()
        token_row = system._store.read(lambda tx: token_of(tx, secret, now))
        assert token_row is not None
        assert (token_row.principal, token_row.roles, token_row.under) == ("anna", "lead prompt", kid.uuid)
        assert system._store.read(lambda tx: token_of(tx, secret + "x", now)) is None
        assert system._store.read(lambda tx: token_of(tx, secret, now + 2 * DAY + 1)) is None
        whole = system._store.read(lambda tx: repr(tx.schema.execute("SELECT * FROM tokens")))
        assert secret not in whole
        assert token_digest(secret) in whole
        call(CalledPlace(Access.of(system)), verb("revoke"), {"token": token_digest(secret)[:12]})
        assert system._store.read(lambda tx: token_of(tx, secret, now)) is None
        with pytest.raises(BadInput, match="No open token"):
            call(CalledPlace(Access.of(system)), verb("revoke"), {"token": "anna"})
        listed = call(CalledPlace(Access.of(system)), verb("list"), {})
        assert secret not in listed.text
        assert "revoked" in listed.text


def test_nobody_gives_away_a_right_or_a_reach_that_it_lacks(durable: str) -> None:
    with ActorSystem.open(durable, OfflineProvider()) as host, AttachedSystem.open(durable) as system:
        kid, _ = host.root.fork(name="kid"), host.root.fork(name="other")
        anna = Principal("anna", "Anna", frozenset({"approve"}))
        from ikigai_actors.verbs.rights import Right

        with pytest.raises(NotAllowed, match="lacks the role operate"):
            call(
                CalledPlace(Access.of(system), anna),
                verb("create"),
                {"principal": "eve", "roles": ["operate"]},
                Right.APPROVE,
            )
        below = CalledPlace(Access.of(system, top="kid"))
        made = call(below, verb("create"), {"principal": "eve", "roles": ["look"]}).value
        assert isinstance(made, dict)
        assert made["under"] == kid.uuid


@pytest.mark.slow("takes a tenth of a second")
def test_a_token_is_made_listed_and_revoked_by_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = str(tmp_path / "team.db")
    with ActorSystem.open(database, OfflineProvider()) as host:
        host.root.rename("root")
    assert run(["--database", database, "token", "create", "ci", "--role", "prompt", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["token"].startswith("ikg_")
    assert "@" in made["made_by"]
    assert run(["--database", database, "token", "list"]) == 0
    printed = capsys.readouterr().out
    assert made["id"] in printed
    assert made["token"] not in printed
    assert run(["--database", database, "token", "revoke", "ci"]) == 0
    assert capsys.readouterr().out == "revoked 1 token\n"
    assert run(["--database", database, "token", "create", "c i", "--role", "prompt"]) == 1
