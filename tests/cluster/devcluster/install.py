"""The operator by Helm, from locally built images."""

from collections.abc import Mapping

from devcluster import configs, engines, gotools, images, network, say, shell
from devcluster.cluster import Cluster
from devcluster.layout import REPOSITORY, Layout

RELEASE = "mcpserver-operator"
NAMESPACE = configs.OPERATOR_NAMESPACE
SECONDS = 120


def build(where: Layout, *, public: bool = False) -> dict[str, str]:
    """Build the images that changed; image name to reference. `public`: also those for public servers."""
    chosen = (*images.IMAGES, *images.PUBLIC) if public else images.IMAGES
    return images.build_all(engines.choose(where), where, chosen)


def load(cluster: Cluster, references: Mapping[str, str]) -> None:
    """Give the images to the cluster, also under their short-lived `:dev` names."""
    aliases = {image.name: image.alias for image in (*images.IMAGES, *images.PUBLIC)}
    cluster.load({reference: aliases[name] for name, reference in references.items()})


def settings(references: Mapping[str, str]) -> dict[str, str]:
    """Values of the chart. Tags follow the images' contents, so an upgrade rolls what changed, no more."""
    tags = {name: reference.rpartition(":")[2] for name, reference in references.items()}
    return {
        "imageRegistry": images.REGISTRY,
        "image.tag": tags["operator"],
        "relay.image.tag": tags["relay"],
        "runtime.image.tag": tags["runtime"],
        "registries.insecure[0]": network.REGISTRY,
    }


def install(cluster: Cluster, where: Layout, references: Mapping[str, str]) -> None:
    """Install or upgrade the release and wait until the operator is available."""
    helm = gotools.tool("helm", where)
    values = [f"--set-string={name}={value}" for name, value in settings(references).items()]
    options = ["--create-namespace", "--take-ownership", "--wait", f"--timeout={SECONDS}s", *values]
    with shell.lock(where.cache / ".install.lock"), say.step("installing the operator with Helm"):
        _drop_unfinished(cluster)
        target = (helm, f"--kubeconfig={where.kubeconfig}", f"--namespace={NAMESPACE}")
        try:
            shell.run([*target, "upgrade", "--install", RELEASE, REPOSITORY / "helm", *options])
        except say.ClusterError as error:
            raise say.ClusterError(f"{error}\n{explain(cluster)}") from None
    cluster.forget(references.values())


def _drop_unfinished(cluster: Cluster) -> None:
    """Forget a revision whose Helm was interrupted: nobody else is at work, yet Helm would refuse."""
    states = "status in (pending-install,pending-upgrade,pending-rollback)"
    selector = f"--selector=owner=helm,name={RELEASE},{states}"
    cluster.kubectl(f"--namespace={NAMESPACE}", "delete", "secret", selector, "--ignore-not-found")


def explain(cluster: Cluster) -> str:
    """What the cluster says of the operator's pods, for an installation that failed."""
    inside = f"--namespace={NAMESPACE}"
    questions = (
        ("get", "pods", "--output=wide"),
        ("logs", "--selector=app.kubernetes.io/component=operator", "--tail=15"),
    )
    answers = []
    for words in questions:
        try:
            answers.append(cluster.kubectl(inside, *words))
        except say.ClusterError as error:
            answers.append(str(error))
    return "\n".join(answers)
