{{- define "watchkeeper.pod" -}}
metadata:
  labels:
    {{- include "watchkeeper.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  {{- with .Values.podAnnotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "watchkeeper.serviceAccount" . }}
  {{- with .Values.image.pullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: {type: RuntimeDefault}
  terminationGracePeriodSeconds: {{ add .Values.drainSeconds .Values.shutdownGraceSeconds 15 }}
  containers:
  - name: watchkeeper
    image: {{ include "watchkeeper.image" . | quote }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    args: {{- include "watchkeeper.args" . | nindent 4 }}
    {{- $limits := .Values.containerResources.limits | default dict }}
    {{- if or $limits.memory $limits.cpu }}
    env:
    {{- with $limits.memory }}
    - {name: GOMEMLIMIT, value: {{ include "watchkeeper.nineTenths" . | quote }}}
    {{- end }}
    {{- if $limits.cpu }}
    - name: GOMAXPROCS
      valueFrom: {resourceFieldRef: {resource: limits.cpu}}
    {{- end }}
    {{- end }}
    ports:
    - {name: https, containerPort: 8001}
    - {name: admin, containerPort: 8002}
    # Not /readyz: while the API server does not answer, the gateway serves what it has.
    startupProbe:
      httpGet: {path: /livez, port: admin}
      periodSeconds: 2
      failureThreshold: 150
    readinessProbe:
      httpGet: {path: /livez, port: admin}
      periodSeconds: 5
    livenessProbe:
      httpGet: {path: /livez, port: admin}
      periodSeconds: 10
      timeoutSeconds: 5
      failureThreshold: 6
    {{- if .Values.drainSeconds }}
    lifecycle:
      preStop:
        sleep: {seconds: {{ .Values.drainSeconds }}}
    {{- end }}
    resources: {{- toYaml .Values.containerResources | nindent 6 }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: {drop: [ALL]}
    {{- if or .Values.recording.enabled .Values.extraVolumeMounts (ne .Values.tls.mode "selfSigned") }}
    volumeMounts:
    {{- if .Values.recording.enabled }}
    - {name: history, mountPath: /var/lib/watchkeeper}
    {{- end }}
    {{- if ne .Values.tls.mode "selfSigned" }}
    - {name: tls, mountPath: /etc/watchkeeper/tls, readOnly: true}
    {{- end }}
    {{- with .Values.extraVolumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- end }}
  {{- if or .Values.extraVolumes (ne .Values.tls.mode "selfSigned") }}
  volumes:
  {{- if ne .Values.tls.mode "selfSigned" }}
  - name: tls
    secret: {secretName: {{ include "watchkeeper.tlsSecret" . }}}
  {{- end }}
  {{- with .Values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- end }}
  {{- with .Values.topologySpread }}
  topologySpreadConstraints:
  {{- range . }}
  - topologyKey: {{ . }}
    maxSkew: 1
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "watchkeeper.selector" $ | nindent 8 }}
  {{- end }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . | quote }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{- define "watchkeeper.args" -}}
- serve
- --shared
- --address=0.0.0.0
- --port=8001
- --admin-listen=0.0.0.0:8002
{{- if eq .Values.tls.mode "selfSigned" }}
- --cert-secret={{ .Release.Namespace }}/{{ include "watchkeeper.tlsSecret" . }}
{{- range include "watchkeeper.dnsNames" . | fromJsonArray }}
- --tls-san={{ . }}
{{- end }}
{{- else }}
- --tls-cert-file=/etc/watchkeeper/tls/tls.crt
- --tls-private-key-file=/etc/watchkeeper/tls/tls.key
{{- if include "watchkeeper.publishesCA" . }}
- --tls-ca-file=/etc/watchkeeper/tls/ca.crt
{{- end }}
{{- end }}
{{- if include "watchkeeper.publishesCA" . }}
- --ca-configmap={{ .Release.Namespace }}/{{ include "watchkeeper.name" . }}
{{- end }}
{{- if .Values.recording.enabled }}
- --data-dir=/var/lib/watchkeeper
- --record={{ join "," .Values.recording.resources }}
{{- with .Values.recording.exclude }}
- --record-exclude={{ join "," . }}
{{- end }}
- --history-max-age={{ .Values.recording.maxAge }}
{{- $size := .Values.recording.volume.size }}
{{- $bytes := include "watchkeeper.bytes" $size | int64 }}
{{- if lt $bytes 1000000000 }}
{{- fail (printf "recording.volume.size is %s: it has to be 1G or more, since 128Mi of a disk are left free" $size) }}
{{- end }}
{{- with .Values.recording.maxBytes }}
{{- if gt (include "watchkeeper.bytes" . | int64) $bytes }}
{{- fail (printf "recording.maxBytes is %s, which is more than the volume has (recording.volume.size, %s)" . $size) }}
{{- end }}
{{- end }}
- --history-max-bytes={{ .Values.recording.maxBytes | default (include "watchkeeper.nineTenths" $size) }}
{{- else }}
- --data-dir=
{{- end }}
{{- if .Values.impersonate.enabled }}
- --impersonate
- --impersonate-service-account={{ .Release.Namespace }}/{{ include "watchkeeper.name" . }}-impersonator
{{- end }}
- --window-bytes={{ .Values.windowBytes }}
- --shutdown-grace={{ .Values.shutdownGraceSeconds }}s
- --log-format=json
{{- range .Values.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}
