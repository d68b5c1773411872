"""Makes the CRD, the chart's copy of it and docs/api.md from the models in `mcp_operator.core.api`.

`python -m crdgen` writes the files, `python -m crdgen trim SWAGGER` renews core-types.json from the OpenAPI
document of a Kubernetes release. Same input, same bytes: nothing is read from a network or a clock.
"""
