{{- define "toold.name" -}}
{{- if contains "toold" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-toold" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "toold.selector" -}}
app.kubernetes.io/name: toold
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "toold.labels" -}}
{{ include "toold.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "toold.image" -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}

{{- define "toold.secretEnv" -}}
- name: TOOLD_STORE
  valueFrom:
    secretKeyRef:
      name: {{ .Values.secretName }}
      key: store
{{- end }}

{{- define "toold.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "toold.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end }}
