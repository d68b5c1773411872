"""An API server in memory, for the operator as a process."""
