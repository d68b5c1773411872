"""Pure decisions: no clock, no randomness, no I/O. Everything here is a function of frozen values."""
