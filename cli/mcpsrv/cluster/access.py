"""Which cluster, as whom, in which namespace: from the kubeconfig, else from the pod we run in."""

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml
from kubernetes_asyncio import client, config

from mcpsrv.core.errors import AccessError

_POD_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_DEFAULT: Final = str(Path("~/.kube/config").expanduser())
_CURE: Final = "set KUBECONFIG, or pass --kubeconfig FILE"


@dataclass(frozen=True)
class Where:
    """What the user said; "" where nothing was said."""

    namespace: str = ""
    context: str = ""
    kubeconfig: str = ""


def _existing(files: str) -> list[str]:
    return [part for part in files.split(os.pathsep) if part and Path(part).exists()]


async def load(where: Where) -> tuple[client.Configuration, str]:
    """The client's configuration and the namespace to work in.

    Raises:
        AccessError: there is no kubeconfig that can be used, and this is no pod.

    """
    configuration = client.Configuration()
    files = where.kubeconfig or os.environ.get("KUBECONFIG") or _DEFAULT
    existing = _existing(files)
    if not existing:
        return _in_pod(configuration, where, files)
    merged = os.pathsep.join(existing)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            await config.load_kube_config(
                config_file=merged,
                context=where.context or None,
                client_configuration=configuration,
                persist_config=False,
            )
            contexts, active = config.list_kube_config_contexts(merged)
    except (config.ConfigException, yaml.YAMLError, OSError, KeyError, TypeError) as error:
        raise AccessError(f"the kubeconfig {files} cannot be used: {error}; {_CURE}") from error
    chosen = next((one for one in contexts if one["name"] == where.context), active)
    told = ((chosen or {}).get("context") or {}).get("namespace") or "default"
    return configuration, where.namespace or str(told)


def _in_pod(
    configuration: client.Configuration, where: Where, files: str
) -> tuple[client.Configuration, str]:
    try:
        config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]  # theirs
    except config.ConfigException as error:
        raise AccessError(f"no cluster is named: {files} does not exist; {_CURE}") from error
    return configuration, where.namespace or _POD_NAMESPACE.read_text(encoding="utf-8").strip()
