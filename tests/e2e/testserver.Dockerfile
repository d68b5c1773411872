# The image of the end-to-end tests: the runtime image with the fault-producing servers and the client library.
# Build context: the repository's root.
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
USER 0
COPY requirements/testserver.txt /tmp/requirements.txt
RUN uv venv --quiet --python "$(command -v python3)" /opt/client \
 && uv pip install --quiet --no-cache --compile-bytecode --python /opt/client/bin/python --require-hashes -r /tmp/requirements.txt \
 && rm /tmp/requirements.txt
COPY tests/e2e/servers/ /servers/
USER 2000
ENTRYPOINT []
CMD ["python3", "/servers/raw.py"]
