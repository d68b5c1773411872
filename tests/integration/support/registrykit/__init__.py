"""A real registry as a process, images to put into it, and the token service that some registries have."""
