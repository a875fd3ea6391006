//! Fields that are refused, and how.

/// The fields, and what is said of them.
pub(crate) const BAD_FIELDS: &[(&str, &str)] = &[
    // Unknown and repeated fields, at each level.
    (
        "lifecyle: {}",
        "lifecyle: unknown field `lifecyle`, expected one of `apiVersion`, `kind`, `webhook`, \
         `leaderElection`, `metrics`, `health`, `controller`, `certManagement`, `clientConnection`, \
         `statusServer`, `featureGates`, `tls`, `lifecycle`, `accounting`, `certificates`",
    ),
    (
        "lifecycle: {events: {normal: ~}}",
        "lifecycle.events.normal: unknown field `normal`, expected `normalPerSecond` or `normalBurst`",
    ),
    (
        "accounting: {mode: Always}",
        "accounting.mode: unknown value `Always`, expected one of `Off`, `Observe`, `Exact`",
    ),
    ("webhook: {ports: 1}", "webhook.ports: unknown field `ports`, expected `port` or `host`"),
    ("metrics: {auth: {on: true}}", "metrics.auth.on: unknown field `on`, expected `enabled`"),
    ("kind: Configuration", "kind: given again at line 3, column 1, expected once"),
    (
        "webhook: {port: 1, port: 1}",
        "webhook.port: given again at line 3, column 20, expected once",
    ),
    (
        "controller: {groupKindConcurrency: {a: 1, a: 2}}",
        "controller.groupKindConcurrency.a: given again at line 3, column 43, expected once",
    ),
    // A key must not make a second line.
    ("webhook: {\"a\\nb\": 1}", "webhook.a\\nb: unknown field `a\\nb`, expected `port` or `host`"),
    // Types.
    ("webhook: 3", "webhook: invalid type: integer `3`, expected a section of named fields"),
    (
        "webhook: [9443, host]",
        "webhook: invalid type: sequence, expected a section of named fields",
    ),
    ("webhook: {host: 1}", "webhook.host: invalid type: integer `1`, expected a string"),
    (
        "certManagement: {enable: 'true'}",
        "certManagement.enable: invalid type: string \"true\", expected a boolean",
    ),
    (
        "controller: {groupKindConcurrency: 5}",
        "controller.groupKindConcurrency: invalid type: integer `5`, expected a map",
    ),
    (
        "tls: {minVersion: 1.2}",
        "tls.minVersion: invalid type: floating point `1.2`, expected a string",
    ),
    (
        "tls: {cipherSuites: [a, 1]}",
        "tls.cipherSuites[1]: invalid type: integer `1`, expected a string",
    ),
    // Numbers.
    (
        "webhook: {port: 0}",
        "webhook.port: invalid value: integer `0`, expected a whole number between 1 and 65535",
    ),
    (
        "webhook: {port: 65536}",
        "webhook.port: invalid value: integer `65536`, expected a whole number between 1 and 65535",
    ),
    (
        "statusServer: {port: 1.5}",
        "statusServer.port: invalid type: floating point `1.5`, expected a whole number between 1 and \
         65535",
    ),
    (
        "controller: {groupKindConcurrency: {TrainJob.trainer.kubeflow.org: 0}}",
        "controller.groupKindConcurrency.TrainJob.trainer.kubeflow.org: invalid value: integer `0`, \
         expected a whole number between 1 and 2147483647",
    ),
    (
        "clientConnection: {qps: -1}",
        "clientConnection.qps: invalid value: integer `-1`, expected 0 or a number between 0.001 and \
         1000000",
    ),
    (
        "clientConnection: {qps: 0.0001}",
        "clientConnection.qps: invalid value: floating point `0.0001`, expected 0 or a number between \
         0.001 and 1000000",
    ),
    (
        "statusServer: {qps: .inf}",
        "statusServer.qps: invalid type: string \".inf\", expected 0 or a number between 0.001 and \
         1000000",
    ),
    (
        "clientConnection: {burst: -1}",
        "clientConnection.burst: invalid value: integer `-1`, expected a whole number between 0 and \
         2147483647",
    ),
    (
        "lifecycle: {defaultTTLSecondsAfterFinished: 2147483648}",
        "lifecycle.defaultTTLSecondsAfterFinished: invalid value: integer `2147483648`, expected a \
         whole number between 0 and 2147483647",
    ),
    (
        "lifecycle: {maximumActiveDeadlineSeconds: 0}",
        "lifecycle.maximumActiveDeadlineSeconds: invalid value: integer `0`, expected a whole number \
         between 1 and 2147483647",
    ),
    (
        "lifecycle: {defaultTTLSecondsAfterFinished: 61, maximumTTLSecondsAfterFinished: 60}",
        "lifecycle.defaultTTLSecondsAfterFinished: 61, expected at most \
         maximumTTLSecondsAfterFinished, 60",
    ),
    // Words.
    (
        "lifecycle: {deadlineClock: Started}",
        "lifecycle.deadlineClock: unknown value `Started`, expected `Creation` or `LastResume`",
    ),
    (
        "lifecycle: {fieldUpdates: mutable}",
        "lifecycle.fieldUpdates: unknown value `mutable`, expected `Immutable` or `Mutable`",
    ),
    (
        "lifecycle: {deletionPropagation: Orphan}",
        "lifecycle.deletionPropagation: unknown value `Orphan`, expected `Foreground` or `Background`",
    ),
    (
        "leaderElection: {resourceLock: endpoints}",
        "leaderElection.resourceLock: unknown value `endpoints`, expected `` or `leases`",
    ),
    // Addresses, names, times.
    (
        "health: {healthProbeBindAddress: 0}",
        "health.healthProbeBindAddress: invalid type: integer `0`, expected \"0\", :port or \
         address:port, such as 127.0.0.1:8081 or [::1]:8081",
    ),
    (
        "metrics: {bindAddress: example.com:80}",
        "metrics.bindAddress: invalid value: string \"example.com:80\", expected \"0\", :port or \
         address:port, such as 127.0.0.1:8081 or [::1]:8081",
    ),
    (
        "health: {livenessEndpointName: a b}",
        "health.livenessEndpointName: invalid value: string \"a b\", expected letters, digits and \
         -._~/, such as readyz",
    ),
    (
        "leaderElection: {leaseDuration: 15}",
        "leaderElection.leaseDuration: invalid type: integer `15`, expected a length of time such as \
         15s or 1m30s",
    ),
    (
        "leaderElection: {retryPeriod: -2s}",
        "leaderElection.retryPeriod: invalid value: string \"-2s\", expected a length of time such as \
         15s or 1m30s",
    ),
    // Fields that contradict each other.
    (
        "health: {readinessEndpointName: healthz}",
        "health.readinessEndpointName: `healthz` is the liveness endpoint, expected another name",
    ),
    (
        "leaderElection: {leaderElect: true, leaseDuration: 10s}",
        "leaderElection.renewDeadline: 10s is too long, expected less than leaseDuration, 10s",
    ),
    (
        "leaderElection: {leaderElect: true, retryPeriod: 9s}",
        "leaderElection.retryPeriod: 9s, expected more than 0 and less than 5/6 of renewDeadline, 10s",
    ),
    (
        "metrics: {secureServing: false, auth: {enabled: true}}",
        "metrics.auth.enabled: true, but metrics.secureServing is false, expected both true or this \
         false",
    ),
    // Features.
    (
        "featureGates: {TrainJobStatus: true}",
        "featureGates.TrainJobStatus: the status server is not part of this release, expected false",
    ),
    (
        "featureGates: {AllAlpha: true}",
        "featureGates.AllAlpha: the status server is not part of this release, expected false",
    ),
    (
        "featureGates: {Other: false}",
        "featureGates.Other: unknown feature gate `Other`, expected one of `TrainJobStatus`, \
         `AllAlpha`, `AllBeta`",
    ),
    (
        "featureGates: {AllBeta: 1}",
        "featureGates.AllBeta: invalid type: integer `1`, expected a boolean",
    ),
    // YAML itself.
    ("tls: [", "tls: not valid YAML: unclosed bracket '[' at line 3, column 6"),
    ("---\ntls: {}", "a second YAML document at line 4, column 1, expected one"),
    // The admission server.
    (
        "webhook: {host: localhost.example}",
        "webhook.host: not an IP address, expected one, such as 127.0.0.1, localhost, or nothing",
    ),
    (
        "tls: {nextProtos: [spdy]}",
        "tls.nextProtos: none of them is known, expected some of h2, http/1.1",
    ),
    (
        "tls: {cipherSuites: [TLS_RSA_WITH_RC4_128_SHA]}",
        "tls.cipherSuites: none of them is known, expected some of \
         TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, \
         TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, \
         TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    ),
    (
        "certificates: {pollInterval: 11s}",
        "certificates.pollInterval: 11s, expected from 50ms to 10s",
    ),
    (
        "certificates: {names: [a b]}",
        "certificates.names[0]: invalid value: string \"a b\", expected a DNS name or an IP address, \
         such as webhook.example.com",
    ),
    (
        "certificates: {lifetime: 179h, renewBefore: 90h}",
        "certificates.lifetime: 644400s, expected at least twice renewBefore, 324000s",
    ),
    (
        "certificates: {authorityLifetime: 1m, lifetime: 1h, renewBefore: 31s}",
        "certificates.authorityLifetime: 60s, expected at least twice renewBefore, 31s",
    ),
    (
        "certificates: {renewBefore: 5m, bundleLead: 5m}",
        "certificates.bundleLead: 300s, expected less than renewBefore, 300s",
    ),
];
