"""The only doors to the outside: the API server and the relays. Foreign errors are translated here, once."""
