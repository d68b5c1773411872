# The image of the end-to-end tests: the runtime image with the fault-producing servers, and both generations of the
# official library for clients and servers.
# Build context: the repository's root.
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
USER 0
COPY requirements/testserver.txt requirements/client-mcp1.txt /tmp/
RUN uv venv --quiet --python "$(command -v python3)" /opt/client \
 && uv pip install --quiet --no-cache --compile-bytecode --python /opt/client/bin/python --require-hashes -r /tmp/testserver.txt \
 && uv venv --quiet --python "$(command -v python3)" /opt/mcp1 \
 && uv pip install --quiet --no-cache --compile-bytecode --python /opt/mcp1/bin/python --require-hashes -r /tmp/client-mcp1.txt \
 && rm /tmp/testserver.txt /tmp/client-mcp1.txt
COPY tests/e2e/servers/ /servers/
USER 2000
ENTRYPOINT []
CMD ["python3", "/servers/raw.py"]
