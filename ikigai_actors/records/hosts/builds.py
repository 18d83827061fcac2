"""Table ``builds``, and columns of ``hosts``: the code that hosts run, and whether their tools are equal.

A host writes its build, and the definitions of its tools, in the transaction in which it begins
(`ikigai_actors.store.hosts.host`). Hosts with the same name of a build run the same functions.
"""

import json

from ikigai_actors.errors import BadInput
from ikigai_actors.records.messages.definitions import Definitions, definition_bodies
from ikigai_actors.store.base import Transaction
from ikigai_actors.tools.builds import Build, differing, digests_by_name
from ikigai_actors.tools.definitions import Definition, ToolDifference

MOST_BUILDS = 100
"""The most builds that are kept: those of living hosts, and the latest."""


def describe_build(tx: Transaction, host: str, build: Build, offered: tuple[Definition, ...]) -> None:
    """Write the build and the tools of a host.

    Args:
        tx: the transaction in which the host begins.
        host: its id.
        build: its code.
        offered: the known definitions of all of its tools, including those of toolsets.

    Raises:
        BadInput: the build has run with other tools of the same names.
    """
    for tools, known_runtime in tx.run("build", id=build.id):
        _refuse_others(build, json.loads(tools), known_runtime)
    definitions = Definitions()
    definitions.keep((*build.tools, *offered))
    definitions.settle(tx)
    tx.run("keep_build", id=build.id, tools=digests_by_name(build.tools), runtime=build.runtime)
    tx.run("set_build", id=host, build=build.id, tools=digests_by_name((*build.tools, *offered)))
    tx.run("drop_builds", most=MOST_BUILDS)


def describe_toolsets(tx: Transaction, host: str, build: Build, offered: tuple[Definition, ...]) -> None:
    """Write the build and the tools of a host again after its toolsets have opened. They were not open when it began.

    Arguments and errors are those of `describe_build`.
    """
    tx.run("tree_change")  # against a prune
    describe_build(tx, host, build, offered)


def host_differences(tx: Transaction) -> tuple[ToolDifference, ...]:
    """Return the tools whose definitions differ between living hosts.

    Hosts of earlier versions, which write no definitions, are left out. Hosts with equal sets of tools are compared
    without reading a definition.
    """
    hosts = {name: json.loads(tools) for name, tools in tx.run("tools_of_hosts")}
    if not differing(hosts, {}):
        return ()
    return differing(hosts, definition_bodies(tx, {digest for tools in hosts.values() for digest in tools.values()}))


def prune_definitions(tx: Transaction) -> None:
    """Delete the definitions to which no message, build or living host refers.

    A question that is committed meanwhile refers to a definition of its host, which is living.
    """
    tx.run("tree_change")  # no host begins meanwhile
    tx.run("prune_definitions")


def _refuse_others(build: Build, known: dict[str, str], runtime: str) -> None:
    here = {tool.name: tool.digest for tool in build.tools}
    if here != known and runtime == build.runtime:
        other = sorted(name for name in here.keys() | known.keys() if here.get(name) != known.get(name))
        raise BadInput(
            f"Build {build.id} has run with other definitions of {', '.join(other)}. Give this code another name: "
            "build=, or ikigai host --build."
        )
