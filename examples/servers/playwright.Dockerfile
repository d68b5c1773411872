# The runtime image with a browser, for the server in playwright.yaml. Build argument: the runtime image.
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
USER 0
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core \
 && rm -rf /var/lib/apt/lists/* /var/log/*
USER 2000:2000
