{{/* Name of all objects. At most 50 characters, so that suffixes and pods' names still fit. */}}
{{- define "streams-operator.name" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{/* Names of the Leases, one for each shard. */}}
{{- define "streams-operator.leases" -}}
{{- $name := include "streams-operator.name" . -}}
{{- $names := list -}}
{{- range until (int .Values.operator.shards) -}}
{{- $names = append $names (printf "%s-%d" $name .) -}}
{{- end -}}
{{- if eq (int .Values.operator.shards) 1 -}}{{ $name }}{{- else -}}{{ join ", " $names }}{{- end -}}
{{- end }}

{{/* Labels that never change: a Deployment's selector can't. */}}
{{- define "streams-operator.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "streams-operator.labels" -}}
{{ include "streams-operator.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "streams-operator.account" -}}
{{- .Values.serviceAccount.name | default (include "streams-operator.name" .) -}}
{{- end }}

{{- define "streams-operator.image" -}}
{{ include "streams-operator.reference" (list .Values.image .Chart.AppVersion) }}
{{- end }}

{{- define "streams-operator.runtime-image" -}}
{{ include "streams-operator.reference" (list .Values.runtime.image .Chart.AppVersion) }}
{{- end }}

{{/* An image by its digest, else by its tag, else by the version given. */}}
{{- define "streams-operator.reference" -}}
{{- $image := first . -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default (last .) }}
{{- end -}}
{{- end }}

{{/* What the Pod Security Standard `restricted` asks of a pod, and of its container. */}}
{{- define "streams-operator.pod-security" -}}
runAsNonRoot: true
{{- with .Values.runAsUser }}
runAsUser: {{ . }}
runAsGroup: {{ . }}
fsGroup: {{ . }}
{{- end }}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "streams-operator.container-security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* Where pods may be put; the operator's and the uninstall Job's. */}}
{{- define "streams-operator.placement" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The rights of the operator in a namespace that it looks after. Each is used, or given to pods. */}}
{{- define "streams-operator.rules" -}}
- apiGroups: [streamsoperator.io]
  resources: [streamsapplications]
  verbs: [get, list, watch, patch]
- apiGroups: [streamsoperator.io]
  resources: [streamsapplications/status]
  verbs: [update]
# Owner references that block the owner's deletion need it where the API server enforces that.
- apiGroups: [streamsoperator.io]
  resources: [streamsapplications/finalizers]
  verbs: [update]
- apiGroups: [""]
  resources: [pods, configmaps]
  verbs: [get, list, watch, create, patch, delete]
{{- if .Values.rbac.executorsAsPods }}
# Not used by the operator: it can only give to pods (those whose executors are pods) what it holds.
- apiGroups: [""]
  resources: [pods]
  verbs: [deletecollection]
{{- end }}
# The rest of an application goes with its resource, by owner references.
- apiGroups: [""]
  resources: [services, serviceaccounts]
  verbs: [get, list, watch, create, patch]
# Deleted by a reset (spec.reset).
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get, list, watch, create, patch, delete]
# Not used by the operator: it can only give to pods (their own conditions) what it holds.
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, rolebindings]
  verbs: [get, list, watch, create, patch]
# Those of spec.kafka.secretRef and spec.restartOnChange; their names are not known beforehand, and they are never
# listed.
- apiGroups: [""]
  resources: [secrets]
  verbs: [get]
- apiGroups: [""]
  resources: [events]
  verbs: [get, create, patch]
{{- end }}
