//! Every switch of the chart, both ways: what is rendered is what an API server takes.

/// A target of the retention engine.
const TARGET: &str = "retention.targets[0].apiGroup=batch,retention.targets[0].kind=Job,retention.targets[0].resource=jobs";

/// What a `PodMonitor` needs: unlike a `ServiceMonitor`, it cannot name the token of Prometheus' own account.
const TOKEN: &str = "metrics.podMonitor.authorization.credentials.name=token,metrics.podMonitor.authorization.credentials.key=token";

/// What is changed of the values, by what it is for. The defaults are the other way of each.
pub(super) const SWITCHES: &[(&str, &[&str])] = &[
    ("the defaults", &[]),
    ("definitions of somebody else", &["crds.enabled=false"]),
    ("fields that may change", &["manager.config.lifecycle.fieldUpdates=Mutable"]),
    ("a webhook with a URL", &["webhook.url=https://hook.example.com:9443/base/"]),
    ("a webhook that may fail", &["webhook.failurePolicy=Ignore"]),
    ("a certificate of one's own", &["manager.config.certManagement.enable=false"]),
    (
        "a certificate of cert-manager",
        &["manager.config.certManagement.enable=false", "webhook.certManager.enabled=true"],
    ),
    (
        "a certificate of cert-manager for a URL, by an issuer that is there",
        &[
            "manager.config.certManagement.enable=false",
            "webhook.certManager.enabled=true",
            "webhook.certManager.issuerRef.name=company",
            "webhook.url=https://127.0.0.1:9443",
        ],
    ),
    (
        "names of one's own",
        &[
            "fullnameOverride=trainer",
            "manager.config.certManagement.webhookServiceName=hook",
            "manager.config.certManagement.webhookSecretName=hook",
        ],
    ),
    (
        "permissions of somebody else",
        &[
            "rbac.create=false",
            "rbac.aggregate.enabled=false",
            "manager.serviceAccount.create=false",
            "webhook.serviceAccount.create=false",
            "publicInfo.enabled=false",
        ],
    ),
    (
        "permissions for more people",
        &[
            "rbac.aggregate.kubeflow=true",
            "rbac.aggregate.editRuntimes=true",
            "rbac.clusterRuntimesForAll=true",
        ],
    ),
    ("every runtime", &["runtimes.defaultEnabled=true"]),
    (
        "a runtime from a mirror",
        &[
            "runtimes.xgboostDistributed.enabled=true",
            "runtimes.xgboostDistributed.image.registry=mirror.example:5000",
        ],
    ),
    (
        "a runtime with a cache",
        &[
            "dataCache.enabled=true",
            "dataCache.runtimes.torchDistributedWithCache.enabled=true",
            "dataCache.namespaces={default,kube-public}",
        ],
    ),
    (
        "an API server that does not reach Pods",
        &[
            "webhook.hostNetwork=true",
            "webhook.dnsPolicy=Default",
            "webhook.strategy.type=Recreate",
            "manager.hostNetwork=true",
            "manager.strategy.rollingUpdate.maxSurge=0",
        ],
    ),
    (
        "admission in some namespaces, and quickly",
        &["webhook.timeoutSeconds=3", "webhook.namespaceSelector.matchLabels.team=yes"],
    ),
    ("no protection of the label of MultiKueue", &["multiKueueOrigin.enabled=false"]),
    (
        "the label of MultiKueue for other people",
        &[
            "multiKueueOrigin.users={system:serviceaccount:queues:remote}",
            "multiKueueOrigin.groups=[]",
        ],
    ),
    (
        "limits of TTL and deadline",
        &[
            "manager.config.lifecycle.defaultTTLSecondsAfterFinished=3600",
            "manager.config.lifecycle.maximumTTLSecondsAfterFinished=86400",
            "manager.config.lifecycle.maximumActiveDeadlineSeconds=604800",
        ],
    ),
    ("network policies", &["networkPolicy.enabled=true"]),
    (
        "network policies for one way",
        &["networkPolicy.enabled=true", "networkPolicy.egress.enabled=false"],
    ),
    ("a ServiceMonitor", &["metrics.serviceMonitor.enabled=true"]),
    ("a PodMonitor", &["metrics.podMonitor.enabled=true", TOKEN]),
    (
        "a PodMonitor for metrics that everybody may read",
        &["metrics.podMonitor.enabled=true", "manager.config.metrics.secureServing=false"],
    ),
    (
        "a ServiceMonitor that verifies",
        &[
            "metrics.serviceMonitor.enabled=true",
            "metrics.serviceMonitor.tlsConfig.ca.secret.name=ca,metrics.serviceMonitor.tlsConfig.ca.secret.key=ca.crt",
            "metrics.serviceMonitor.authorization.credentials.name=token,metrics.serviceMonitor.authorization.credentials.key=token",
        ],
    ),
    ("alerts", &["metrics.prometheusRule.enabled=true"]),
    ("dashboards", &["metrics.dashboards.enabled=true"]),
    ("no metrics", &["manager.config.metrics.bindAddress=\"0\""]),
    ("metrics without TLS", &["manager.config.metrics.secureServing=false"]),
    ("metrics over TLS for everybody", &["manager.config.metrics.auth.enabled=false"]),
    (
        "no budgets",
        &["manager.podDisruptionBudget.enabled=false", "webhook.podDisruptionBudget.enabled=false"],
    ),
    ("one replica", &["manager.replicas=1", "manager.config.leaderElection.leaderElect=false"]),
    (
        "a Lease of one's own, elsewhere",
        &[
            "manager.config.leaderElection.resourceName=ours",
            "manager.config.leaderElection.resourceNamespace=default",
        ],
    ),
    ("the retention engine", &["retention.enabled=true", TARGET]),
    (
        "the retention engine with everything",
        &[
            "retention.enabled=true",
            TARGET,
            "retention.targets[0].pods=true",
            "retention.targets[0].ownerDelete=true",
            "retention.targets[0].owners[0].apiGroup=jobset.x-k8s.io,retention.targets[0].owners[0].resource=jobsets",
            "retention.authorizePolicyAuthors=true",
            "retention.deletesPerSecond=0",
            "retention.excludedNamespaces={ci,infra}",
            "metrics.prometheusRule.enabled=true",
            "metrics.dashboards.enabled=true",
            "networkPolicy.enabled=true",
        ],
    ),
    ("the accounting program", &["accounting.program=true"]),
    ("the accounting program, switched off", &["accounting.program=true", "accounting.mode=Off"]),
    ("no accounting, by a reader of YAML 1.1", &["accounting.mode=false"]),
    (
        "the accounting program with everything",
        &[
            "accounting.program=true",
            "accounting.mode=Exact",
            "accounting.holdLimit=0",
            "accounting.copyLabels={cost-center,team}",
            "accounting.gpuResources={nvidia.com/gpu,nvidia.com/mig-1g.5gb}",
            "accounting.failureMessages=false",
            "accounting.metrics.byNamespace=false",
            "accounting.drain.abandon=true",
            "manager.config.leaderElection.resourceNamespace=default",
            "metrics.podMonitor.enabled=true",
            TOKEN,
            "metrics.prometheusRule.enabled=true",
            "metrics.dashboards.enabled=true",
            "networkPolicy.enabled=true",
        ],
    ),
    (
        "the accounting program with as little as may be",
        &[
            "accounting.program=true",
            "accounting.replicas=1",
            "accounting.sweeper.enabled=false",
            "accounting.admissionPolicy.enabled=false",
            "accounting.podDisruptionBudget.enabled=false",
            "accounting.serviceAccount.create=false",
            "accounting.serviceAccount.name=counter",
        ],
    ),
    (
        "other ports",
        &[
            "manager.config.health.healthProbeBindAddress=:18081",
            "manager.config.metrics.bindAddress=:18080",
            "manager.config.webhook.port=19443",
        ],
    ),
    ("labels", &["commonLabels.team=ml", "manager.labels.mesh=no", "manager.podAnnotations.a=b"]),
];

/// What must be refused, and a part of what is said then.
pub(super) const MISTAKES: &[(&str, &str)] = &[
    ("manager.replicas=two", "'/manager/replicas': got string, want integer"),
    ("manager.replica=3", "'/manager': additional properties 'replica' not allowed"),
    (
        "manager.config.lifecycle.deadlineClock=Started",
        "'/manager/config/lifecycle/deadlineClock': value must be one of 'Creation', 'LastResume'",
    ),
    (
        "manager.config.leaderElection.leaseDuration=15",
        "'/manager/config/leaderElection/leaseDuration'",
    ),
    (
        "webhook.failurePolicy=fail",
        "'/webhook/failurePolicy': value must be one of 'Fail', 'Ignore'",
    ),
    ("webhook.url=http://hook", "'/webhook/url'"),
    (
        "manager.config.lifecycle.maximumActiveDeadlineSeconds=0",
        "'/manager/config/lifecycle/maximumActiveDeadlineSeconds'",
    ),
    ("multiKueueOrigin.users=kueue", "'/multiKueueOrigin/users': got string, want array"),
    ("retention.enabled=true", "retention.targets: empty"),
    ("manager.dnsPolicy=None", "'/manager/dnsPolicy': value must be one of"),
    (
        "retention.targets[0].kind=Job",
        "'/retention/targets/0': missing properties 'apiGroup', 'resource'",
    ),
    ("retention.concurrency=0", "'/retention/concurrency'"),
    ("accounting.mode=Exact", "accounting.mode: Exact, but accounting.program is false"),
    ("accounting.mode=Observe", "accounting.mode: Observe, but accounting.program is false"),
    (
        "accounting.program=true,accounting.mode=exact",
        "'/accounting/mode': value must be one of '', 'Off', 'Observe', 'Exact', false",
    ),
    ("accounting.holdLimit=5", "'/accounting/holdLimit'"),
    ("accounting.gpuResources=[]", "'/accounting/gpuResources': minItems: got 0, want 1"),
    (
        "manager.config.accounting.mode=Exact",
        "'/manager/config': additional properties 'accounting' not allowed",
    ),
    ("jobset.install=yes please", "jobset.install: yes please, expected true or false"),
    (
        "manager.config.metrics.secureServing=false,manager.config.metrics.auth.enabled=true",
        "'/manager/config/metrics/secureServing'",
    ),
    ("metrics.podMonitor.enabled=true", "metrics.podMonitor.authorization: empty"),
    (
        "dataCache.runtimes.torchDistributedWithCache.enabled=true",
        "expected both true or this false",
    ),
    (
        "metrics.serviceMonitor.enabled=true,metrics.podMonitor.enabled=true",
        "every Pod would be scraped twice",
    ),
];

/// The kinds of others that the chart makes objects of: group, kind and plural.
pub(super) const FOREIGN: [(&str, &str, &str); 5] = [
    ("monitoring.coreos.com", "ServiceMonitor", "servicemonitors"),
    ("monitoring.coreos.com", "PodMonitor", "podmonitors"),
    ("monitoring.coreos.com", "PrometheusRule", "prometheusrules"),
    ("cert-manager.io", "Certificate", "certificates"),
    ("cert-manager.io", "Issuer", "issuers"),
];
