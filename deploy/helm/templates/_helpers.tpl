{{- define "holdfast.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "holdfast.scheme" -}}
{{- if .Values.peerTLS }}https{{ else }}http{{ end }}
{{- end }}
{{- define "holdfast.peers" -}}
{{ .Release.Name }}-peers.{{ .Release.Namespace }}.svc
{{- end }}
