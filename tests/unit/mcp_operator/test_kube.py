"""The door to the API server: what is sent, and what each answer means."""

import gc
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from kubernetes_asyncio import client

from mcp_operator.adapters import errors, kube
from mcp_operator.adapters.errors import (
    ConflictError,
    KubeError,
    NotFoundError,
    RefusedError,
    UnavailableError,
)
from mcp_operator.adapters.kinds import EVENTS, PODS, SECRETS, SERVERS
from mcp_operator.adapters.kube import Kube

Json = dict[str, Any]
POD = {"metadata": {"namespace": "default", "name": "mcp-time-1", "uid": "u"}}


class FakeApi:
    """Answers every request in the same way and remembers it."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, Json, str, Any]] = []
        self.answers: list[Callable[[], web.StreamResponse]] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.text()
        self.requests.append(
            (
                request.method,
                request.path,
                dict(request.query),
                request.content_type,
                json.loads(body or "null"),
            )
        )
        return self.answers.pop(0)() if self.answers else web.json_response(POD)


@pytest.fixture
async def api() -> AsyncIterator[tuple[FakeApi, Kube]]:
    fake = FakeApi()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", fake.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert site._server is not None
    port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]  # an asyncio server has sockets
    configuration = client.Configuration(host=f"http://127.0.0.1:{port}")
    found = Kube(configuration)
    yield fake, found
    await found.close()
    await runner.cleanup()


def status(code: int, message: str = "no", reason: str = "") -> Callable[[], web.Response]:
    causes = {"details": {"causes": [{"reason": reason}]}} if reason else {}
    return lambda: web.json_response({"kind": "Status", "message": message, **causes}, status=code)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (400, RefusedError), (403, RefusedError), (405, RefusedError), (413, RefusedError),
        (422, RefusedError),
        (404, NotFoundError), (409, ConflictError),
        (401, UnavailableError), (408, UnavailableError), (410, UnavailableError), (429, UnavailableError),
        (500, UnavailableError), (502, UnavailableError), (503, UnavailableError), (504, UnavailableError),
    ],
)  # fmt: skip
async def test_every_answer_of_the_api_server_has_one_meaning(
    api: tuple[FakeApi, Kube], code: int, expected: type[KubeError]
) -> None:
    fake, found = api
    fake.answers = [status(code, "because")]
    with pytest.raises(expected, match="because") as caught:
        await found.create(PODS, POD)
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize(
    "error",
    [
        aiohttp.ClientConnectionError(), aiohttp.ServerDisconnectedError(), aiohttp.ClientPayloadError(),
        aiohttp.ServerTimeoutError(), TimeoutError(), ConnectionResetError(), OSError(),
    ],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
async def test_every_error_of_the_network_means_that_the_server_is_away(
    api: tuple[FakeApi, Kube], error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, found = api

    async def broken(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(found._api.rest_client, "request", broken)
    with pytest.raises(UnavailableError):
        await found.read(PODS, "default", "x")


@pytest.mark.parametrize(
    "body", ["", "<html>log in</html>", "{", "[" * 100_000], ids=["", "page", "cut", "deep"]
)
async def test_an_answer_that_is_no_json_means_that_the_server_is_away(
    api: tuple[FakeApi, Kube], body: str
) -> None:
    fake, found = api
    fake.answers = [lambda: web.Response(text=body)]
    with pytest.raises(UnavailableError, match=r"GET /api/v1/.*: the answer is no JSON"):
        await found.read(PODS, "default", "x")


@pytest.mark.parametrize("collecting", [True, False])
@pytest.mark.parametrize("body", ["{", "{}"])
async def test_garbage_is_collected_after_an_answer_if_it_was_before(
    api: tuple[FakeApi, Kube], monkeypatch: pytest.MonkeyPatch, body: str, collecting: bool
) -> None:
    fake, found = api
    fake.answers = [lambda: web.Response(text=body)]
    meanwhile = []
    load = json.loads

    def loads(text: str) -> Any:
        meanwhile.append(gc.isenabled())
        return load(text)

    monkeypatch.setattr(json, "loads", loads)
    if not collecting:
        gc.disable()
    try:
        with suppress(UnavailableError):
            await found.read(PODS, "default", "x")
        assert (meanwhile[-1], gc.isenabled()) == (False, collecting)
    finally:
        gc.enable()


def test_an_answer_without_a_status_object_is_understood_too() -> None:
    assert isinstance(kube.translate(502, b"<html>", "GET /x"), UnavailableError)
    assert "GET /x: HTTP 403" in str(kube.translate(403, b"[]", "GET /x"))
    assert isinstance(kube.translate(None, None, "GET /x"), UnavailableError)
    assert isinstance(kube.translate(502, "[" * 100_000, "GET /x"), UnavailableError)


async def test_a_refusal_keeps_status_message_and_first_cause(api: tuple[FakeApi, Kube]) -> None:
    fake, found = api
    fake.answers = [status(403, "is being terminated", "NamespaceTerminating")]
    with pytest.raises(RefusedError) as caught:
        await found.create(PODS, POD)
    assert (caught.value.status, caught.value.message, caught.value.cause) == (
        403, "is being terminated", "NamespaceTerminating",
    )  # fmt: skip


async def test_reading_what_is_not_there_gives_nothing(api: tuple[FakeApi, Kube]) -> None:
    fake, found = api
    fake.answers = [status(404)]
    assert await found.read(PODS, "default", "x") is None


@pytest.mark.parametrize("code", [404, 409])
async def test_deleting_what_is_gone_or_another_object_is_done(api: tuple[FakeApi, Kube], code: int) -> None:
    fake, found = api
    fake.answers = [status(code)]
    assert await found.delete(PODS, "default", "x", "u") is None


async def test_a_deletion_names_the_very_object(api: tuple[FakeApi, Kube]) -> None:
    fake, found = api
    await found.delete(PODS, "default", "x", "u", grace=1)
    assert fake.requests == [
        (
            "DELETE", "/api/v1/namespaces/default/pods/x", {}, "application/json",
            {"preconditions": {"uid": "u"}, "propagationPolicy": "Background", "gracePeriodSeconds": 1},
        )
    ]  # fmt: skip


async def test_server_side_apply_forces_with_our_field_manager(api: tuple[FakeApi, Kube]) -> None:
    fake, found = api
    await found.apply(SECRETS, POD)
    method, path, query, content, body = fake.requests[0]
    assert (method, path) == ("PATCH", "/api/v1/namespaces/default/secrets/mcp-time-1")
    assert query == {"fieldManager": "mcpserver-operator", "force": "true"}
    assert content == "application/apply-patch+yaml"
    assert body == POD


async def test_a_status_is_merged_into_the_very_object(api: tuple[FakeApi, Kube]) -> None:
    fake, found = api
    await found.patch_status(SERVERS, "default", "time", "u", {"phase": "Pending"})
    method, path, _, content, body = fake.requests[0]
    assert (method, path) == (
        "PATCH",
        "/apis/mcp-session.dev/v1alpha1/namespaces/default/mcpservers/time/status",
    )
    assert content == "application/merge-patch+json"
    assert body == {"metadata": {"uid": "u"}, "status": {"phase": "Pending"}}


async def test_a_list_goes_page_by_page_with_the_selectors_of_its_kind(api: tuple[FakeApi, Kube]) -> None:
    fake, found = api
    fake.answers = [
        lambda: web.json_response({"items": [{"a": 1}], "metadata": {"continue": "more"}}),
        lambda: web.json_response({"items": [{"a": 2}], "metadata": {}}),
    ]
    assert [item async for item in found.listing(PODS, None)] == [{"a": 1}, {"a": 2}]
    assert [request[1] for request in fake.requests] == ["/api/v1/pods"] * 2
    assert fake.requests[0][2]["labelSelector"] == "mcp-session.dev/server"
    assert fake.requests[1][2]["continue"] == "more"


async def test_a_list_with_nothing_in_it_may_have_null_for_its_items(api: tuple[FakeApi, Kube]) -> None:
    fake, found = api
    fake.answers = [lambda: web.json_response({"items": None, "metadata": {}})]
    assert [item async for item in found.listing(PODS, None, metadata_only=True)] == []


async def test_whether_a_kind_is_served(api: tuple[FakeApi, Kube]) -> None:
    fake, found = api
    fake.answers = [lambda: web.json_response({"resources": [{"name": "mcpservers"}]}), status(404)]
    assert await found.served(SERVERS)
    assert not await found.served(SERVERS)


async def test_events_about_a_pod_are_asked_for_by_uid(api: tuple[FakeApi, Kube]) -> None:
    fake, found = api
    fake.answers = [lambda: web.json_response({"items": [{"reason": "FailedMount"}]})]
    assert await found.events_about("default", "u") == [{"reason": "FailedMount"}]
    assert fake.requests[0][1] == EVENTS.path("default")
    assert fake.requests[0][2]["fieldSelector"] == "regarding.uid=u"


async def test_the_token_goes_along_and_can_be_had_for_the_watches(api: tuple[FakeApi, Kube]) -> None:
    _, found = api
    found._configuration.api_key["BearerToken"] = "Bearer abc"
    assert (await found.access()).authorization == "Bearer abc"


def test_every_error_is_of_one_family() -> None:
    family = {UnavailableError, NotFoundError, ConflictError, RefusedError}
    assert all(issubclass(error, errors.KubeError) for error in family)
