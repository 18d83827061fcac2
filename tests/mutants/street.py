"""Mutants of the network API, of what holds below the verbs, and of deliveries from outside.

nice python -m tests.mutants --street
"""

from tests.mutants import Edit, Mutant

_ARRIVALS, _SIGNATURES = "tests/system/test_endpoints.py", "tests/records/test_signatures.py"
_OUTBOX, _SENDING = "tests/records/test_outbox.py", "tests/system/test_subscriptions.py"
_LINKS = "tests/doors/test_question_links.py"
_A2A, _PUSHES = "tests/doors/test_a2a.py", "tests/doors/test_a2a_pushes.py"
_DOORS, _SECRETS = "tests/doors/test_api_doors.py", "tests/system/test_kept_secrets.py"
_API, _REACH, _TOKENS = "tests/doors/test_api.py", "tests/verbs/test_reach.py", "tests/verbs/test_tokens.py"

STREET_MUTANTS = (
    Mutant(
        "a request claims no key",
        "reach/asked.py",
        "        if self.call is None or self.did is not None:",
        "        if True:",
        test=_API,
    ),
    Mutant(
        "a key without its principal",
        "records/once.py",
        'f"{principal}\\0{key}"',
        'f"{key}"',
        test=_API,
    ),
    Mutant(
        "a key is not looked up before the verb",
        "reach/keys.py",
        "    if call is None:\n        return None\n\n    def read",
        "    if call is None or call:\n        return None\n\n    def read",
        test=_API,
    ),
    Mutant(
        "the key of a refused request stays",
        "reach/keys.py",
        "    if client.read(lambda tx: _was_refused(tx, did)):",
        "    if not client.read(lambda tx: _was_refused(tx, did)):",
        test=_API,
    ),
    Mutant(
        "a posted command forgets who asks",
        "system/remote/agents.py",
        "self._posted.append(for_asker(task))",
        "self._posted.append(task)",
        test=_REACH,
    ),
    Mutant(
        "the gate is left off the clients",
        "store/unit.py",
        "    asker, act = current_asker(), unit\n",
        "    asker, act = None, unit\n",
        test=_REACH,
    ),
    Mutant(
        "an argument names an agent out of reach",
        "verbs/tools.py",
        "not (name == ACTED_ON or isinstance(param.type, OfferingAgents))",
        "name != ACTED_ON",
        test=_REACH,
    ),
    Mutant(
        "a revoked token lets in",
        "records/tokens.py",
        "        if self.revoked_at is not None:",
        "        if self.revoked_at is None and self.revoked_at is not None:",
        test=_TOKENS,
    ),
    Mutant(
        "a delivery that has arrived is not known",
        "records/arrivals/arrivals.py",
        "        if (known := self._known(tx)) is not None:",
        "        if (known := self._known(tx)) is None and known:",
        test=_ARRIVALS,
    ),
    Mutant(
        "a paused endpoint takes what comes",
        "records/arrivals/arrivals.py",
        "        waits = endpoint.paused_at is not None or bool(",
        "        waits = bool(",
        test=_ARRIVALS,
    ),
    Mutant(
        "children that are asked for do not count",
        "records/arrivals/arrivals.py",
        "int(living) + int(coming) >= act.most",
        "int(living) >= act.most",
        test=_ARRIVALS,
    ),
    Mutant(
        "the proofs of a sender are kept",
        "system/endpoints.py",
        "if key not in SECRET_HEADERS",
        "if key",
        test=_ARRIVALS,
    ),
    Mutant(
        "the body is signed as it is parsed",
        "records/arrivals/signatures.py",
        "lambda secret: _signed(secret.encode(), raw))",
        "lambda secret: _signed(secret.encode(), raw.strip()))",
        test=_SIGNATURES,
    ),
    Mutant(
        "a signature holds for a day",
        "records/arrivals/signatures.py",
        "TOLERANCE = 300.0",
        "TOLERANCE = 86_400.0",
        test=_SIGNATURES,
    ),
    Mutant(
        "a signature without its time is taken",
        "records/arrivals/signatures.py",
        '_signed(secret.encode(), time, b".", raw)',
        "_signed(secret.encode(), raw)",
        test=_SIGNATURES,
    ),
    Mutant(
        "a delivery passes those that are held",
        "records/arrivals/arrivals.py",
        "or bool(arrivals_with(tx, arrival.endpoint, HELD, 1))",
        "or bool(())",
        test=_ARRIVALS,
    ),
    Mutant(
        "an event is posted after its commit, with the next one",
        "records/outbox/events.py",
        "    locked.others.add(event.agent)\n",
        "    _LATE.append(event)\n"
        "    event = _LATE.pop(0) if len(_LATE) > 1 else event\n"
        "    locked.others.add(event.agent)\n",
        also=(Edit("records/outbox/events.py", "class PostedEvent(", "_LATE: list = []\n\n\nclass PostedEvent("),),
        test=_SENDING,
    ),
    Mutant(
        "the result of a try is written by a host that has lost the agent",
        "store/queries.sql",
        "WHERE a.uuid = :agent AND h.host = :host AND h.epoch = :epoch)\nRETURNING position",
        "WHERE a.uuid = :agent AND :host <> '' AND :epoch >= 0)\nRETURNING position",
        test=_OUTBOX,
    ),
    Mutant(
        "each try has an id of its own",
        "system/host/deliveries.py",
        "signed_headers(due.key.id, self._clock",
        'signed_headers(f"{due.key.id}{due.tries}", self._clock',
        test=_SENDING,
    ),
    Mutant(
        "a delivery passes one of its agent that waits",
        "store/queries.sql",
        "AND (e.position < d.position OR (e.position = d.position AND (e.kind < d.kind",
        "AND e.position < 0 AND (e.position < d.position OR (e.position = d.position AND (e.kind < d.kind",
        test=_OUTBOX,
    ),
    Mutant(
        "an address is not looked at",
        "system/guarded_http.py",
        "        if not allowed.allows(address, port, tls=tls):",
        "        if allowed is None:",
        test=_SENDING,
    ),
    Mutant(
        "an address is looked at as it is written, before its look-up",
        "system/guarded_http.py",
        "        if not allowed.allows(address, port, tls=tls):",
        "        if address[:1].isalpha() and not allowed.allows(address, port, tls=tls):",
        test=_SENDING,
    ),
    Mutant(
        "a redirection is followed",
        "system/host/http_link.py",
        "allow_redirects=False",
        "allow_redirects=True",
        test=_SENDING,
    ),
    Mutant(
        "an address that hides another one is reached",
        "records/outbox/addresses.py",
        "        if hides or address in _COMPATIBLE",
        "        if address in _COMPATIBLE",
        test=_OUTBOX,
    ),
    Mutant(
        "what is not public is reached without TLS",
        "records/outbox/addresses.py",
        "        return tls and (port == 443",
        "        return (port == 443",
        test=_OUTBOX,
    ),
    Mutant(
        "a receiver that is gone is asked again",
        "records/outbox/retries.py",
        "    if answer.status == GONE:",
        "    if answer.status == 0 and answer.status == GONE:",
        test=_OUTBOX,
    ),
    Mutant(
        "a subscription that fails goes on forever",
        "records/outbox/deliveries.py",
        '            tx.run("note_failing", id=key.subscription, now=self.now)',
        "            pass",
        test=_OUTBOX,
    ),
    Mutant(
        "a link whose expiry was changed is good",
        "records/questions/links.py",
        "hmac.digest(own, body.encode(), ",
        'hmac.digest(own, body.partition(".")[0].encode(), ',
        test=_LINKS,
    ),
    Mutant(
        "a link that has expired answers",
        "reach/question_links.py",
        "row.is_open and linked.expires_at <= self._now()",
        "row.is_open and linked.expires_at <= 0",
        test=_LINKS,
    ),
    Mutant(  # the gate below a look would refuse the unit
        "to look at a link decides",
        "reach/question_links.py",
        "        with acting_for(LOOKER):\n            outcome = self._found(link)\n",
        "        if not isinstance(outcome := self._found(link), LinkOutcome):\n"
        "            self._system.questions.answer(outcome[1].id, 'deny' if outcome[1].kind != ASK else None)\n"
        "        with acting_for(LOOKER):\n            outcome = self._found(link)\n",
        test=_LINKS,
    ),
    Mutant(
        "a link that was used thanks again",
        "reach/question_links.py",
        'return LinkOutcome(410, f"This question was',
        'return LinkOutcome(200, f"This question was',
        test=_LINKS,
    ),
    Mutant(
        "a link answers something else than was shown",
        "reach/question_links.py",
        'if fields.get("digest") != question.digest:',
        'if fields.get("digest") == "":',
        (Edit("reach/question_links.py", "by=linked.name, digest=question.digest", "by=linked.name"),),
        test=_LINKS,
    ),
    Mutant(
        "a form of a client is not checked",
        "reach/shown_questions.py",
        "    return check_answer(form, {name: _typed",
        "    return ({name: _typed",
        (Edit("system/questions.py", "None if answer is None else check_answer(row.form, answer)", "answer"),),
        test="tests/doors/test_question_forms.py",
    ),
    Mutant(
        "a subscription of a branch gets the events of its top alone",
        "store/queries.sql",
        "(s.below = 1 AND s.scope IN (",
        "(s.below = 2 AND s.scope IN (",
        test=_SENDING,
    ),
    Mutant(
        "two principals share the ids of messages of A2A",
        "reach/contexts.py",
        "[A2A_ORIGIN, carded, principal, message]",
        "[A2A_ORIGIN, carded, message]",
        test=_A2A,
    ),
    Mutant(
        "a message of A2A that comes again is done again",
        "verbs/acts/contexts.py",
        "keyed = reach.under(_call(name, message))",
        "keyed = reach",
        test=_A2A,
    ),
    Mutant(
        "a cancellation of A2A ends whichever turn is in progress",
        "verbs/acts/turns.py",
        "    if not (opening := reach.turns.opening(handle)) or not reach.turns.seen(handle).is_open:\n"
        "        return False\n    reach.client.interrupt(handle.agent, opening)",
        "    reach.turns.opening(handle)\n    reach.client.interrupt(handle.agent, 0)",
        test=_A2A,
    ),
    Mutant(
        "a push of A2A is of whichever task of its context",
        "records/outbox/pushed_tasks.py",
        '    return opening.kind == Kind.USER and f"{opening.agent_uuid}.{task_opened_by(opening)}" == task.task',
        "    return opening.kind == Kind.USER and opening.agent_uuid == task.context",
        test=_PUSHES,
    ),
    Mutant(
        "a push of A2A asks everybody what the task asks",
        "system/host/task_bodies.py",
        "question.is_open and is_asked(question.asks, task.principal, task.roles)",
        "question.is_open",
        test=_PUSHES,
    ),
    Mutant(
        "a config of A2A that comes after the end of its task hears nothing",
        "verbs/acts/task_pushes.py",
        "    if handle.kind != REQUEST and (former := _former(reach, handle)):",
        "    if handle.kind == REQUEST and (former := _former(reach, handle)):",
        test=_PUSHES,
    ),
    Mutant(
        "a call is decided by a principal that its question does not ask",
        "verbs/principal.py",
        "    if roles is not None:\n        check_addressed(",
        "    if roles is None:\n        check_addressed(",
        test=_DOORS,
    ),
    Mutant(
        "a sealed secret is bound to no row",
        "records/sealed.py",
        "encrypt(nonce, data, self._id + place.encode())",
        "encrypt(nonce, data, self._id)",
        (Edit("records/sealed.py", "key.decrypt(nonce, rest, id_ + place.encode())", "key.decrypt(nonce, rest, id_)"),),
        test=_SECRETS,
    ),
    Mutant(
        "the secrets of all endpoints are sealed for one place",
        "records/arrivals/endpoints.py",
        'return f"endpoint\\n{name}"',
        'return "endpoint"',
        test=_SECRETS,
    ),
    Mutant(
        "the first key opens what another one has sealed",
        "records/sealed.py",
        "if (key := self._by_id.get(id_)) is None:",
        "if (key := self._by_id[self._id]) is None:",
        test=_SECRETS,
    ),
    Mutant(
        "a list shows what is sealed",
        "records/secret_references.py",
        'return ["sealed" if sealed_bytes(text) is not None else text for text in kept]',
        "return [*kept]",
        test=_SECRETS,
    ),
    Mutant(
        "the refusal of a secret repeats it",
        "records/secret_references.py",
        "{LONGEST_SECRET:,} printable characters.",
        "{LONGEST_SECRET:,} printable characters: {secret}.",
        test=_SECRETS,
    ),
    Mutant(
        "a new key seals the first secret of a row alone",
        "system/kept_secrets.py",
        "return tuple(self._again(place, text) for text in kept)",
        "return (self._again(place, kept[0]), *kept[1:])",
        test=_SECRETS,
    ),
    Mutant(
        "a new key passes over subscriptions",
        "system/kept_secrets.py",
        "    for each in read(all_subscriptions):",
        "    for each in read(all_subscriptions)[:0]:",
        test=_SECRETS,
    ),
    Mutant(
        "a new key passes over a row that changes meanwhile",
        "system/kept_secrets.py",
        "    return sum(done) + (0 if all(done) else seal_secrets_again(secrets, read, write))",
        "    return sum(done)",
        test=_SECRETS,
    ),
    Mutant(
        "a new key undoes a change that comes in between",
        "store/queries.sql",
        "UPDATE endpoints SET spec = :spec WHERE name = :name AND spec = :former RETURNING name",
        "UPDATE endpoints SET spec = :spec WHERE name = :name AND :former <> '' RETURNING name",
        test=_SECRETS,
    ),
    Mutant(
        "a key is claimed in a transaction of its own",
        "store/unit.py",
        "        unit = asker.around(act)\n",
        "        unit = asker.around(act)\n        if hasattr(unit, 'claim'):\n            store.write(unit.claim)\n",
        (
            Edit(
                "records/once.py",
                "        if (known := claim_key(tx, self._call, self._now)) is not None:\n            raise Repeated(",
                "        known = self._known[0] if self._known else claim_key(tx, self._call, self._now)\n"
                "        if known is not None:\n            raise Repeated(",
            ),
            Edit("records/once.py", '"_call", "_gave", "_now")', '"_call", "_gave", "_known", "_now")'),
            Edit(
                "records/once.py",
                "        self._call, self._now, self._gave = call, now, gave\n",
                "        self._call, self._now, self._gave, self._known = call, now, gave, []\n\n"
                "    def claim(self, tx: Transaction) -> None:\n"
                "        self._known = [claim_key(tx, self._call, self._now)]\n",
            ),
        ),
        test=_API,
    ),
    Mutant(
        "a request is answered before its commit",
        "store/unit.py",
        "        tx.notify(concerned((unit,), locked))\n        return answer\n\n    while True:",
        "        tx.notify(concerned((unit,), locked))\n        early.append(answer)\n        return answer\n\n"
        "    early: list[Any] = []\n    while True:",
        (
            Edit(
                "store/unit.py",
                "            unit = alone.unit\n    if asker is not None:\n        asker.committed",
                "            unit = alone.unit\n        except Exception:\n            if not early:\n"
                "                raise\n            answer = early[-1]\n            break\n"
                "    if asker is not None:\n        asker.committed",
            ),
        ),
        test=_API,
    ),
    Mutant(  # which is careful: it looks first, and leaves what is held, full or dead to the row
        "the row of a delivery is written after its act",
        "system/endpoints.py",
        "        received: Received = self._perform("
        "_arrive(endpoint, NewArrival(name, delivery.id, body, kept, now), delivery))\n",
        "        arrive = _arrive(endpoint, NewArrival(name, delivery.id, body, kept, now), delivery)\n"
        "        if arrive._act and not self._store.read(arrive.is_settled):\n"
        "            try:\n"
        "                arrive._act = arrive._act._replace(unit=_Done(self._perform(arrive._act.unit)))\n"
        "            except BadInput:\n"
        "                pass\n"
        "        received: Received = self._perform(arrive)\n",
        (
            Edit(
                "system/endpoints.py",
                "class Endpoints(OfOneProcess):",
                "class _Done(Unit):\n"
                "    def __init__(self, done: Any) -> None:\n"
                "        self._done = done\n\n"
                "    def write(self, tx: Any, locked: Any) -> Any:\n"
                "        return self._done\n\n\n"
                "class Endpoints(OfOneProcess):",
            ),
            Edit(
                "records/arrivals/arrivals.py",
                "    def _known(self, tx: Transaction) -> Received | None:",
                "    def is_settled(self, tx: Transaction) -> bool:\n"
                "        endpoint = endpoint_called(tx, self._arrival.endpoint)\n"
                "        held = endpoint.paused_at is not None or bool(arrivals_with(tx, endpoint.name, HELD, 1))\n"
                "        return held or self._known(tx) is not None or is_full(tx, endpoint.name, self._act)\n\n"
                "    def _known(self, tx: Transaction) -> Received | None:",
            ),
        ),
        test=_API,
    ),
    Mutant(
        "an id that nobody has signed makes the same body another delivery",
        "records/arrivals/arrivals.py",
        "        if not rows and self._by_body and arrival.again_of is None:",
        "        if not rows and self._by_body and arrival.again_of is not None:",
        test=_ARRIVALS,
    ),
    Mutant(
        "an argument is dropped from the schema",
        "doors/api/openapi.py",
        "    schema = operation.schema\n",
        "    schema = dict(operation.schema)\n"
        '    schema["properties"] = {name: kind for name, kind in schema["properties"].items() if name != "steer"}\n',
        test=_API,
    ),
    Mutant(
        "a public key is a secret as well",
        "records/arrivals/signatures.py",
        "own = [secret for secret in secrets if secret not in public]",
        "own = [*secrets]",
        test=_SIGNATURES,
    ),
)
