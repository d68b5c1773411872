"""The imperative shell: what wakes a reconcile, what it reads, what it does."""
