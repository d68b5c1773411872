"""Relay, launcher and server put together as in a pod, on this machine; a client that hides nothing."""
