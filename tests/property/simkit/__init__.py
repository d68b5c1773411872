"""The whole relay on a clock that moves only when nothing else can happen: no sockets, no waiting."""
