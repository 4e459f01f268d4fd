{{- define "files" }}
get: {{ .Files.Get "config/a.txt" | quote }} {{ .Files.Get "none" | quote }}
bytes: {{ .Files.GetBytes "config/a.txt" | len }}
lines: {{ .Files.Lines "config/a.txt" }}
glob: {{ range $name, $data := .Files.Glob "config/*" }}{{ $name }}={{ $data | toString | len }} {{ end }}
deep: {{ range $name, $_ := .Files.Glob "**.ini" }}{{ $name }} {{ end }}{{ range $name, $_ := .Files.Glob "config/{a,b}.txt" }}{{ $name }} {{ end }}
config:
  {{- (.Files.Glob "config/*").AsConfig | nindent 2 }}
secrets:
  {{- (.Files.Glob "config/**").AsSecrets | nindent 2 }}
template: {{ .Template.Name }} {{ .Template.BasePath }}
capabilities: {{ .Capabilities.KubeVersion }} {{ .Capabilities.KubeVersion.Minor }} {{ .Capabilities.APIVersions.Has "apps/v1" }} {{ .Capabilities.APIVersions.Has "x/v1" }} {{ .Capabilities.HelmVersion.Version }} {{ .Capabilities.KubeVersion.GitVersion }}
tpl: {{ tpl "{{ .Values.text }} {{ include \"inner\" . }}{{ define \"inner\" }}in {{ .Chart.Name }}{{ end }}" . }} {{ tpl "plain" . }} {{ tpl "{{ .a }}" (dict "a" 1) }}
{{- end }}
