{{- define "yaml" }}
values:
  {{- toYaml .Values | nindent 2 }}
pretty:
  {{- toYamlPretty .Values | nindent 2 }}
must: {{ mustToYaml (dict "a" (list)) }}
scalars:
{{- range list 1 1.5 1e6 1e21 "x" true nil (list) (dict) (list (list 1 (dict "a" (list 2)))) "" " " "multi\nline" -0.5 1234567890123 }}
- {{ toYaml . | nindent 4 }}
{{- end }}
chart:
  {{- toYaml .Chart | nindent 2 }}
release:
  {{- toYaml .Release | nindent 2 }}
{{- end }}
