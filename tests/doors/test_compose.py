"""examples/compose.yaml with plain processes: a person connects an account through nginx, TLS and a root path."""

import re
import shlex
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from html import unescape
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ikigai_actors.api import AttachedSystem
from tests.conftest import NewDatabase
from tests.kit.account_mcp import CANARY, AccountMcp, query_of
from tests.kit.databases import ROOT, eventually
from tests.kit.program import COMMAND, environment
from tests.kit.remote_mcp import free_port

yaml = pytest.importorskip("yaml")
EXAMPLES = ROOT / "examples"

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.thorough("starts nginx, two hosts and the API"),
    pytest.mark.skipif(not (shutil.which("nginx") and shutil.which("openssl")), reason="needs nginx and openssl"),
]


class Composed:
    """The services of the file, at ports of this machine."""

    def __init__(self, database: str, folder: Path, notes: str, stack: ExitStack) -> None:
        self.services = yaml.safe_load((EXAMPLES / "compose.yaml").read_text("utf-8"))["services"]
        self.folder, self._database, self._stack = folder, database, stack
        self.url, self._api = f"https://localhost:{free_port()}/agents", free_port()
        self.environment = {
            **environment(), "NOTES_URL": notes, "IKIGAI_KEY": "a1" * 32, "IKIGAI_KEYS": "env:IKIGAI_KEY",
            "IKIGAI_ALLOW_PRIVATE": "127.0.0.1", "IKIGAI_HOME": str(folder / "home"), "PYTHONPATH": str(ROOT),
        }  # fmt: skip
        for _, target in (volume.split(":")[:2] for volume in self.services["host-a"]["volumes"]):
            shutil.copy(EXAMPLES / Path(target).name, folder)

    def words(self, service: str) -> list[str]:
        """The command of a service, with the addresses of this machine."""
        command = self.services[service]["command"]
        words = shlex.split(command) if isinstance(command, str) else list(command)
        changed = {"0.0.0.0:8080": f"127.0.0.1:{self._api}", "https://localhost/agents": self.url}
        changed["172.16.0.0/12"] = "127.0.0.1"
        return [*COMMAND, "--database", self._database, *(changed.get(word, word) for word in words)]

    def start(self, service: str) -> "subprocess.Popen[bytes]":
        with (self.folder / f"{service}.log").open("wb") as log:
            return self._started(self.words(service), stdout=log, stderr=log)

    def start_proxy(self) -> None:
        pair = ["-keyout", f"{self.folder}/key.pem", "-out", f"{self.folder}/cert.pem"]
        made = (
            "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
        )
        subprocess.run([*made.split(), *pair], check=True, capture_output=True)
        port = re.findall(r":(\d+)", self.url)[0]
        own = " ".join(f"{kind}_temp_path {self.folder}/{kind};" for kind in ("proxy", "fastcgi", "uwsgi", "scgi"))
        text = (EXAMPLES / "nginx.conf").read_text("utf-8")
        for before, after in (
            ("listen 443", f"listen 127.0.0.1:{port}"),
            ("/etc/nginx/tls", str(self.folder)),
            ("api:8080", f"127.0.0.1:{self._api}"),
            ("http {", f"http {{ access_log off; client_body_temp_path {self.folder}/body; {own}"),
        ):
            assert before in text
            text = text.replace(before, after)
        (self.folder / "nginx.conf").write_text(f"daemon off; master_process off; pid {self.folder}/pid;\n{text}")
        log = str(self.folder / "nginx.log")
        self._started(["nginx", "-e", log, "-c", f"{self.folder}/nginx.conf", "-p", str(self.folder)])

    def _started(self, words: list[str], **options: Any) -> "subprocess.Popen[bytes]":
        program = subprocess.Popen(words, cwd=self.folder, env=self.environment, **options)
        self._stack.callback(program.wait)
        self._stack.callback(program.kill)
        return program

    def run(self, *words: str) -> str:
        """A command, as ``docker compose run --rm api``."""
        command = [*COMMAND, "--database", self._database, *words]
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def server() -> Iterator[AccountMcp]:
    made = AccountMcp()
    made.start()
    yield made
    made.stop()


def test_a_person_connects_an_account_through_the_proxy_and_another_host_goes_on(
    new_postgres: NewDatabase, tmp_path: Path, server: AccountMcp
) -> None:
    with ExitStack() as stack:
        database = new_postgres()
        composed = Composed(database, tmp_path, server.url, stack)
        composed.start_proxy()
        host = composed.start("host-a")
        composed.start("api")
        trusted = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
        client = stack.enter_context(httpx2.Client(verify=trusted, timeout=60))
        eventually(lambda: ready(client, f"{composed.url}/readyz"), "the API behind the proxy")
        system = stack.enter_context(AttachedSystem.open(database))
        system.root.prompt("@notes__connect")
        eventually(system.questions.pending, "the question")
        [question] = system.questions.pending()
        link = composed.run("account", "link", question.id, "--url", composed.url).strip()
        host.kill()
        composed.start("host-b")
        assert (
            client.get(f"{composed.url}/oauth/client.json").json()["client_id"] == f"{composed.url}/oauth/client.json"
        )
        digest = re.search(r"name='digest' value='(\w+)'", client.get(link).text)
        assert digest is not None
        page = client.post(link, data={"decide": "connect", "digest": digest[1]}).text
        there = re.search(r"href='([^']+)'", page)
        assert there is not None, page
        back = client.get(unescape(there[1])).headers["location"]
        assert query_of(back)["iss"] == server.issuing.url
        assert client.get(back).status_code == 200
        assert client.get(back).status_code == 400  # once
        eventually(lambda: "Connected" in str(system.root.history()), "the end of the call")
    assert all(CANARY.encode() not in file.read_bytes() for file in tmp_path.glob("*.log"))


def ready(client: httpx2.Client, url: str) -> bool:
    try:
        return client.get(url).status_code == 200
    except httpx2.TransportError:
        return False
