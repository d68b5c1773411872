"""The cluster: objects, watches, logs, and ports of pods. The only user of kubernetes-asyncio."""
