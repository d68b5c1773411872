"""The conformance gate: the official suite against the relay in front of a stdio server of our own."""
