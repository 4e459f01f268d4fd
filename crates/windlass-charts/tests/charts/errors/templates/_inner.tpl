{{- define "errors.inner" -}}
{{ .Values.text.field }}
{{- end }}
{{- define "errors.required" -}}
{{ required "a value is needed" .Values.missing }}
{{- end }}
{{- define "errors.endless" -}}
{{ include "errors.endless" . }}
{{- end }}
