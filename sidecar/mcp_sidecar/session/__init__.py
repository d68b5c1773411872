"""The one session with the server, and the many with the clients that share it."""
