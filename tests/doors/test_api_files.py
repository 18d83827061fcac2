"""Files at the network API: uploaded once, named by prompts, and given to nobody else."""

from collections.abc import Callable

import httpx2

from ikigai_actors import FunctionProvider, Request
from ikigai_actors.api import Principal
from ikigai_actors.providers import PictureBlock
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.log.pruning import prune_logs
from ikigai_actors.records.uploads import MOST_UPLOADED, UPLOAD_KEPT_MS
from tests.doors.test_api import staged
from tests.kit.pictures import GIF, PNG

HASH = "0" * 64


def seen_pictures(request: Request) -> str:
    """The number of pictures that a model sees."""
    blocks = [block for message in request.conversation for block in message.blocks]
    return f"{sum(isinstance(block, PictureBlock) for block in blocks)} pictures"


async def upload(client: httpx2.AsyncClient, data: bytes = PNG, who: str = "op", **more: str) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {who}", **{name.replace("_", "-"): value for name, value in more.items()}}
    return await client.post("/v1/files", params={"name": "plan.png"}, content=data, headers=headers)


def test_an_uploaded_file_goes_with_a_prompt_and_comes_out_of_its_message(durable: str) -> None:
    with staged(durable, FunctionProvider(seen_pictures)) as stage:
        kid = stage.host.agent("kid")
        stage.principals["kid"] = Principal("kid", "kid", frozenset({"prompt"}), kid.uuid)

        async def work(client: httpx2.AsyncClient) -> None:
            first = await upload(client, Idempotency_Key="k")
            assert (first.status_code, first.json()["media"], first.json()["name"]) == (201, "image/png", "plan.png")
            again = await upload(client, Idempotency_Key="k")
            assert (again.status_code, again.json()) == (200, first.json())
            assert (await upload(client, PNG + b"x", Idempotency_Key="k")).status_code == 422
            sha256 = first.json()["sha256"]
            asked = {"text": "How many?", "files": [sha256]}
            turn = await client.post("/v1/agents/kid/prompt", json=asked, headers={"Prefer": "wait=30"})
            assert turn.json()["outcome"]["text"] == "1 pictures"
            [message] = [each for each in kid.history() if "attached" in each.data]
            place: dict[str, str | int] = {"agent": "kid", "message": message.id}
            for who, params, status in (
                ("op", {}, 200), ("kid", place, 200), ("kid", {}, 404), ("eve", {}, 404),
                ("op", {**place, "message": message.id + 1}, 404), ("op", {**place, "agent": "other"}, 404),
                ("op", {**place, "message": "x"}, 400),
            ):  # fmt: skip
                headers = {"Authorization": f"Bearer {who}"}
                response = await client.get(f"/v1/files/{sha256}", params=params, headers=headers)
                assert (response.status_code, response.content == PNG) == (status, status == 200), (who, params)
            headers = {"Authorization": "Bearer kid"}
            for hashed in (sha256, HASH):  # what another one has uploaded is no better than nothing
                refused = await client.post(
                    "/v1/agents/~/prompt", json={"text": "?", "files": [hashed]}, headers=headers
                )
                assert (refused.status_code, "has uploaded" in refused.json()["detail"]) == (400, True)

        stage.run(work)
        assert kid.history()[-1].content == "1 pictures"


def test_what_is_no_file_is_refused(new_sqlite: Callable[[], str]) -> None:
    async def work(client: httpx2.AsyncClient) -> None:
        assert (await upload(client, b"text")).status_code == 400
        assert (await upload(client, PNG, "eve")).status_code == 403
        assert (await upload(client, PNG, Content_Type="multipart/form-data")).status_code == 415
        large = await client.post("/v1/files", content=b"", headers={"Content-Length": str(30 * 2**20)})
        assert large.status_code == 413
        assert (await client.get(f"/v1/files/{HASH}")).status_code == 404

    with staged(new_sqlite()) as stage:
        stage.run(work)
        assert stage.system._store.read(lambda tx: tx.run("all_blobs")) == []


def test_an_upload_keeps_its_bytes_for_a_day_and_is_counted(durable: str) -> None:
    with staged(durable) as stage:
        store, now = stage.system._store, stage.system._clock.now_ms()

        async def work(client: httpx2.AsyncClient) -> None:
            place = f"/v1/files/{(await upload(client)).json()['sha256']}"
            prune_logs(store, 0, now)
            assert (await client.get(place)).content == PNG
            row = {
                "sha256": place.rpartition("/")[2],
                "principal": "anna",
                "name": "",
                "size": MOST_UPLOADED,
                "now": now,
            }
            store.write(lambda tx: tx.run("add_upload", **row))
            assert (await upload(client, PNG, "anna")).status_code == 201  # the same file counts once
            assert (await upload(client, GIF, "anna")).status_code == 403
            prune_logs(store, 0, now + 2 * UPLOAD_KEPT_MS)
            assert (await client.get(place)).status_code == 404

        stage.run(work)
        assert store.read(lambda tx: tx.run("all_blobs")) == []
        store.write(lambda tx: tx.run("add_upload", sha256=HASH, principal="anna", name="", size=1, now=now))
        assert [violation.text for violation in check(store)] == [
            f"expected blob {HASH}, which was uploaded; there is none"
        ]
