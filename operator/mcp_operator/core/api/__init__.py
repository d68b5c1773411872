"""The API `mcp-session.dev/v1alpha1`: models of spec and status, words of conditions and reasons.

This is the one source of truth: the CRD, the chart's copy of it and docs/api.md are generated from here
(`make crd`) and a test compares them.
"""

from mcp_operator.core.api.conditions import (
    Audit,
    AuthType,
    ClientCapability,
    ConditionStatus,
    ConditionType,
    EgressClass,
    OnServerRestart,
    Phase,
    Protocol,
    Reason,
    RecoveryAction,
    RemoteTransport,
    SessionMode,
    SigningAlgorithm,
)
from mcp_operator.core.api.identity import (
    API_VERSION,
    GROUP,
    KIND,
    PLURAL,
    RESERVED_VOLUMES,
    RESTART_ANNOTATION,
    VERSION,
)
from mcp_operator.core.api.remote import Remote
from mcp_operator.core.api.session import Session
from mcp_operator.core.api.spec import MCPServerSpec
from mcp_operator.core.api.status import MCPServerStatus
from mcp_relay_api.status import ErrorPhase

__all__ = [
    "API_VERSION",
    "GROUP",
    "KIND",
    "PLURAL",
    "RESERVED_VOLUMES",
    "RESTART_ANNOTATION",
    "VERSION",
    "Audit",
    "AuthType",
    "ClientCapability",
    "ConditionStatus",
    "ConditionType",
    "EgressClass",
    "ErrorPhase",
    "MCPServerSpec",
    "MCPServerStatus",
    "OnServerRestart",
    "Phase",
    "Protocol",
    "Reason",
    "RecoveryAction",
    "Remote",
    "RemoteTransport",
    "Session",
    "SessionMode",
    "SigningAlgorithm",
]
