"""The cache: watches and answers arrive in any order, the newest truth wins."""

from typing import Any

from mcp_operator.adapters.kinds import CONFIG_MAPS, PODS, SECRETS, SERVERS
from mcp_operator.handlers.cache import DIGESTS, Cache

Json = dict[str, Any]
KEY = ("default", "x")


def thing(version: int, uid: str = "u1", **fields: Any) -> Json:
    meta = {
        "namespace": "default",
        "name": "x",
        "uid": uid,
        "resourceVersion": str(version),
        "managedFields": [1],
    }
    return {"metadata": {**meta, **fields.pop("meta", {})}, **fields}


def owned(name: str, version: int = 1) -> Json:
    reference = {
        "apiVersion": "mcp-session.dev/v1alpha1",
        "kind": "MCPServer",
        "name": "time",
        "controller": True,
    }
    return thing(version, uid=name, meta={"name": name, "ownerReferences": [reference]})


def test_an_older_version_never_replaces_a_newer_one() -> None:
    cache = Cache()
    assert cache.put(SERVERS, thing(10, spec={"a": 2}))
    assert not cache.put(SERVERS, thing(9, spec={"a": 1}))
    assert cache.get(SERVERS, KEY) == {
        "metadata": {"namespace": "default", "name": "x", "uid": "u1", "resourceVersion": "10"},
        "spec": {"a": 2},
    }  # fmt: skip


def test_what_is_known_already_wakes_nobody() -> None:
    cache = Cache()
    assert cache.put(SERVERS, thing(10))
    assert not cache.put(SERVERS, thing(10))


def test_versions_are_numbers_and_not_texts() -> None:
    cache = Cache()
    cache.put(SERVERS, thing(9))
    assert cache.put(SERVERS, thing(10))


def test_what_was_deleted_does_not_come_back_with_a_late_answer() -> None:
    cache = Cache()
    cache.put(SERVERS, thing(10))
    assert cache.remove(SERVERS, thing(12))
    assert not cache.put(SERVERS, thing(11))
    assert cache.get(SERVERS, KEY) is None


def test_what_left_the_selection_by_its_labels_and_came_back_is_known_again() -> None:
    cache = Cache()
    cache.put(SERVERS, thing(10))
    cache.remove(SERVERS, thing(12))
    assert cache.put(SERVERS, thing(13))
    assert cache.get(SERVERS, KEY) is not None
    assert cache.remove(SERVERS, thing(14))
    assert not cache.put(SERVERS, thing(14))


def test_a_successor_of_the_same_name_is_another_object() -> None:
    cache = Cache()
    cache.put(SERVERS, thing(10))
    cache.put(SERVERS, thing(20, uid="u2"))
    assert not cache.remove(SERVERS, thing(15))
    assert cache.get(SERVERS, KEY) is not None


def test_pods_are_found_by_their_owner_until_they_are_gone() -> None:
    cache = Cache()
    for name in ("b", "a"):
        cache.put(PODS, owned(name))
    cache.put(PODS, thing(3))
    owner = ("default", "time")
    assert [pod["metadata"]["name"] for pod in cache.pods(owner)] == ["a", "b"]
    cache.remove(PODS, owned("a"))
    cache.remove(PODS, owned("b"))
    assert list(cache.pods(owner)) == []


def test_of_foreign_secrets_and_config_maps_only_digests_are_kept() -> None:
    cache = Cache()
    for kind in (SECRETS, CONFIG_MAPS):
        cache.put(kind, thing(1, data={"k": "c2VjcmV0"}))
        found = cache.get(kind, KEY)
        assert found is not None
        assert set(found) == {"metadata", DIGESTS}
        assert set(found[DIGESTS]) == {"k"}
        assert "c2VjcmV0" not in str(found)


def test_of_our_own_secrets_the_values_that_we_made_are_kept() -> None:
    cache = Cache()
    data = {"token": "dA==", "admin-token": "YQ==", "signing-key": "cw==", "more": "bQ=="}
    cache.put(SECRETS, thing(1, data=data, meta={"labels": {"mcp-session.dev/server": "time"}}))
    found = cache.get(SECRETS, KEY)
    assert found is not None
    assert set(found["data"]) == {"token", "admin-token", "signing-key"}
