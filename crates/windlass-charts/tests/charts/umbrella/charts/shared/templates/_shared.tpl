{{- define "shared.line" }}line: shared by {{ .Chart.Name }}{{ end }}
