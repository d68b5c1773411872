# Redis from Debian, where the test cluster cannot pull the public image that examples/servers/redis.yaml names.
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends redis-server \
 && rm -rf /var/lib/apt/lists/* /var/log/*
USER 999
CMD ["redis-server"]
