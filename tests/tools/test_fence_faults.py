"""The attempts find a fence with a fault, and each wall that stands alone holds by itself."""

import subprocess
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from ikigai_actors.tools.fence.grounds import interpreter
from ikigai_actors.tools.fence.policy import Fence
from ikigai_actors.tools.fence.tiers import Candidate, Tier
from tests.kit.fences import Scene, enclosed, escaped, planted, run_in, run_started, scene

pytestmark = pytest.mark.slow("starts programs in fences")


class Fault(NamedTuple):
    """A fault that is planted in the launcher."""

    name: str
    before: str
    after: str
    out: set[str]
    """The attempts that get out by it; they are tried."""
    mode: str = "required"
    network: str | list[int] = "none"
    landlock: int | None = None
    """The version of Landlock, where a second wall would hold; None for all of it."""


FAULTS = (
    Fault(
        "no filter of calls",
        "            _restrict_calls(network, unix_sockets, alone=not namespaces)\n",
        "            pass\n",
        {"makes_a_user_namespace", "clones_a_user_namespace", "asks_the_kernel_by_a_ring", "stores_a_key",
         "types_at_its_own_terminal", "makes_a_socket_to_the_hypervisor", "calls_as_a_32_bit_program"},
    ),
    Fault(
        "no filter of foreign calls",
        "_ARCHITECTURE[machine]), _KILL,",
        "_ARCHITECTURE[machine]), _ALLOW,",
        {"calls_as_a_32_bit_program"},
    ),
    Fault(
        "signals are not in scope",
        "_SCOPES = 3",
        "_SCOPES = 0",
        {"signals_a_process", "signals_by_a_descriptor"},
        mode="landlock",
    ),
    Fault(
        "abstract sockets are not in scope",
        "_SCOPES = 3",
        "_SCOPES = 0",
        {"connects_to_an_abstract_socket"},
        network="all",
    ),
    Fault(
        "descriptors of the host are left",
        "        _keep_descriptors(lifeline, _status, shown)\n",
        "",
        {"holds_a_descriptor_of_the_host"},
        mode="landlock",
    ),
    Fault(
        "descriptors of what is covered are left",
        "            _keep_descriptors(_status, shown)",
        "            pass",
        {"plants_a_hook_by_a_descriptor_of_its_keeper"},
    ),
    Fault("capabilities are left", "            _drop_capabilities()\n", "", {"has_capabilities"}),
    Fault("core files are left", "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))", "pass", {"leaves_a_core"}),
    Fault(
        "protected names are forgotten",
        "        _protect(root, above, name, fixed)\n",
        "        pass\n",
        {"plants_a_hook", "plants_a_setting_of_git", "exchanges_the_repository", "plants_a_setting_of_the_editor"},
    ),
    Fault(
        "what is above a protected name can be renamed",
        "            if path not in fixed:\n",
        "            if False:\n",
        {"exchanges_the_repository"},
    ),
    Fault(
        "settings of the kernel can be written, by one wall less",
        '    _seal(root + "/proc", _RDONLY)',
        "    pass",
        {"writes_a_setting_of_the_kernel"},
        landlock=0,
    ),
    Fault(
        "the network of the host",
        '_enter_namespaces(own_network=network == "none")',
        "_enter_namespaces(own_network=False)",
        {"connects_by_tcp", "sends_by_udp"},
    ),
    Fault(
        "datagrams beside the ports",
        "(_EQUAL, 1, 0, 1), _refuse(errno.EACCES)]",
        "(_EQUAL, 1, 1, 1), _refuse(errno.EACCES)]",
        {"sends_by_udp"},
        network=[443],
    ),
    Fault(
        "connections with data beside the ports",
        'if network == "ports":  # a',
        'if network == "":  # a',
        {"connects_with_its_first_data"},
        network=[443],
    ),
    Fault(
        "segments of others",
        "*(SHARED.values() if alone else ())",
        "",
        {"reads_a_shared_segment", "reads_a_shared_segment_by_its_number"},
        mode="landlock",
    ),
    Fault(
        "others by their numbers",
        "    if alone:\n",
        "    if False:\n",
        {"limits_a_process", "slows_a_process", "slows_the_disk_of_a_process", "moves_a_process"},
        mode="landlock",
    ),
)  # fmt: skip


@pytest.fixture(scope="module")
def of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with scene(tmp_path_factory.mktemp("scene")) as made:
        yield made


@pytest.mark.sample(1, "two fences for each")
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_found(of: Scene, fault: Fault) -> None:
    how = None if fault.landlock is None else Candidate(Tier.NAMESPACES, True, fault.landlock, True)
    fence = Fence(mode=fault.mode, network=fault.network)
    with planted(of, fence, how=how) as whole:
        assert escaped(of, whole, *fault.out) == set()
    with planted(of, fence, fault.before, fault.after, how) as made:
        assert escaped(of, made, *fault.out) == fault.out


@pytest.mark.sample(1, "lists")
@pytest.mark.parametrize(
    ("read", "out"),
    [("/etc", "reads_the_passwords"), ("outside", "reads_a_secret"), ("person", "reads_a_key_in_the_home")],
)
def test_a_list_that_is_too_long_is_found(of: Scene, read: str, out: str) -> None:
    with planted(of, Fence(mode="required"), read=[str(of.outside.parent / read)]) as made:
        assert escaped(of, made, out) == {out}


def test_namespaces_hold_without_landlock(of: Scene) -> None:
    with planted(of, Fence(mode="required", network="none"), how=Candidate(Tier.NAMESPACES, True, 0, True)) as made:
        assert escaped(of, made) == set()


def test_the_keeper_of_a_program_is_behind_no_fence_of_it_so_it_cannot_be_ended(of: Scene) -> None:
    """A keeper in the program's own domain of Landlock is one that the program may send signals to."""
    fence, before = Fence(mode="landlock"), "        main = os.fork()\n"
    early = f"        restrict()\n        restrict = int\n{before}"
    for faulty in (False, True):
        with planted(of, fence, before if faulty else "", early) as made:
            assert run_in(of, ["bash", "-c", "kill -0 $PPID"], made).returncode == (not faulty)


PLANTED = "import os; os.close(os.open({!r}, os.O_WRONLY | os.O_CREAT))"


def test_no_module_of_the_workspace_runs_before_the_fence_is_made(of: Scene) -> None:
    ran = of.outside / "ran"
    for name in ("ctypes", "errno", "resource", "select", "signal", "stat", "struct", "time", "collections", "enum"):
        (of.work / f"{name}.py").write_text(PLANTED.format(str(ran)))
    with planted(of, Fence(mode="required")) as made:
        environment = {**made.environment("agent"), "PYTHONPATH": str(of.work)}
        started = run_started(made.launch("agent"), environment, ["true"], of.work)
        assert (started.returncode, ran.exists()) == (0, False)
    subprocess.run([interpreter(), "-S", "-c", "import resource"], env=environment, cwd=of.work, check=False)
    assert ran.exists(), "without -I it would"
    for module in of.work.glob("*.py"):
        module.unlink()


@pytest.mark.sample(1, "kinds of a list")
@pytest.mark.parametrize("mode", ["required", "landlock"])
def test_what_is_listed_is_not_what_a_link_in_its_place_leads_to(of: Scene, mode: str) -> None:
    shown = of.outside / "shown"
    shown.mkdir()
    with enclosed(of, Fence(mode=mode, read=[shown])) as made:
        assert run_in(of, ["ls", str(shown)], made).stdout == ""
        shown.rmdir()
        shown.symlink_to(of.home / ".ssh")  # as a server does that may write there
        with pytest.raises(AssertionError, match="symbolic link"):
            run_in(of, ["ls", str(shown)], made)
    shown.unlink()


def test_a_link_in_its_temporary_files_leads_no_later_start_out(of: Scene) -> None:
    if not str(of.work).startswith("/tmp/"):
        pytest.skip("the workspace is not among temporary files here")
    first = of.work.parts[2]
    before = sorted(of.outside.iterdir())
    with planted(of, Fence(mode="required")) as made:
        plant = f"mv /tmp/{first} /tmp/moved && ln -s {of.outside} /tmp/{first} && ls -l /tmp"
        assert f"{first} -> {of.outside}" in run_in(of, ["bash", "-c", plant], made).stdout
        assert run_in(of, ["bash", "-c", "pwd; touch here"], made).stdout == f"{of.work}\n"
    assert (of.work / "here").exists()
    assert sorted(of.outside.iterdir()) == before
