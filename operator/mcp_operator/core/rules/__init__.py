"""The rows of the decision table, one module per stage in a pod's life, tried in the order of `decide`."""
