{{- define "mcpserver-operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "mcpserver-operator.fullname" -}}
{{- $name := include "mcpserver-operator.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "mcpserver-operator.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "mcpserver-operator.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name is required when serviceAccount.create is false" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "mcpserver-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ include "mcpserver-operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end }}

{{- define "mcpserver-operator.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "mcpserver-operator.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: mcpserver-operator
{{- end }}

{{- /* Full name of an image: (list context image). */ -}}
{{- define "mcpserver-operator.image" -}}
{{- $context := index . 0 }}
{{- $image := index . 1 }}
{{- with $context.Values.imageRegistry }}{{ trimSuffix "/" . }}/{{ end }}
{{- $image.repository }}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ default $context.Chart.AppVersion $image.tag }}{{ end }}
{{- end }}

{{- /* What the servers' NetworkPolicies say about this cluster, and how they let the operator in. */ -}}
{{- define "mcpserver-operator.network" -}}
{{- $labels := include "mcpserver-operator.selectorLabels" . | fromYaml }}
{{- merge (dict "podLabels" $labels) .Values.network | toJson }}
{{- end }}

{{- /* What the operator does, and not more; tests/chart holds the whole list. */ -}}
{{- define "mcpserver-operator.rules" -}}
- apiGroups: [mcp-session.dev]
  resources: [mcpservers]
  verbs: [get, list, watch]
- apiGroups: [mcp-session.dev]
  resources: [mcpservers/status]
  verbs: [patch]
# Owner references that block the owner's deletion, where OwnerReferencesPermissionEnforcement is on.
- apiGroups: [mcp-session.dev]
  resources: [mcpservers/finalizers]
  verbs: [update]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, delete]
# Written by server-side apply; they go with their owner.
- apiGroups: [""]
  resources: [services, secrets]
  verbs: [get, list, watch, create, patch]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, watch, create, patch]
# What servers refer to.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch]
# Events of its own, and the node's words about a pod that does not start.
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, list]
{{- end }}
