"""The HTTP side: a port for clients and one for the operator, on HTTP/1.1 of their own."""
