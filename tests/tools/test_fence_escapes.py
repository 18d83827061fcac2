"""No program gets out of its fence, by each way that a program could take, and what people do in a workspace works."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

from ikigai_actors import ActorSystem, BadInput, McpServer, ScriptedProvider
from ikigai_actors.tools.fence.grounds import interpreter
from ikigai_actors.tools.fence.policy import Fence
from ikigai_actors.tools.fence.tiers import TIER_VARIABLE
from tests.kit.blocking_provider import DEADLINE
from tests.kit.escapes import ATTEMPTS
from tests.kit.fences import ESCAPES, enclosed, escaped, run_in, scene
from tests.kit.mcp_rendezvous import SERVER
from tests.kit.tool_scripts import calling, requests_of, results

pytestmark = pytest.mark.slow("starts programs, and looks at dozens of ways out")

BY_NETWORK = {
    "connects_by_multipath_tcp",
    "connects_by_tcp",
    "connects_with_its_first_data",
    "sends_by_udp",
}
"""Ways by the network, which is open unless a rule closes it."""

DECLARED = {
    "changes_the_owner_of_a_file",
    "changes_the_rights_of_a_file",
    "changes_the_times_of_a_file",
    "exchanges_the_repository",
    "looks_at_a_file",
    "plants_a_hook",
    "plants_a_hook_by_a_descriptor_of_its_keeper",
    "plants_a_setting_of_git",
    "plants_a_setting_of_the_editor",
    "sets_an_attribute_of_a_file",
    "touches_a_device_of_the_machine",
    "watches_a_directory",
}
"""What the tier landlock leaves open, as its row says."""

IN_THE_WORKSPACE = {
    "exchanges_the_repository",
    "plants_a_hook",
    "plants_a_hook_by_a_descriptor_of_its_keeper",
    "plants_a_setting_of_git",
    "plants_a_setting_of_the_editor",
}
"""Those of them that need what is in the workspace."""

OF_ROOT = {
    "enters_a_namespace",
    "has_capabilities",
    "holds_up_a_program_of_the_system",
    "makes_a_packet_socket",
    "mounts_over_a_protected_name",
    "opens_a_file_system",
    "opens_a_secret_by_its_handle",
    "reads_the_log_of_the_kernel",
    "reads_the_passwords",
    "renames_the_machine",
    "takes_a_mount_away",
    "touches_a_device_of_the_machine",
    "types_at_a_terminal",
    "writes_a_setting_of_the_kernel",
    "writes_to_the_system",
}
"""What only root can do without a fence."""

BY_SETTINGS = {
    "asks_the_kernel_by_a_ring",
    "calls_as_a_32_bit_program",
    "connects_by_multipath_tcp",
    "connects_with_its_first_data",
    "counts_events_of_the_processor",
    "handles_its_page_faults",
    "loads_a_program_into_the_kernel",
    "makes_a_socket_to_the_hypervisor",
    "sees_the_keys_of_the_kernel",
    "types_at_a_terminal",
    "types_at_its_own_terminal",
}
"""What settings of the kernel may refuse without a fence."""

OPEN = {
    "required": set[str](),
    "landlock": DECLARED if os.geteuid() == 0 else DECLARED - {"touches_a_device_of_the_machine"},
}
"""What each tier leaves open."""

LEGITIMATE = r"""
git init -q . && git add a.py && git commit -qm one && git log --oneline | grep -q one
git clone -q . ../tmp-clone 2>/dev/null; git clone -q . "$TMPDIR/clone" && test -f "$TMPDIR/clone/a.py"
git checkout -q -b other && echo more >> a.py && git commit -qam two && git stash list && git diff HEAD~1 | grep -q more
$PYTHON a.py | grep -q 42
$PYTHON -c 'import sqlite3, ssl, hashlib; sqlite3.connect("t.db").execute("create table t (a)")'
$PYTHON -m venv --without-pip "$TMPDIR/env" && "$TMPDIR/env/bin/python" -c 'import json'
$PYTHON -m pip --version
$PYTHON -c 'import asyncio; asyncio.run(asyncio.sleep(0))'
$PYTHON -c 'import subprocess; subprocess.run(["true"], check=True)'
$PYTHON -c 'import tempfile; tempfile.NamedTemporaryFile("w").write("x")'
$PYTHON -c 'import os; os.makedirs(os.path.expanduser("~/.cache/x"))'
printf 'all:\n\techo made > made.txt\n' > Makefile && make -s && test -f made.txt
printf 'int main(){return 0;}' > c.c && gcc c.c -o c.out && ./c.out
tar cf - a.py | tar tf - | grep -q a.py
diff <(echo a) <(echo a) && cat <<< here | grep -q here
find . -name '*.py' | xargs grep -l print
sed -i s/42/43/ a.py && grep -q 43 a.py
sleep 5 & kill %1; wait %1; test $? -gt 128
ls -la / /tmp /dev > /dev/null; echo x > /dev/null; head -c 8 /dev/urandom > r
(ulimit -n 64; echo ok)
yes | head -n 1; test "${PIPESTATUS[0]}" = 141
mkdir -p deep/er && mv deep/er moved && ln -s moved link && rm -r link moved
test "$(whoami)" && id -un && date && nproc
"""
"""What people do in any tier: a line each, in bash."""

WITH_NAMESPACES = r"""
$PYTHON -c 'import multiprocessing as m; assert m.get_context("fork").Pool(1).map(abs, [-1]) == [1]'
$PYTHON -c 'import socket; a = socket.socket(socket.AF_UNIX); a.bind("own"); a.listen()'
$PYTHON -c 'import pty; assert pty.spawn(["true"]) == 0' < /dev/null
$PYTHON -c 'import socket as s; a = s.create_server(("127.0.0.1", 0)); s.create_connection(a.getsockname())'
echo x > /tmp/mine && test -f "$TMPDIR/mine"
ps aux > /dev/null && test -r /proc/self/status && test "$(ls -d /proc/[0-9]* | wc -l)" -lt 12
mkdir /dev/shm/mine
test "$(tr -d '\0' < /proc/1/environ | grep -c s3cr3t)" = 0
"""
"""And what needs namespaces, or works by them alone."""


@pytest.mark.thorough("the attempts themselves")
def test_without_a_fence_each_attempt_gets_out(tmp_path: Path) -> None:
    with scene(tmp_path) as of:
        inside = set(ATTEMPTS) - escaped(of, None)
        assert inside <= BY_SETTINGS | (set() if os.geteuid() == 0 else OF_ROOT), "an attempt that shows nothing"


@pytest.mark.sample(1, "tiers")
@pytest.mark.parametrize("mode", OPEN)
def test_no_attempt_gets_out_that_the_tier_does_not_declare(tmp_path: Path, mode: str) -> None:
    with scene(tmp_path) as of, enclosed(of, Fence(mode=mode, network="none")) as made:
        assert escaped(of, made) == OPEN[mode]


@pytest.mark.thorough("attempts by the network; every run has all attempts of a tier")
@pytest.mark.sample(1, "a tier each")
@pytest.mark.parametrize("mode", OPEN)
def test_with_the_network_open_nothing_else_is(tmp_path: Path, mode: str) -> None:
    with scene(tmp_path) as of, enclosed(of, Fence(mode=mode)) as made:
        assert escaped(of, made) == OPEN[mode] | BY_NETWORK


@pytest.mark.thorough("attempts by the network; every run has all attempts of a tier")
def test_a_list_of_ports_opens_these_by_tcp_and_nothing_else(tmp_path: Path) -> None:
    with scene(tmp_path) as of:
        port = int(of.targets["tcp"])
        with enclosed(of, Fence(mode="required", network=[port])) as made:
            assert escaped(of, made) == {"connects_by_tcp"}
        with enclosed(of, Fence(mode="required", network=[port % 65535 + 1])) as made:
            assert escaped(of, made) == set()


@pytest.mark.thorough("attempts by the network; every run has all attempts of a tier")
def test_a_proxy_is_all_that_is_reached(tmp_path: Path) -> None:
    with scene(tmp_path) as of:
        port = int(of.targets["tcp"])
        with enclosed(of, Fence(mode="required", network=f"proxy:{port}")) as made:
            assert escaped(of, made) == BY_NETWORK - {"sends_by_udp"}
            assert made.environment("agent")["HTTPS_PROXY"] == f"http://127.0.0.1:{port}"
        with enclosed(of, Fence(mode="required", network=f"proxy:{port % 65535 + 1}")) as made:
            assert escaped(of, made) == set()


PATIENT = """
import socket, sys, threading
proxy = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
data = bytes(range(256)) * 8192
sending = threading.Thread(target=lambda: (proxy.sendall(data), proxy.shutdown(socket.SHUT_WR)))
sending.start()
print(b"".join(iter(lambda: proxy.recv(65536), b"")) == data)
"""


def test_all_that_is_sent_to_a_proxy_comes_and_all_that_it_answers(tmp_path: Path) -> None:
    def echo() -> None:
        client, _ = proxy.accept()
        with client:
            while data := client.recv(65536):
                client.sendall(data)

    with scene(tmp_path) as of, socket.create_server(("127.0.0.1", 0)) as proxy:
        answering = threading.Thread(target=echo)
        answering.start()
        port = proxy.getsockname()[1]
        with enclosed(of, Fence(mode="required", network=f"proxy:{port}")) as made:
            assert run_in(of, [interpreter(), "-c", PATIENT, str(port)], made).stdout == "True\n"
        answering.join()


@pytest.mark.thorough("every trade in a fence")
@pytest.mark.sample(1, "a tier each; attempts to get out are made in both")
@pytest.mark.parametrize("mode", OPEN)
def test_what_people_do_in_a_workspace_works(tmp_path: Path, mode: str) -> None:
    with scene(tmp_path) as of, enclosed(of, Fence(mode=mode, network="none", protect=())) as made:
        (of.work / "a.py").write_text("print(42)\n")
        lines = [line for line in (LEGITIMATE + WITH_NAMESPACES * made.how.namespaces).splitlines() if line]
        assert len(lines) >= 18
        (of.work / "run.sh").write_text(
            "rm -rf .git; git config --global user.name a; git config --global user.email a@b.c\n"
            + "\n".join(f"( {line}\n) > log 2>&1 || {{ echo 'line {at}:'; cat log; }}" for at, line in enumerate(lines))
        )
        ran = run_in(of, ["bash", "-c", f"PYTHON={sys.executable} . ./run.sh"], made)
        failed = [f"{lines[int(at)]}: {ran.stdout}" for at in re.findall(r"^line (\d+):", ran.stdout, re.MULTILINE)]
        assert (failed, ran.stderr, ran.returncode) == ([], "", 0)


@pytest.mark.thorough("the fence of a server")
@pytest.mark.sample(1, "a tier each; attempts to get out are made in both")
@pytest.mark.parametrize("mode", OPEN)
def test_no_attempt_gets_out_of_the_fence_of_a_server(tmp_path: Path, mode: str) -> None:
    with scene(tmp_path) as of:
        (tmp_path / "shown").mkdir()
        targets = tmp_path / "shown" / "targets.json"
        targets.write_text(json.dumps(of.targets))
        command = [interpreter(), str(ESCAPES), str(targets)]
        fence = Fence(mode=mode, network="none", read=[ESCAPES.parent, targets.parent])
        server = McpServer(SERVER, name="t", policy="allow", fence=fence)
        script = ScriptedProvider([calling(("t__run", {"command": command})), "done"])
        with ActorSystem.open(of.database.with_name("e.db"), script, tools=[server]) as system:
            system.root.prompt("go").get(timeout=DEADLINE)
        [result] = results(requests_of(script, None)[1])
        assert set(json.loads(result.content)["out"]) == OPEN[mode] - IN_THE_WORKSPACE
        assert [*(tmp_path / "home" / "fence").iterdir()] == []


def test_a_server_whose_fence_cannot_be_made_is_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TIER_VARIABLE, "none")
    with pytest.raises(BadInput, match="fence='required' cannot be had"):
        ActorSystem.open(":memory:", "offline", tools=[McpServer(SERVER, fence=Fence(mode="required"))])
    wrong: Any = "required"
    with pytest.raises(BadInput, match="Expected fence to be a Fence"):
        McpServer(SERVER, fence=wrong)


@pytest.mark.sample(1, "a tier each")
@pytest.mark.thorough("the same once more, at another place")
@pytest.mark.parametrize("mode", OPEN)
def test_a_workspace_in_a_home_that_is_given_by_a_link_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    (tmp_path / "person" / "src").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "person")
    with scene(tmp_path, tmp_path / "link" / "src") as of, enclosed(of, Fence(mode=mode, network="none")) as made:
        assert escaped(of, made) == OPEN[mode]


@pytest.mark.thorough("the same once more, on another file system")
@pytest.mark.parametrize("mode", OPEN)
def test_a_workspace_in_memory_holds(tmp_path: Path, mode: str) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place, scene(tmp_path, Path(place, "work")) as of:
        fence = Fence(mode=mode, network="none")
        with enclosed(of, fence) as made:
            assert escaped(of, made) == OPEN[mode]


AS_NOBODY = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from ikigai_actors.tools.fence.policy import Fence
from tests.kit.fences import enclosed, escaped, scene
for mode in ("required", "landlock"):
    with scene(Path(sys.argv[2], mode)) as of, enclosed(of, Fence(mode=mode, network="none")) as made:
        print(*sorted(escaped(of, made)), sep=",")
"""
"""Plays scenes; the package must be readable for everyone, and a Python outside of a home be there."""


@pytest.mark.thorough("the same once more, as another user")
def test_a_user_without_rights_gets_out_no_more_than_root(tmp_path: Path) -> None:
    python, root = shutil.which("python3", path="/usr/bin:/usr/local/bin"), Path(__file__).parents[2]
    if os.geteuid() != 0 or python is None or not os.access(root, os.R_OK):
        pytest.skip("root plays it, with a Python that everyone can run")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        os.chown(place, 65534, 65534)
        ran = subprocess.run(
            [python, "-B", "-c", AS_NOBODY, str(root), place], user=65534, group=65534, extra_groups=[],
            env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}, cwd="/", capture_output=True, text=True, check=False,
        )  # fmt: skip
    if "ModuleNotFoundError" in ran.stderr or "Permission denied" in ran.stderr:
        pytest.skip(f"nobody cannot run the package here: {ran.stderr.splitlines()[-1]}")
    assert ran.stdout.splitlines() == ["", ",".join(sorted(DECLARED))], ran.stderr
