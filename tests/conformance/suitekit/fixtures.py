"""What the conformance suite expects to find: tools, resources and prompts with their texts and schemas."""

import base64
from typing import Any

Json = dict[str, Any]

SERVER_INFO = {"name": "conformance-fixture", "version": "1.0.0"}
CAPABILITIES: Json = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "logging": {},
    "completions": {},
}
# One red pixel, and a wave file without samples.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = base64.b64encode(
    b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x40\x1f\0\0\1\0\x08\0data\0\0\0\0"
).decode()
COMPLETION: Json = {"values": ["testing", "test value"], "total": 2, "hasMore": False}
LOG_TEXTS = ("Tool execution started", "Tool processing data", "Tool execution completed")


def text(value: str, **more: Any) -> Json:
    """A tool's result of one text."""
    return {"content": [_text(value)], **more}


def _text(value: str) -> Json:
    return {"type": "text", "text": value}


def _embedded(uri: str, mime: str, value: str) -> Json:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": value}}


IMAGE: Json = {"type": "image", "data": PNG, "mimeType": "image/png"}
TOOL_RESULTS: dict[str, Json] = {
    "test_simple_text": text("This is a simple text response for testing."),
    "test_image_content": {"content": [IMAGE]},
    "test_audio_content": {"content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]},
    "test_embedded_resource": {
        "content": [
            _embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
        ]
    },
    "test_multiple_content_types": {
        "content": [
            _text("Multiple content types test:"),
            IMAGE,
            _embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
        ]
    },
    "test_error_handling": text("This tool intentionally returns an error for testing", isError=True),
    "json_schema_2020_12_tool": text("The schema is what matters here."),
}

_OPTIONS = ["option1", "option2", "option3"]


def _titled(noun: str) -> list[Json]:
    return [
        {"const": f"value{number}", "title": f"{rank} {noun}"}
        for number, rank in enumerate(("First", "Second", "Third"), 1)
    ]


def _question(message: str, properties: Json, required: list[str]) -> Json:
    schema = {"type": "object", "properties": properties, "required": required}
    return {"message": message, "requestedSchema": schema}


ELICITATIONS: dict[str, Json] = {
    "test_elicitation": _question(
        "Who are you?",
        {
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"},
        },
        ["username", "email"],
    ),
    "test_elicitation_sep1034_defaults": _question(
        "Please check these values",
        {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": True},
        },
        [],
    ),
    "test_elicitation_sep1330_enums": _question(
        "Please choose",
        {
            "untitledSingle": {"type": "string", "enum": _OPTIONS},
            "titledSingle": {"type": "string", "oneOf": _titled("Option")},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _OPTIONS}},
            "titledMulti": {"type": "array", "items": {"anyOf": _titled("Choice")}},
        },
        [],
    ),
}

_SCHEMA_2020_12: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
_ARGUMENTS: dict[str, Json] = {
    "json_schema_2020_12_tool": _SCHEMA_2020_12,
    "test_sampling": {
        "type": "object",
        "properties": {"prompt": {"type": "string", "description": "What to ask the model"}},
        "required": ["prompt"],
    },
    "test_elicitation": {
        "type": "object",
        "properties": {"message": {"type": "string", "description": "What to show the user"}},
        "required": ["message"],
    },
}
TOOLS: list[Json] = [
    {
        "name": name,
        "description": f"Fixture of the conformance suite: {name}",
        "inputSchema": _ARGUMENTS.get(name, {"type": "object", "properties": {}}),
    }
    for name in (
        *TOOL_RESULTS, *ELICITATIONS, "test_tool_with_logging", "test_tool_with_progress", "test_sampling",
    )
]  # fmt: skip

_TEXT_OF = "This is the content of the {} text resource."
_CONTENTS: dict[str, Json] = {
    "test://static-text": {"mimeType": "text/plain", "text": _TEXT_OF.format("static")},
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
    "test://watched-resource": {"mimeType": "text/plain", "text": _TEXT_OF.format("watched")},
}
RESOURCES: list[Json] = [
    {
        "uri": uri,
        "name": uri.removeprefix("test://"),
        "description": f"Fixture of the conformance suite: {uri}",
        "mimeType": contents["mimeType"],
    }
    for uri, contents in _CONTENTS.items()
]
_TEMPLATE_START, _TEMPLATE_END = "test://template/", "/data"
TEMPLATES: list[Json] = [
    {
        "uriTemplate": f"{_TEMPLATE_START}{{id}}{_TEMPLATE_END}",
        "name": "template",
        "description": "Data for any id",
        "mimeType": "application/json",
    }
]


def resource(uri: str) -> Json | None:
    """Contents of a resource; None: there is none."""
    if uri in _CONTENTS:
        return {"uri": uri, **_CONTENTS[uri]}
    key = uri.removeprefix(_TEMPLATE_START).removesuffix(_TEMPLATE_END)
    if "/" in key or uri != f"{_TEMPLATE_START}{key}{_TEMPLATE_END}":
        return None
    data = f'{{"id":"{key}","templateTest":true,"data":"Data for ID: {key}"}}'
    return {"uri": uri, "mimeType": "application/json", "text": data}


def _argument(name: str, description: str) -> Json:
    return {"name": name, "description": description, "required": True}


_PROMPT_ARGUMENTS: dict[str, list[Json]] = {
    "test_simple_prompt": [],
    "test_prompt_with_arguments": [
        _argument("arg1", "First test argument"),
        _argument("arg2", "Second test argument"),
    ],
    "test_prompt_with_embedded_resource": [_argument("resourceUri", "URI of the resource to embed")],
    "test_prompt_with_image": [],
}
PROMPTS: list[Json] = [
    {"name": name, "description": f"Fixture of the conformance suite: {name}", "arguments": arguments}
    for name, arguments in _PROMPT_ARGUMENTS.items()
]


def prompt(name: str, arguments: Json) -> list[Json] | None:
    """Contents of a prompt's messages, all of the user; None: there is no such prompt."""
    given = {a["name"]: arguments.get(a["name"], "") for a in _PROMPT_ARGUMENTS.get(name, ())}
    if name == "test_simple_prompt":
        return [_text("This is a simple prompt for testing.")]
    if name == "test_prompt_with_arguments":
        return [_text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")]
    if name == "test_prompt_with_embedded_resource":
        embedded = _embedded(given["resourceUri"], "text/plain", "Embedded resource content for testing.")
        return [embedded, _text("Please process the embedded resource above.")]
    if name == "test_prompt_with_image":
        return [IMAGE, _text("Please analyze the image above.")]
    return None
