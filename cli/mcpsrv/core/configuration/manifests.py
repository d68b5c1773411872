"""MCPServer and Secret of one entry, as a person would write them."""

from collections.abc import Mapping
from typing import Any, Final

from mcp_operator.core.api import API_VERSION, KIND
from mcpsrv.core.configuration import names
from mcpsrv.core.configuration.launch import Launch
from mcpsrv.core.configuration.secretwords import Parted, escaped

Json = dict[str, Any]
FOLDER_SIZE: Final = "1Gi"


def objects(name: str, namespace: str, parted: Parted) -> tuple[Json, ...]:
    """The Secret, if there is something secret, and then the MCPServer. An empty namespace is left out."""
    return written(name, namespace, _spec(name, parted), parted.secrets)


def written(name: str, namespace: str, spec: Json, secrets: Mapping[str, str]) -> tuple[Json, ...]:
    """The same for a spec that is written already; `names.keys` makes the names of secrets legal keys."""
    server = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": _metadata(name, namespace),
        "spec": spec,
    }
    if not secrets:
        return (server,)
    keys = names.keys(secrets)
    return (_secret(name, namespace, {keys[key]: value for key, value in secrets.items()}), server)


def _metadata(name: str, namespace: str) -> Json:
    return {"name": name, **({"namespace": namespace} if namespace else {})}


def _secret(name: str, namespace: str, values: dict[str, str]) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(names.secret(name), namespace),
        "type": "Opaque",
        "stringData": values,
    }


def _spec(name: str, parted: Parted) -> Json:
    launch = parted.launch
    keys = names.keys(parted.secrets)
    env: list[Json] = [
        {"name": variable, "valueFrom": {"secretKeyRef": {"name": names.secret(name), "key": keys[variable]}}}
        for variable in parted.secrets
    ]
    env += [{"name": key, "value": escaped(value.text)} for key, value in launch.env.items()]
    found = {
        "image": launch.image,
        "command": [word.text for word in launch.command],
        "args": [word.text for word in launch.args],
        "workingDir": launch.working_dir,
        "env": env,
        **_folders(launch),
        "securityContext": {} if launch.user is None else {"runAsUser": launch.user},
    }
    return {key: value for key, value in found.items() if value}


def _folders(launch: Launch) -> Json:
    named = {f"folder-{n}": place for n, place in enumerate(dict.fromkeys(launch.folders), 1)}
    return {
        "volumes": [{"name": name, "emptyDir": {"sizeLimit": FOLDER_SIZE}} for name in named],
        "volumeMounts": [{"name": name, "mountPath": place} for name, place in named.items()],
    }
