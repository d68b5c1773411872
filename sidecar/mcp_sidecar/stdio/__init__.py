"""How the relay reaches the server's pipes: lines over the launcher's Unix socket."""
