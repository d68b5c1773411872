"""Remove what this package keeps between runs."""

import shutil

from devcluster import leftovers, say
from devcluster.layout import Layout


def remove_caches(where: Layout) -> None:
    """Programs, image stores, the base image: all of it. The cluster must be down."""
    if not where.cache.exists():
        return
    with say.step(f"removing {where.cache}"):
        leftovers.unmount([where.cache])
        shutil.rmtree(where.cache)
