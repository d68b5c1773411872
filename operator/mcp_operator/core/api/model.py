"""What all API models share: frozen values, camelCase names, strings of bounded length, RFC 3339 times.

The docstring below a field is its description: `kubectl explain`, the CRD and docs/api.md show it, so each
one tells the unit and the default. `crds/crdgen` turns the models into the CRD.
"""

from datetime import UTC, datetime
from typing import Annotated, Any, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, PlainSerializer
from pydantic.alias_generators import to_camel

# A core Kubernetes object, carried as it came: the API server checked it by the CRD's schema.
Opaque = dict[str, Any]


def camel(name: str) -> str:
    """Kubernetes' spelling of a field name: `pod_uid` is `podUID`, `jwks_uri` is `jwksURI`."""
    return to_camel(name).replace("Uid", "UID").replace("Uri", "URI")


def rfc3339(moment: datetime) -> str:
    """UTC in RFC 3339, milliseconds only where there are any: `2026-01-31T12:00:00.250Z`."""
    utc = moment.astimezone(UTC)
    precision = "milliseconds" if utc.microsecond >= 1000 else "seconds"
    return utc.isoformat(timespec=precision).replace("+00:00", "Z")


Timestamp = Annotated[AwareDatetime, PlainSerializer(rfc3339, return_type=str, when_used="json")]
Name = Annotated[str, Field(max_length=253)]
ShortText = Annotated[str, Field(max_length=256)]
Message = Annotated[str, Field(max_length=1024)]


def core(kind: str, of_items: dict[str, Any] | None = None, **schema: Any) -> Any:
    """Field of opaque core objects: `kind` names the Kubernetes type whose schema the CRD gets.

    `schema` adds keywords to the field's own schema, `of_items` to that of each item of a list.
    """
    return Field(json_schema_extra={"x-core-type": kind, "x-core-items": of_items or {}, **schema})


def map_of(*keys: str) -> dict[str, Any]:
    """List type of a list whose items are told apart by these keys, as server-side apply merges it."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


# List types of a list that is replaced as a whole, and of one without order and duplicates.
ATOMIC: dict[str, Any] = {"x-kubernetes-list-type": "atomic"}
SET: dict[str, Any] = {"x-kubernetes-list-type": "set"}


# Default that the definition does not declare: the API server would write it into every object, and a rule
# could not tell any more whether somebody set the field.
UNDECLARED: dict[str, Any] = {"default": None}


def rules(*pairs: tuple[str, str], **schema: Any) -> dict[str, Any]:
    """CEL rules of a schema, as (rule, message) pairs, beside other schema keywords."""
    validations = [{"rule": rule, "message": message} for rule, message in pairs]
    return {"x-kubernetes-validations": validations, **schema}


class Model(BaseModel):
    """Base of all API models.

    Unknown fields are ignored: the API server has pruned what the schema does not know, and during an upgrade
    the CRD may be newer than the operator.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        alias_generator=camel,
        validate_by_name=True,
        validate_by_alias=True,
        use_attribute_docstrings=True,
    )

    @classmethod
    def parse(cls, document: dict[str, Any] | None) -> Self:
        """Read the JSON object of the API server; None counts as {}. Raises pydantic.ValidationError."""
        return cls.model_validate(document or {})

    def document(self) -> dict[str, Any]:
        """Write the JSON object for the API server: camelCase, fields that are None left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)
