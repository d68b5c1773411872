"""The HTTP side: one bare ASGI application for clients, one for the operator, both on uvicorn."""
