"""One module for each command: reads the cluster, lets `core` decide, prints."""
