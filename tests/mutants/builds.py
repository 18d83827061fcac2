"""Mutants of builds, of programs of two versions on one database, and of what stood in rows that change in place.

nice python -m tests.mutants --builds
"""

from tests.mutants import Mutant

_APPROVALS, _VERSIONS = "tests/agent/test_approvals.py", "tests/store/test_hosts_of_versions.py"
_FORMER = "tests/records/test_former.py"

BUILD_MUTANTS = (
    Mutant(
        "a question holds for another definition of its tool",
        "agent/turn/calls.py",
        'tools[call.name].definition not in ("", call.definition)',
        'tools[call.name].definition == ""',
        test=_APPROVALS,
    ),
    Mutant(
        "a decision on an earlier question holds for another definition",
        "agent/turn/machine.py",
        "    if (event.definition and event.definition != asked[0].definition) or",
        "    if",
        test=_APPROVALS,
    ),
    Mutant(
        "a question holds for another build",
        "agent/turn/calls.py",
        'bool(call.build) and tools[call.name].build not in ("", call.build)',
        "False",
        test=_APPROVALS,
    ),
    Mutant(
        "an approval is carried over to another build",
        "agent/turn/calls.py",
        "    asked = (Progress.ASKING, Progress.APPROVED)\n",
        "    asked = (Progress.ASKING,)\n",
        test=_APPROVALS,
    ),
    Mutant(
        "a decision on a question of another build counts",
        "agent/turn/machine.py",
        ' or event.build not in ("", asked[0].build):',
        ":",
        test=_APPROVALS,
    ),
    Mutant(
        "a question of another build has the name of the former one",
        "agent/turn/calls.py",
        "sha256(f'{self.definition}{self.build}'.encode())",
        "sha256(self.definition.encode())",
        test=_APPROVALS,
    ),
    Mutant(
        "a definition is known without its description",
        "tools/definitions.py",
        "        **described,\n",
        '        **{**described, "description": ""},\n',
        test=_APPROVALS,
    ),
    Mutant(
        "a call that was cut off starts again as another tool",
        "agent/turn/calls.py",
        ' and not call.elsewhere and call.definition in ("", own.definition)',
        " and not call.elsewhere",
        test="tests/agent/test_tool_crash.py",
    ),
    Mutant(
        "a build is known by the paths of its files",
        "tools/builds.py",
        "sha256(Path(inspect.getfile(defined)).read_bytes()).hexdigest()",
        "inspect.getfile(defined)",
        test="tests/tools/test_builds.py",
    ),
    Mutant(
        "a build's name holds for other tools",
        "records/hosts/builds.py",
        "    if here != known and runtime == build.runtime:",
        "    if here != known and runtime != build.runtime:",
        test="tests/records/test_builds.py",
    ),
    Mutant(
        "a prune deletes definitions that messages name",
        "store/queries.sql",
        "messages m WHERE m.data LIKE '%' || definitions.digest || '%')",
        "messages m WHERE m.data = definitions.digest)",
        test="tests/records/test_builds.py",
    ),
    Mutant(
        "a build of a living host is dropped with the old ones",
        "store/queries.sql",
        "WHERE id NOT IN (SELECT h.build FROM hosts h WHERE h.ended_at IS NULL)\n   AND id NOT IN",
        "WHERE id NOT IN",
        test="tests/records/test_builds.py",
    ),
    Mutant(
        "a step that adds shuts older programs out",
        "store/migrations.py",
        'transaction.run("set_schema_version", version=step.version, least=step.least)',
        'transaction.run("set_schema_version", version=step.version, least=step.version)',
        test=_VERSIONS,
        tier="standard",
    ),
    Mutant(
        "a step runs beside a host that does not know it",
        "store/hosts/host.py",
        "            if older := older_hosts(tx, least):\n",
        "            if older := older_hosts(tx, 0):\n",
        test=_VERSIONS,
        tier="standard",
    ),
    Mutant(
        "a step waits for a lock as long as it takes",
        "store/migrations.py",
        "    transaction.schema.limit_waits(LOCK_WAIT)\n",
        "",
        test=_VERSIONS,
        tier="standard",
    ),
    Mutant(
        "a host goes on though it does not know the tables any more",
        "store/hosts/host.py",
        "        if least > self._knows and not self._is_outdated:",
        "        if least < self._knows and not self._is_outdated:",
        test=_VERSIONS,
        tier="standard",
    ),
    Mutant(
        "an attached program goes on though it does not know the tables any more",
        "system/remote/follower.py",
        "        if least > newest():",
        "        if least < 0:",
        test="tests/system/test_versions_on_hosts.py",
        tier="standard",
    ),
    Mutant(
        "nobody knows whose child an adopted agent was",
        "records/lives/supervision.py",
        "        keep_supervisors(tx, [self.agent], self.by, self.now)\n",
        "",
        test=_FORMER,
    ),
    Mutant(
        "nobody knows how an agent was called",
        "records/agents/registry.py",
        "        keep_name(tx, self._uuid, self._now)\n",
        "",
        test=_FORMER,
    ),
    Mutant(
        "a prune deletes what was so within the last month",
        "records/agents/former.py",
        "before=now - FORMER_MS",
        "before=now",
        test=_FORMER,
    ),
)
