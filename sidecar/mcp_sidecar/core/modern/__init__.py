"""Revision 2026-07-28 without sessions, and what lies between it and the revisions with a handshake."""
