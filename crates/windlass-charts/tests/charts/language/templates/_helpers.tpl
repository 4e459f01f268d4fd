{{/* A comment
   on two lines. */}}
{{- define "language.name" -}}
{{- .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- define "language.labels" }}
app: {{ include "language.name" . }}
release: {{ .Release.Name }}
{{- end }}
{{- define "language.recursive" -}}
{{- if gt (int .n) 0 }}{{ .n }} {{ include "language.recursive" (dict "n" (sub .n 1)) }}{{ else }}end{{ end -}}
{{- end }}
{{- define "language.empty" }}{{ end }}
