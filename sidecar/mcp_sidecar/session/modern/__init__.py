"""Clients and servers without sessions (revision 2026-07-28)."""
