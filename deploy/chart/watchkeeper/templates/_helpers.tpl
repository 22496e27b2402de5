{{- define "watchkeeper.name" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- /* Names of objects without a namespace: they have that of the release. */ -}}
{{- define "watchkeeper.clusterName" -}}
{{- printf "watchkeeper:%s:%s" .Release.Namespace (include "watchkeeper.name" .) -}}
{{- end -}}

{{- define "watchkeeper.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "watchkeeper.labels" -}}
{{ include "watchkeeper.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "watchkeeper.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "watchkeeper.name" .) -}}
{{- end -}}

{{- define "watchkeeper.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- /* The Secret with the certificate, of any mode. */ -}}
{{- define "watchkeeper.tlsSecret" -}}
{{- if eq .Values.tls.mode "secret" -}}
{{ .Values.tls.secretName }}
{{- else if eq .Values.tls.mode "certManager" -}}
{{ include "watchkeeper.name" . }}-cert
{{- else -}}
{{ include "watchkeeper.name" . }}-tls
{{- end -}}
{{- end -}}

{{- /* "yes" if the CA of the certificate is published. */ -}}
{{- define "watchkeeper.publishesCA" -}}
{{- if or (eq .Values.tls.mode "selfSigned") .Values.tls.hasCA }}yes{{ end -}}
{{- end -}}

{{- /* The name by which clients verify the certificate. */ -}}
{{- define "watchkeeper.serverName" -}}
{{- .Values.tls.serverName | default (printf "%s.%s.svc" (include "watchkeeper.name" .) .Release.Namespace) -}}
{{- end -}}

{{- /* The names of the Service, and those of tls.names, as a list in JSON. */ -}}
{{- define "watchkeeper.dnsNames" -}}
{{- $name := include "watchkeeper.name" . -}}
{{- $svc := printf "%s.%s.svc" $name .Release.Namespace -}}
{{- concat (list $name (printf "%s.%s" $name .Release.Namespace) $svc (printf "%s.%s" $svc .Values.clusterDomain)) .Values.tls.names | toJson -}}
{{- end -}}

{{- /* A quantity such as 10Gi or 500M, in bytes. */ -}}
{{- define "watchkeeper.bytes" -}}
{{- $q := toString . -}}
{{- $number := regexFind "^[0-9.]+" $q -}}
{{- $unit := trimPrefix $number $q -}}
{{- $units := dict "" 1 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{- if not (and $number (hasKey $units $unit)) -}}
{{- fail (printf "%s is not a size: use one such as 10Gi" $q) -}}
{{- end -}}
{{- mulf (float64 $number) (get $units $unit) | int64 -}}
{{- end -}}

{{- /* Nine tenths of a quantity, in bytes. */ -}}
{{- define "watchkeeper.nineTenths" -}}
{{- divf (mulf (include "watchkeeper.bytes" . | float64) 9) 10 | int64 -}}
{{- end -}}
