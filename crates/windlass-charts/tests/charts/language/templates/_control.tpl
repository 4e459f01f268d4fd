{{- define "control" }}
# if, with, range and what belongs to them
labels:
  {{- include "language.labels" . | nindent 2 }}
if: {{ if .Values.off }}a{{ else if eq .Values.text "hello" }}b{{ else }}c{{ end }}
truth: {{ if 0 }}x{{ end }}{{ if "" }}x{{ end }}{{ if .Values.none }}x{{ end }}{{ if list }}x{{ end }}{{ if dict }}x{{ end }}{{ if 0.0 }}x{{ end }}{{ if "0" }}yes{{ end }}
with: {{ with .Values.map.c }}{{ .d }} {{ $.Values.text }}{{ end }} {{ with .Values.missing }}a{{ else with .Values.text }}{{ . }}{{ else }}c{{ end }} {{ with $x := .Values.count }}{{ $x }}{{ end }}
range:
{{- range .Values.items }}
- name: {{ .name | quote }}
  ports:
  {{- range $i, $p := .ports }}
  - {{ $i }}: {{ $p }}
  {{- else }}
  - none
  {{- end }}
{{- end }}
map: {{ range $k, $v := .Values.map }}{{ $k }}={{ $v }},{{ end }}
one: {{ range $v := .Values.map }}{{ $v }};{{ end }}
ints: {{ range 3 }}{{ . }}{{ end }} {{ range $i := 2 }}{{ $i }}{{ end }} {{ range until 3 }}{{ . }}{{ end }} {{ range 0 }}a{{ else }}empty{{ end }}
break: {{ range $i, $_ := until 10 }}{{ if eq $i 2 }}{{ continue }}{{ end }}{{ if gt $i 4 }}{{ break }}{{ end }}{{ $i }}{{ end }}
variables: {{ $a := 1 }}{{ $b := $a }}{{ $a = add $a 5 }}{{ $a }} {{ $b }} {{ if true }}{{ $a = "inner" }}{{ $b := "hidden" }}{{ end }}{{ $a }} {{ $b }}
sum: {{ $sum := 0 }}{{ range .Values.items }}{{ $sum = add $sum (len .name) }}{{ end }}{{ $sum }}
recursive: {{ include "language.recursive" (dict "n" 5) }}
template: {{ template "language.name" . }}|{{ template "language.empty" }}|
block: {{ block "language.block" .Values.map }}{{ .a }}{{ end }} {{ include "language.block" (dict "a" "other") }}
trim:   {{- " left" }} {{ "right " -}}   |
trim2: {{- /* gone */ -}} x
parens: {{ (index .Values.items 0).name }} {{ (dict "a" (dict "b" 5)).a.b }} {{ ((add 1 2) | int) }}
pipes: {{ .Values.text | upper | repeat 2 | trunc 7 | quote }}
raw: {{ `raw {{ "x" }} \n` }} {{ "a\tb\"c\u00e9\x41" }}
missing: [{{ .Values.missing }}] [{{ .Values.none }}] [{{ .nope }}] {{ .Values.missing | default "fallback" }}
index: {{ index .Values.map "a" }} {{ index .Values.items 0 "name" }} {{ index .Values "map" "c" "d" }} [{{ index .Values.map "zz" }}]
objects: {{ .Values.map }} {{ .Values.items }}
root: {{ $.Release.Name }} {{ $.Chart.Version }} {{ .Release.IsInstall }} {{ .Release.IsUpgrade }} {{ .Release.Revision }} {{ .Release.Service }} {{ .Chart.Type }} {{ .Chart.AppVersion }} {{ .Chart.IsRoot }}
newline: {{ "a\nb" | indent 2 }}
{{- end }}
