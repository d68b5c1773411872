"""The whole relay on a clock that only moves when nothing else can happen: no sockets, no processes, no waiting."""
