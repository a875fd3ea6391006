{{/* The name of the chart. */}}
{{- define "trainjob-operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 46 | trimSuffix "-" -}}
{{- end }}

{{/*
What every name begins with: the release, and the chart unless the release is called after it.
At most 44 characters, so that the longest of the names made from it is still one of a Service.
*/}}
{{- define "trainjob-operator.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 44 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 44 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 44 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{/*
The programs, which most templates are about, by the section of the values that each has, and what is different. The
retention engine and the accounting program are among them where they are wanted. Gives YAML; use fromYaml.
*/}}
{{- define "trainjob-operator.programs" -}}
{{- $fullname := include "trainjob-operator.fullname" . -}}
manager:
  name: {{ $fullname }}
  program: trainjob-operator
  rules: operator
  config: {{ $fullname }}-config
  serviceAccount: {{ default $fullname .Values.manager.serviceAccount.name | quote }}
webhook:
  name: {{ $fullname }}-webhook
  program: trainjob-webhook
  rules: webhook
  config: {{ $fullname }}-config
  serviceAccount: {{ default (printf "%s-webhook" $fullname) .Values.webhook.serviceAccount.name | quote }}
{{- if .Values.retention.enabled }}
retention:
  name: {{ $fullname }}-retention
  program: trainjob-retention
  rules: retention
  config: {{ $fullname }}-retention-config
  serviceAccount: {{ default (printf "%s-retention" $fullname) .Values.retention.serviceAccount.name | quote }}
{{- end }}
{{- if .Values.accounting.program }}
accounting:
  {{- include "trainjob-operator.accounting" . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The accounting program, which is also called once more when it is about to go. Gives YAML; use fromYaml. */}}
{{- define "trainjob-operator.accounting" -}}
{{- $name := printf "%s-accounting" (include "trainjob-operator.fullname" .) -}}
name: {{ $name }}
program: trainjob-accounting
rules: accounting
config: {{ $name }}-config
serviceAccount: {{ default $name .Values.accounting.serviceAccount.name | quote }}
{{- end }}

{{/*
What runs in a Deployment: the programs, each with its replicas, resources and arguments, and the sweeper, which is the
accounting program with another command and is otherwise set as it is. Gives YAML; use fromYaml.
*/}}
{{- define "trainjob-operator.deployments" -}}
{{- $deployments := include "trainjob-operator.programs" . | fromYaml -}}
{{- range $component, $program := $deployments -}}
{{- $values := index $.Values $component -}}
{{- $_ := set $program "values" $component -}}
{{- $_ := set $program "container" $program.program -}}
{{- $_ := set $program "metricsService" (printf "%s-metrics" $program.name) -}}
{{- $_ := set $program "replicas" $values.replicas -}}
{{- $_ := set $program "resources" $values.resources -}}
{{- $_ := set $program "args" list -}}
{{- end -}}
{{- $sweeper := .Values.accounting.sweeper -}}
{{- if and .Values.accounting.program $sweeper.enabled -}}
{{- $sweeping := deepCopy $deployments.accounting -}}
{{- $_ := set $sweeping "name" (printf "%s-sweeper" $sweeping.name) -}}
{{- $_ := set $sweeping "container" (printf "%s-sweeper" $sweeping.program) -}}
{{- /* With more in it, the name may be too long for a Service. */ -}}
{{- $_ := set $sweeping "metricsService" (printf "%s-sweeper-metrics" (include "trainjob-operator.fullname" .)) -}}
{{- $_ := set $sweeping "replicas" 1 -}}
{{- $_ := set $sweeping "resources" $sweeper.resources -}}
{{- $_ := set $sweeping "args" (list "sweep" (printf "--after=%s" $sweeper.after)) -}}
{{- $_ := set $deployments "accounting-sweeper" $sweeping -}}
{{- end -}}
{{- toYaml $deployments -}}
{{- end }}

{{/* What tells the Pods of a component, given root and component, from all others. */}}
{{- define "trainjob-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ include "trainjob-operator.name" .root | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end }}

{{/* The labels of an object, given root and, if it has them, component and extra labels. */}}
{{- define "trainjob-operator.labels" -}}
{{- $chart := printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" -}}
{{- $own := include "trainjob-operator.selectorLabels" . | fromYaml -}}
{{- $_ := set $own "app.kubernetes.io/part-of" "kubeflow" -}}
{{- $_ := set $own "app.kubernetes.io/managed-by" .root.Release.Service -}}
{{- $_ := set $own "app.kubernetes.io/version" .root.Chart.AppVersion -}}
{{- $_ := set $own "helm.sh/chart" $chart -}}
{{- merge $own (default dict .extra) (default dict .root.Values.commonLabels) | toYaml -}}
{{- end }}

{{/*
"true" where the image is that of Kubeflow Trainer's manager, because the values are those of its chart. It has none of the
programs, so it means the image that has them.
*/}}
{{- define "trainjob-operator.imageIsTrainers" -}}
{{- if hasSuffix "kubeflow/trainer/trainer-controller-manager" .Values.image.repository }}true{{ end -}}
{{- end }}

{{/* The image that has all programs. */}}
{{- define "trainjob-operator.image" -}}
{{- $image := .Values.image -}}
{{- if include "trainjob-operator.imageIsTrainers" . -}}
{{- $image = dict "registry" $image.registry "repository" "trainjob-operator/trainjob-operator" -}}
{{- end -}}
{{- with $image.registry }}{{ . }}/{{ end }}{{ $image.repository }}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ default (printf "v%s" .Chart.AppVersion) $image.tag }}{{ end }}
{{- end }}

{{/* The variables of a container, given its own and those of the values, which take the place of its own of the same name. */}}
{{- define "trainjob-operator.env" -}}
{{- $given := default list .given -}}
{{- $names := list -}}
{{- range $given }}{{ $names = append $names .name }}{{ end -}}
{{- $env := list -}}
{{- range .own }}{{ if not (has .name $names) }}{{ $env = append $env . }}{{ end }}{{ end -}}
{{- concat $env $given | toYaml -}}
{{- end }}

{{/* The variable by which a program knows its namespace. */}}
{{- define "trainjob-operator.podNamespace" -}}
name: POD_NAMESPACE
valueFrom:
  fieldRef:
    fieldPath: metadata.namespace
{{- end }}

{{/* The port of an address as the configuration has it, such as ":8081". */}}
{{- define "trainjob-operator.port" -}}
{{- splitList ":" . | last -}}
{{- end }}

{{/* Whether metrics are served: "true" or nothing. */}}
{{- define "trainjob-operator.servesMetrics" -}}
{{- if ne .Values.manager.config.metrics.bindAddress "0" }}true{{ end -}}
{{- end }}

{{/* Whether readers of metrics are authorized: "true" or nothing. As in the programs, that is so over TLS unless it is switched off. */}}
{{- define "trainjob-operator.authorizesReaders" -}}
{{- $metrics := .Values.manager.config.metrics -}}
{{- $auth := default dict $metrics.auth -}}
{{- $enabled := ternary $auth.enabled $metrics.secureServing (hasKey $auth "enabled") -}}
{{- if and (include "trainjob-operator.servesMetrics" .) $enabled }}true{{ end -}}
{{- end }}

{{/* The Service in front of the admission server, and the Secret of its certificate. */}}
{{- define "trainjob-operator.webhookService" -}}
{{- default (printf "%s-webhook" (include "trainjob-operator.fullname" .)) .Values.manager.config.certManagement.webhookServiceName -}}
{{- end }}
{{- define "trainjob-operator.webhookSecret" -}}
{{- default "kubeflow-trainer-webhook-cert" .Values.manager.config.certManagement.webhookSecretName -}}
{{- end }}

{{/* Whether cert-manager makes that certificate: "true" or nothing. */}}
{{- define "trainjob-operator.certManager" -}}
{{- if and .Values.webhook.certManager.enabled (not .Values.manager.config.certManagement.enable) }}true{{ end -}}
{{- end }}

{{/* The names by which the API server calls the admission server, as a YAML list. */}}
{{- define "trainjob-operator.webhookNames" -}}
{{- $service := printf "%s.%s.svc" (include "trainjob-operator.webhookService" .) .Release.Namespace -}}
{{- $names := list $service (printf "%s.cluster.local" $service) -}}
{{- with .Values.webhook.url }}{{ $names = append $names (urlParse .).hostname }}{{ end -}}
{{- concat $names (default list .Values.manager.config.certificates.names) | uniq | toYaml -}}
{{- end }}

{{/*
The configuration file of operator and webhook: manager.config of the values, with the names that depend on the release, and
without what says nothing. An empty section is not the same as none, so it must go.
*/}}
{{- define "trainjob-operator.config" -}}
{{- $config := deepCopy .Values.manager.config -}}
{{- $_ := set $config "apiVersion" "config.trainer.kubeflow.org/v1alpha1" -}}
{{- $_ := set $config "kind" "Configuration" -}}
{{- $_ := set $config.certManagement "webhookServiceName" (include "trainjob-operator.webhookService" .) -}}
{{- $_ := set $config.certManagement "webhookSecretName" (include "trainjob-operator.webhookSecret" .) -}}
{{- if .Values.webhook.url -}}
{{- /* The two names of the Service are in every certificate anyway. */ -}}
{{- $names := include "trainjob-operator.webhookNames" . | fromYamlArray -}}
{{- $_ := set $config.certificates "names" (slice $names 2) -}}
{{- end -}}
{{- $kinds := dict -}}
{{- range $key, $number := $config.controller.groupKindConcurrency -}}
{{- $_ := set $kinds (printf "%s.trainer.kubeflow.org" (title $key)) $number -}}
{{- end -}}
{{- $_ := set $config.controller "groupKindConcurrency" $kinds -}}
{{- $mode := include "trainjob-operator.accountingMode" . -}}
{{- if .Values.accounting.program -}}
{{- $lease := dict "leaseName" "trainjob-accounting" "leaseNamespace" .Release.Namespace -}}
{{- $_ := set $config "accounting" (set $lease "mode" $mode) -}}
{{- end -}}
{{- include "trainjob-operator.pruned" $config -}}
{{- end }}

{{/*
What the operator marks Pods with: nothing without the program that counts them, and labels unless somebody chooses. A
reader of YAML 1.1 takes Off for false.
*/}}
{{- define "trainjob-operator.accountingMode" -}}
{{- $mode := .Values.accounting.mode -}}
{{- if kindIs "bool" $mode }}{{ $mode = "Off" }}{{ end -}}
{{- if and $mode (ne $mode "Off") (not .Values.accounting.program) -}}
{{- fail (printf "accounting.mode: %s, but accounting.program is false, so nothing would count what the operator marks, expected accounting.program: true, or accounting.mode: \"Off\"" $mode) -}}
{{- end -}}
{{- default (ternary "Observe" "Off" .Values.accounting.program) $mode -}}
{{- end }}

{{/*
The configuration file of the retention engine. Its servers listen where those of the operator do, and its leader is
elected in the same times.
*/}}
{{- define "trainjob-operator.retentionConfig" -}}
{{- $shared := .Values.manager.config -}}
{{- $targets := list -}}
{{- range .Values.retention.targets }}{{ $targets = append $targets (omit . "owners") }}{{ end -}}
{{- if not $targets -}}
{{- fail "retention.targets: empty, so no policy would do anything, expected kinds such as {apiGroup: batch, kind: Job, resource: jobs}" -}}
{{- end -}}
{{- $settings := pick .Values.retention "deletesPerSecond" "concurrency" "excludedNamespaces" "clockJumpPauseSeconds" -}}
{{- $config := dict
  "apiVersion" "config.lifecycle.trainjob.dev/v1alpha1"
  "kind" "RetentionConfiguration"
  "leaderElection" (include "trainjob-operator.sharedElection" . | fromYaml)
  "health" $shared.health
  "metrics" (pick $shared.metrics "bindAddress" "secureServing" "auth")
  "retention" (set $settings "targets" $targets)
-}}
{{- include "trainjob-operator.pruned" $config -}}
{{- end }}

{{/* That of the accounting program, likewise. Program, sweeper and drain read the same. */}}
{{- define "trainjob-operator.accountingConfig" -}}
{{- $shared := .Values.manager.config -}}
{{- $settings := pick .Values.accounting "batchPeriod" "holdLimit" "gpuResources" "copyLabels" "failureMessages" "concurrency" -}}
{{- $metrics := merge (deepCopy .Values.accounting.metrics) (pick $shared.metrics "bindAddress" "secureServing" "auth") -}}
{{- $config := dict
  "apiVersion" "config.lifecycle.trainjob.dev/v1alpha1"
  "kind" "AccountingConfiguration"
  "leaderElection" (include "trainjob-operator.sharedElection" . | fromYaml)
  "health" $shared.health
  "metrics" $metrics
  "accounting" (set $settings "holdLimit" (toString $settings.holdLimit))
-}}
{{- include "trainjob-operator.pruned" $config -}}
{{- end }}

{{/* An election in the times of the operator's, by a Lease that has the program's name. */}}
{{- define "trainjob-operator.sharedElection" -}}
{{- $election := pick .Values.manager.config.leaderElection "leaseDuration" "renewDeadline" "retryPeriod" -}}
{{- set $election "leaderElect" true | toYaml -}}
{{- end }}

{{/* The configuration file of a program, given root and component. */}}
{{- define "trainjob-operator.configOf" -}}
{{- $templates := dict "retention" "retentionConfig" "accounting" "accountingConfig" "accounting-sweeper" "accountingConfig" -}}
{{- include (printf "trainjob-operator.%s" (default "config" (get $templates .component))) .root -}}
{{- end }}

{{/* A map as YAML, without what is null, "", {} or [], all the way down. */}}
{{- define "trainjob-operator.pruned" -}}
{{- $kept := dict -}}
{{- range $key, $value := . -}}
{{- if kindIs "map" $value -}}
{{- with include "trainjob-operator.pruned" $value | fromYaml }}{{ $_ := set $kept $key . }}{{ end -}}
{{- else if not (or (kindIs "invalid" $value) (and (kindIs "string" $value) (eq $value "")) (and (kindIs "slice" $value) (not $value))) -}}
{{- $_ := set $kept $key $value -}}
{{- end -}}
{{- end -}}
{{- toYaml $kept -}}
{{- end }}

{{/* What one of files/*-rules.yaml allows, as a YAML list. The tests use the same files. */}}
{{- define "trainjob-operator.rules" -}}
{{- $path := printf "files/%s-rules.yaml" .file -}}
{{- $text := .root.Files.Get $path -}}
{{- if not $text }}{{ fail (printf "%s is missing from the chart" $path) }}{{ end -}}
{{- $rules := list -}}
{{- $makesCertificate := .root.Values.manager.config.certManagement.enable -}}
{{- $election := .root.Values.manager.config.leaderElection -}}
{{- range fromYamlArray $text -}}
{{- if not (kindIs "map" .) }}{{ fail (printf "%s: %v" $path .) }}{{ end -}}
{{- /* Secrets and registrations are the business of a webhook that makes its certificate itself. */ -}}
{{- $ofCertificate := or (has "admissionregistration.k8s.io" .apiGroups) (and (has "secrets" .resources) (hasPrefix "webhook" $.file)) -}}
{{- /* And the Lease is that of whoever is elected. Replicas of the other programs always elect one. */ -}}
{{- $ofLease := and (has "leases" .resources) (eq $.file "operator-namespace") -}}
{{- if and (or $makesCertificate (not $ofCertificate)) (or $election.leaderElect (not $ofLease)) -}}
{{- if has "kubeflow-trainer-webhook-cert" (default list .resourceNames) -}}
{{- $_ := set . "resourceNames" (list (include "trainjob-operator.webhookSecret" $.root)) -}}
{{- end -}}
{{- if and $ofLease .resourceNames -}}
{{- $_ := set . "resourceNames" (list (default "trainer.kubeflow.org" $election.resourceName)) -}}
{{- end -}}
{{- $rules = append $rules . -}}
{{- end -}}
{{- end -}}
{{- toYaml $rules -}}
{{- end }}

{{/*
What the targets of the retention engine allow it, as a YAML list: to watch and delete their objects; to read the owners
of these, and to delete them where that is asked for; and about Pods what rules with pods need, or the question whether a
TrainJob is released (docs/retention.md, 9).
*/}}
{{- define "trainjob-operator.targetRules" -}}
{{- $rules := list -}}
{{- $ofPods := list -}}
{{- range .Values.retention.targets -}}
{{- $target := . -}}
{{- $rules = append $rules (dict "apiGroups" (list .apiGroup) "resources" (list .resource) "verbs" (list "list" "watch" "delete")) -}}
{{- range default list .owners -}}
{{- $verbs := ternary (list "get" "delete") (list "get") (default false $target.ownerDelete) -}}
{{- $rules = append $rules (dict "apiGroups" (list .apiGroup) "resources" (list .resource) "verbs" $verbs) -}}
{{- end -}}
{{- if .pods }}{{ $ofPods = list "list" "delete" }}{{ end -}}
{{- if and (eq .apiGroup "trainer.kubeflow.org") (eq .kind "TrainJob") -}}
{{- $rules = append $rules (dict "apiGroups" (list "jobset.x-k8s.io") "resources" (list "jobsets") "verbs" (list "get")) -}}
{{- $ofPods = default (list "list") $ofPods -}}
{{- end -}}
{{- end -}}
{{- if $ofPods }}{{ $rules = append $rules (dict "apiGroups" (list "") "resources" (list "pods") "verbs" $ofPods) }}{{ end -}}
{{- toYaml $rules -}}
{{- end }}

{{/* Where the programs may connect to, as a YAML list of egress rules: the API server, and the name it is looked up by. */}}
{{- define "trainjob-operator.egress" -}}
{{- with .Values.networkPolicy.egress -}}
- ports:
    {{- range .apiServer.ports }}
    - protocol: TCP
      port: {{ . }}
    {{- end }}
  {{- with .apiServer.to }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
- ports:
    - protocol: UDP
      port: 53
    - protocol: TCP
      port: 53
{{- with .extra }}
{{ toYaml . }}
{{- end }}
{{- end -}}
{{- end }}

{{/* "true" where the templates are rendered for a cluster that has been asked what it serves. */}}
{{- define "trainjob-operator.clusterIsKnown" -}}
{{- if .Capabilities.APIVersions.Has "v1/Pod" }}true{{ end -}}
{{- end }}

{{/*
"true" where runtimes can be created. Helm looks up the kind of every object before it creates the first, so none can
come in the same installation as its definition.
*/}}
{{- define "trainjob-operator.runtimesAreServed" -}}
{{- if or (not (include "trainjob-operator.clusterIsKnown" .)) (.Capabilities.APIVersions.Has "trainer.kubeflow.org/v1alpha1/ClusterTrainingRuntime") }}true{{ end -}}
{{- end }}

{{/*
"true" where Jobs create and remove the runtimes, as long as they are not objects of the release. Nobody else could give
these Jobs their rights.
*/}}
{{- define "trainjob-operator.jobsDoRuntimes" -}}
{{- if and (not (include "trainjob-operator.runtimesAreServed" .)) .Values.rbac.create (include "trainjob-operator.wantedRuntimes" . | fromYaml) }}true{{ end -}}
{{- end }}

{{/*
What values of Kubeflow Trainer's chart mean nothing here, a line each. That JobSet is to be installed is an error where it
is missing: without it nothing works. Kubernetes 1.31 takes only 0.10 of it (docs/compatibility.md).
*/}}
{{- define "trainjob-operator.withoutEffect" -}}
{{- with .Values.jobset }}
{{- if not (kindIs "bool" (default false .install)) }}{{ fail (printf "jobset.install: %v, expected true or false" .install) }}{{ end }}
{{- if .install }}
{{- if and (include "trainjob-operator.clusterIsKnown" $) (not ($.Capabilities.APIVersions.Has "jobset.x-k8s.io/v1alpha2/JobSet")) }}
{{- $version := ternary "0.10.1" "0.12.0" (semverCompare "<1.32.0-0" $.Capabilities.KubeVersion.Version) }}
{{- fail (printf "jobset.install: true, but JobSet is not part of this chart, and the cluster does not have it, expected an installation of it before:\n  kubectl apply --server-side -f https://github.com/kubernetes-sigs/jobset/releases/download/v%s/manifests.yaml\n  kubectl --namespace jobset-system rollout status deployment/jobset-controller-manager" $version) }}
{{- end }}
jobset.install: JobSet is not part of this chart; {{ if include "trainjob-operator.clusterIsKnown" $ }}the one that is installed stays as it is{{ else }}install it before{{ end }}
{{- end }}
{{- range $name, $_ := omit . "install" }}
jobset.{{ $name }}: JobSet is not part of this chart
{{- end }}
{{- end }}
{{- if include "trainjob-operator.imageIsTrainers" . }}
image.repository: Kubeflow Trainer's manager has none of the programs; the image is {{ include "trainjob-operator.image" . }}
{{- end }}
{{- if .Values.manager.selectorLabels }}
manager.selectorLabels: the selectors of a Deployment are its names; for further labels of the Pods, manager.labels
{{- end }}
{{- if .Values.runtimes.installer }}
runtimes.installer: the image of the operator installs the runtimes
{{- end }}
{{- if .Values.dataCache.lws }}
dataCache.lws: LeaderWorkerSet is not part of this chart
{{- end }}
{{- end }}

{{/* The predefined runtimes that are wanted, as objects by their names. */}}
{{- define "trainjob-operator.runtimes" -}}
{{- $all := dict -}}
{{- range $name, $image := include "trainjob-operator.wantedRuntimes" . | fromYaml }}
{{- $path := printf "files/runtimes/%s.yaml" $name }}
{{- $runtime := $.Files.Get $path | fromYaml }}
{{- if ne (default "" $runtime.kind) "ClusterTrainingRuntime" }}{{ fail (printf "%s: %v" $path $runtime) }}{{ end }}
{{- $common := include "trainjob-operator.labels" (dict "root" $) | fromYaml }}
{{- $_ := set $runtime.metadata "labels" (merge (deepCopy (default dict $.Values.runtimes.commonLabels)) $runtime.metadata.labels $common) }}
{{- range $runtime.spec.template.spec.replicatedJobs }}
{{- range .template.spec.template.spec.containers }}
{{- if eq .name "node" }}
{{- $_ := set . "image" (include "trainjob-operator.imageWith" (dict "image" .image "with" $image)) }}
{{- end }}
{{- range .env }}
{{- if eq .name "CACHE_IMAGE" }}
{{- $_ := set . "value" (include "trainjob-operator.imageWith" (dict "image" .value "with" $.Values.dataCache.cacheImage)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- $_ := set $all $name $runtime }}
{{- end }}
{{- toYaml $all }}
{{- end }}

{{/* The names of the predefined runtimes that are wanted, each with the image that its containers called node get. */}}
{{- define "trainjob-operator.wantedRuntimes" -}}
{{- $of := .Values.runtimes -}}
{{- $tune := $of.torchtuneDistributed -}}
{{- $cache := .Values.dataCache.runtimes.torchDistributedWithCache -}}
{{- if and $cache.enabled (not .Values.dataCache.enabled) -}}
{{- fail "dataCache.runtimes.torchDistributedWithCache.enabled: true, but dataCache.enabled is false, expected both true or this false" -}}
{{- end -}}
{{- $all := dict
  "torch-distributed" $of.torchDistributed
  "jax-distributed" $of.jaxDistributed
  "xgboost-distributed" $of.xgboostDistributed
  "deepspeed-distributed" $of.deepspeedDistributed
  "mlx-distributed" $of.mlxDistributed
  "torchtune-llama3.2-1b" (dict "enabled" $tune.llama3_2_1B.enabled "image" $tune.image)
  "torchtune-llama3.2-3b" (dict "enabled" $tune.llama3_2_3B.enabled "image" $tune.image)
  "torchtune-qwen2.5-1.5b" (dict "enabled" $tune.qwen2_5_1_5B.enabled "image" $tune.image)
-}}
{{- $wanted := dict -}}
{{- range $name, $runtime := $all -}}
{{- if or $of.defaultEnabled $runtime.enabled }}{{ $_ := set $wanted $name (default dict $runtime.image) }}{{ end -}}
{{- end -}}
{{- if $cache.enabled }}{{ $_ := set $wanted "torch-distributed-with-cache" dict }}{{ end -}}
{{- toYaml $wanted -}}
{{- end }}

{{/* An image such as ghcr.io/owner/name:tag, given as image, with those of registry, repository and tag that "with" has. */}}
{{- define "trainjob-operator.imageWith" -}}
{{- $registry := splitList "/" .image | first -}}
{{- $rest := trimPrefix (printf "%s/" $registry) .image -}}
{{- $repository := splitList ":" $rest | first -}}
{{- $tag := splitList ":" $rest | last -}}
{{- printf "%s/%s:%s" (default $registry .with.registry) (default $repository .with.repository) (default $tag .with.tag) -}}
{{- end }}

{{/*
Puts the numbers of an alert into its rule, which is one of a file that Prometheus could read as it is. Each number has its place in the expression:
the first comparison has the threshold, for instance.
*/}}
{{- define "trainjob-operator.tuneAlert" -}}
{{- $rule := .rule -}}
{{- $places := dict
  "threshold" "(?s)^(.*?[<>] )[0-9.]+"
  "rate" "(?s)(and .*[<>] )[0-9.]+"
  "objective" "(le=~\")[0-9.]+"
  "window" "(offset |\\[)[0-9]+[a-z]+"
  "stop" "(lane=\"stop\"}\\) > )[0-9.]+"
  "live" "(lane=\"live\"}\\) > )[0-9.]+"
  "cleanup" "(lane=\"cleanup\"}\\) > )[0-9.]+"
-}}
{{- range $name, $number := .numbers -}}
{{- if eq $name "for" -}}
{{- $_ := set $rule "for" $number -}}
{{- else -}}
{{- /* Helm reads numbers as floats, and would write large ones with an exponent. */ -}}
{{- if kindIs "float64" $number }}{{ $number = ternary (int64 $number) $number (eq $number (floor $number)) }}{{ end -}}
{{- $_ := set $rule "expr" (regexReplaceAll (get $places $name) $rule.expr (printf "${1}%v" $number)) -}}
{{- end -}}
{{- end -}}
{{- end }}
