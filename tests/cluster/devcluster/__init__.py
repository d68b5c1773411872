"""A Kubernetes cluster for demo and tests in one command: kind where Docker runs, else a node of its own."""
