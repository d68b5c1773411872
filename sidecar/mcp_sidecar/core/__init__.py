"""Pure decisions of the relay: no sockets, no clock, no tasks. Everything here is tested as tables."""
