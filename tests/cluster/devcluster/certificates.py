"""A certificate authority of one cluster and what it signs, made by openssl."""

import base64
from dataclasses import dataclass
from pathlib import Path

import yaml

from devcluster import shell

DAYS = "3650"
NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


@dataclass(frozen=True)
class Identity:
    """Who a certificate speaks for; `names` are subjectAltName entries such as `IP:10.0.0.1`."""

    name: str
    common_name: str
    organization: str = ""
    names: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        """As openssl writes it."""
        return (f"/O={self.organization}" if self.organization else "") + f"/CN={self.common_name}"


def make_authority(pki: Path) -> None:
    """Write ca.crt and ca.key, and the key pair that signs service account tokens."""
    pki.mkdir(parents=True, exist_ok=True)
    pki.chmod(0o700)
    shell.run(
        [
            *("openssl", "req", "-x509", *NEW_KEY, "-days", DAYS, "-subj", "/CN=mcpserver-operator-dev-ca"),
            *("-addext", "keyUsage=critical,keyCertSign,digitalSignature"),
            *("-keyout", pki / "ca.key", "-out", pki / "ca.crt"),
        ]
    )
    shell.run(["openssl", "genrsa", "-out", pki / "service-account.key", "2048"])
    shell.run(
        ["openssl", "rsa", "-in", pki / "service-account.key", "-pubout", "-out", pki / "service-account.pub"]
    )


def issue(pki: Path, who: Identity) -> None:
    """Write NAME.crt and NAME.key, good for clients and servers."""
    names = ["-addext", f"subjectAltName={','.join(who.names)}"] if who.names else []
    shell.run(
        [
            *("openssl", "req", "-x509", *NEW_KEY, "-days", DAYS, "-subj", who.subject),
            *("-CA", pki / "ca.crt", "-CAkey", pki / "ca.key"),
            *("-addext", "basicConstraints=critical,CA:FALSE"),
            *("-addext", "extendedKeyUsage=clientAuth,serverAuth", *names),
            *("-keyout", pki / f"{who.name}.key", "-out", pki / f"{who.name}.crt"),
        ]
    )


def render_kubeconfig(server: str, authority: bytes, certificate: bytes, key: bytes) -> str:
    """A kubeconfig that carries its keys in itself."""
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "dev", "cluster": {"server": server, **_data("certificate-authority", authority)}}
            ],
            "users": [
                {
                    "name": "dev",
                    "user": {**_data("client-certificate", certificate), **_data("client-key", key)},
                }
            ],
            "contexts": [{"name": "dev", "context": {"cluster": "dev", "user": "dev"}}],
            "current-context": "dev",
        },
        sort_keys=False,
    )


def _data(name: str, content: bytes) -> dict[str, str]:
    return {f"{name}-data": base64.b64encode(content).decode()}


def write_kubeconfig(path: Path, server: str, pki: Path, identity: str) -> None:
    """Write the kubeconfig of one issued identity, readable by its owner only."""
    text = render_kubeconfig(
        server,
        (pki / "ca.crt").read_bytes(),
        (pki / f"{identity}.crt").read_bytes(),
        (pki / f"{identity}.key").read_bytes(),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")
