//! The configuration as a user gives it: a file, and flags.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

#[path = "config/bad_fields.rs"]
mod bad_fields;
#[path = "config/flags.rs"]
mod flags;
#[path = "config/unusable_files.rs"]
mod unusable_files;

use std::{
    fs,
    num::{NonZeroU32, NonZeroUsize},
    path::{Path, PathBuf},
    time::Duration,
};

use rustls::{ProtocolVersion, SupportedCipherSuite, crypto::ring::DEFAULT_CIPHER_SUITES};
use trainjob_api::crd::FieldUpdates;
use trainjob_core::{
    admission::limits::ClusterLimits,
    lease::Times,
    lifecycle::deadline::Clock,
    mark::Mode,
    observed::{Propagation, Settings},
};
use trainjob_process::{
    config::{
        Accounting, Admission, Config, Flags, LeaderElection, MetricsServer, Rate, Tls,
        admission::{CertificateSource, SelfManaged},
        load,
    },
    health::Endpoints,
};

const DAY: Duration = Duration::from_hours(24);
const HEADER: &str = "apiVersion: config.trainer.kubeflow.org/v1alpha1\nkind: Configuration\n";

fn defaults() -> Config {
    Config {
        settings: Settings {
            deadline_clock: Clock::Creation,
            deletion_propagation: Propagation::Foreground,
            ttl_for_managed_elsewhere: false,
            deadline_warning: 600,
            maximum_hold: 2_592_000,
        },
        concurrency: NonZeroUsize::new(64).unwrap(),
        manifest_memory: 16 << 20,
        rate_limit: None,
        leader_election: None,
        health_address: Some("[::]:8081".parse().unwrap()),
        health_endpoints: Endpoints { ready: "/readyz".into(), live: "/healthz".into() },
        metrics: Some(MetricsServer {
            address: "[::]:8443".parse().unwrap(),
            tls: true,
            auth: true,
        }),
        nearest_deadlines: 100,
        job_namespaces: 0,
        clock_jump_pause: Duration::from_mins(10),
        normal_events: rate(5.0, 50),
        accounting: accounting(Mode::Off, "trainjob-accounting", None),
        admission: Admission {
            address: "[::]:9443".parse().unwrap(),
            certificate: CertificateSource::SelfManaged(own_certificates()),
            tls: Tls {
                min_version: ProtocolVersion::TLSv1_2,
                suites: DEFAULT_CIPHER_SUITES.to_vec(),
                protocols: vec!["h2", "http/1.1"],
            },
            field_updates: FieldUpdates::Immutable,
            limits: ClusterLimits::default(),
        },
        warnings: Vec::new(),
    }
}

fn accounting(mode: Mode, lease: &str, namespace: Option<&str>) -> Accounting {
    Accounting { mode, lease_name: lease.into(), lease_namespace: namespace.map(Into::into) }
}

fn own_certificates() -> SelfManaged {
    SelfManaged {
        service: "kubeflow-trainer-controller-manager".into(),
        secret: "kubeflow-trainer-webhook-cert".into(),
        names: Vec::new(),
        authority_lifetime: DAY * 3_650,
        lifetime: DAY * 365,
        renew_before: DAY * 90,
        bundle_lead: Duration::from_mins(5),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "a rate is wanted where there may be none")]
fn rate(per_second: f64, burst: u32) -> Option<Rate> {
    Some(Rate { per_second, burst: NonZeroU32::new(burst).unwrap() })
}

/// What a file with this text gives; the error without the folder of the file.
fn text(yaml: &str) -> Result<Config, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.yaml");
    fs::write(&path, yaml).unwrap();
    let folder = format!("{}/", folder.path().display());
    file(&path).map_err(|error| error.replace(&folder, ""))
}

/// What a file with these fields gives.
fn fields(yaml: &str) -> Result<Config, String> {
    text(&format!("{HEADER}{yaml}\n"))
}

fn file(path: &Path) -> Result<Config, String> {
    let flags = Flags { config: Some(path.to_owned()), ..Flags::default() };
    load(&flags).map_err(|error| error.to_string())
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config").join(name)
}

#[test]
fn without_a_file_and_with_an_empty_one_everything_has_its_default() {
    assert_eq!(load(&Flags::default()).unwrap(), defaults());
    assert_eq!(fields("").unwrap(), defaults());
}

#[test]
fn a_section_or_field_that_is_null_is_as_if_it_were_absent() {
    let sections = [
        "webhook",
        "leaderElection",
        "metrics",
        "health",
        "controller",
        "certManagement",
        "clientConnection",
        "statusServer",
        "featureGates",
        "tls",
        "lifecycle",
        "certificates",
    ];
    let nulls: Vec<_> = sections.iter().map(|name| format!("{name}:\n")).collect();
    assert_eq!(fields(&nulls.concat()).unwrap(), defaults());
    let fields = fields(
        "health: {healthProbeBindAddress: ~, readinessEndpointName: ~}\n\
         controller: {groupKindConcurrency: ~}\n\
         lifecycle: {deadlineClock: ~, events: {normalPerSecond: ~}}",
    );
    assert_eq!(fields.unwrap(), defaults());
}

#[test]
fn the_file_that_trainer_ships_is_taken_with_two_warnings() {
    let expected = Config {
        concurrency: NonZeroUsize::new(5).unwrap(),
        rate_limit: rate(50.0, 100),
        leader_election: Some(trainers_election()),
        warnings: [
            "statusServer: read and checked, but without effect in this release",
            "clientConnection: the operator's requests are limited to Trainer's 50 a second, with bursts of 100; \
             without this section there is no limit",
        ]
        .map(str::to_owned)
        .into(),
        ..defaults()
    };
    assert_eq!(file(&data("trainer.yaml")).unwrap(), expected);
}

#[test]
fn every_field_is_read() {
    let expected = Config {
        settings: Settings {
            deadline_clock: Clock::LastResume,
            deletion_propagation: Propagation::Background,
            ttl_for_managed_elsewhere: true,
            deadline_warning: 1_800,
            maximum_hold: 600,
        },
        concurrency: NonZeroUsize::new(7).unwrap(),
        manifest_memory: 3 << 20,
        rate_limit: rate(12.5, 20),
        leader_election: Some(LeaderElection {
            times: Times {
                lease_duration: Duration::from_secs(90),
                renew_deadline: Duration::from_secs(75),
                retry_period: Duration::from_millis(100),
            },
            name: "another.example.com".into(),
            namespace: Some("elsewhere".into()),
        }),
        health_address: Some("[::1]:9091".parse().unwrap()),
        health_endpoints: Endpoints { ready: "/ready".into(), live: "/live".into() },
        metrics: Some(MetricsServer {
            address: "127.0.0.1:9090".parse().unwrap(),
            tls: false,
            auth: false,
        }),
        nearest_deadlines: 7,
        job_namespaces: 20,
        clock_jump_pause: Duration::from_secs(90),
        normal_events: rate(0.25, 1),
        accounting: accounting(Mode::Exact, "counts", Some("elsewhere")),
        admission: Admission {
            address: "10.0.0.1:1".parse().unwrap(),
            certificate: CertificateSource::Files {
                directory: "/certificates".into(),
                poll_interval: Duration::from_millis(100),
            },
            tls: Tls {
                min_version: ProtocolVersion::TLSv1_3,
                suites: of_tls_13(),
                protocols: vec!["h2", "http/1.1"],
            },
            field_updates: FieldUpdates::Mutable,
            limits: ClusterLimits {
                default_ttl: Some(3_600),
                maximum_ttl: Some(7_200),
                maximum_deadline: Some(86_400),
            },
        },
        warnings: vec![
            "statusServer: read and checked, but without effect in this release".to_owned(),
        ],
    };
    assert_eq!(file(&data("complete.yaml")).unwrap(), expected);
}

#[test]
fn a_certificate_of_its_own_is_as_the_file_wants_it() {
    let given = "certManagement: {webhookServiceName: s, webhookSecretName: ''}\n\
                 certificates: {names: [\"::1\"], lifetime: 30s, renewBefore: 10s, bundleLead: 1s}";
    let expected = SelfManaged {
        service: "s".into(),
        names: vec!["::1".into()],
        lifetime: Duration::from_secs(30),
        renew_before: Duration::from_secs(10),
        bundle_lead: Duration::from_secs(1),
        ..own_certificates()
    };
    let certificate = fields(given).unwrap().admission.certificate;
    assert_eq!(certificate, CertificateSource::SelfManaged(expected));
}

/// What Kubeflow Trainer's controller manager holds, in the namespace of the process.
fn trainers_election() -> LeaderElection {
    let times = Times {
        lease_duration: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        retry_period: Duration::from_secs(2),
    };
    LeaderElection { times, name: "trainer.kubeflow.org".into(), namespace: None }
}

#[test]
fn a_leader_is_elected_only_where_the_file_wants_one() {
    for (given, expected) in [
        ("{}", None),
        ("{leaderElect: false}", None),
        ("{resourceName: other}", None),
        ("{leaderElect: true}", Some(trainers_election())),
        // What Go leaves empty is absent.
        (
            "{leaderElect: true, resourceLock: '', resourceName: '', resourceNamespace: ''}",
            Some(trainers_election()),
        ),
        (
            "{leaderElect: true, resourceName: other, resourceNamespace: ns}",
            Some(LeaderElection {
                name: "other".into(),
                namespace: Some("ns".into()),
                ..trainers_election()
            }),
        ),
    ] {
        let config = fields(&format!("leaderElection: {given}")).unwrap();
        assert_eq!(config, Config { leader_election: expected, ..defaults() }, "{given}");
    }
}

fn of_tls_13() -> Vec<SupportedCipherSuite> {
    let is_tls_13 = |suite: &&SupportedCipherSuite| suite.tls13().is_some();
    DEFAULT_CIPHER_SUITES.iter().filter(is_tls_13).copied().collect()
}

#[test]
fn json_is_yaml() {
    let json = r#"{"apiVersion":"config.trainer.kubeflow.org/v1alpha1","kind":"Configuration",
        "health":{"healthProbeBindAddress":"0"}}"#;
    assert_eq!(text(json).unwrap(), Config { health_address: None, ..defaults() });
}

#[test]
fn the_health_server_listens_where_it_is_told() {
    for (given, expected) in [
        ("'0'", None),
        ("''", Some("[::]:8081")),
        (":9000", Some("[::]:9000")),
        (":0", Some("[::]:0")),
        ("0.0.0.0:9000", Some("0.0.0.0:9000")),
        ("localhost:9000", Some("127.0.0.1:9000")),
        ("'[::1]:9000'", Some("[::1]:9000")),
    ] {
        let config = fields(&format!("health: {{healthProbeBindAddress: {given}}}")).unwrap();
        assert_eq!(config.health_address, expected.map(|a| a.parse().unwrap()), "{given}");
    }
}

#[test]
fn metrics_are_served_over_tls_to_the_authorized_unless_the_file_says_otherwise() {
    for (given, expected) in [
        ("{}", Some(("[::]:8443", true, true))),
        ("{bindAddress: ':9000'}", Some(("[::]:9000", true, true))),
        ("{secureServing: false}", Some(("[::]:8443", false, false))),
        ("{secureServing: false, auth: {}}", Some(("[::]:8443", false, false))),
        ("{auth: {enabled: true}}", Some(("[::]:8443", true, true))),
        ("{secureServing: true, auth: {enabled: false}}", Some(("[::]:8443", true, false))),
        ("{bindAddress: '0'}", None),
    ] {
        let config = fields(&format!("metrics: {given}")).unwrap();
        let served = config.metrics.map(|it| (it.address.to_string(), it.tls, it.auth));
        let expected = expected.map(|(address, tls, auth)| (address.to_owned(), tls, auth));
        assert_eq!(served, expected, "{given}");
        assert_eq!(config.warnings, [""; 0]);
    }
}

#[test]
fn requests_are_limited_only_where_the_file_says_so() {
    for (given, expected) in [
        ("{}", rate(50.0, 100)),
        ("{qps: 200}", rate(200.0, 100)),
        ("{burst: 7}", rate(50.0, 7)),
        ("{qps: 0.5, burst: 0}", rate(0.5, 1)),
        ("{qps: 0, burst: 7}", None),
    ] {
        let config = fields(&format!("clientConnection: {given}")).unwrap();
        assert_eq!(config.rate_limit, expected, "{given}");
        let warned = config.warnings.iter().any(|warning| warning.contains("Trainer's 50"));
        assert_eq!(warned, expected == rate(50.0, 100), "{given}");
    }
}

#[test]
fn normal_events_can_be_switched_off() {
    for given in ["{normalPerSecond: 0}", "{normalBurst: 0}"] {
        let config = fields(&format!("lifecycle: {{events: {given}}}")).unwrap();
        assert_eq!(config.normal_events, None, "{given}");
    }
}

#[test]
fn what_upstream_warns_of_is_a_warning_here() {
    for (given, expected) in [
        (
            "tls: {minVersion: '2.0'}",
            vec![
                "tls.minVersion: unknown version \"2.0\", expected one of 1.0, 1.1, 1.2, 1.3; ignored"
                    .to_owned(),
            ],
        ),
        ("tls: {minVersion: '1.2', cipherSuites: []}", vec![]),
        (
            "controller: {groupKindConcurrency: {TrainJobs: 3}}",
            vec![
                "controller.groupKindConcurrency[\"TrainJobs\"]: unknown kind, ignored; the one that \
                 counts is TrainJob.trainer.kubeflow.org"
                    .to_owned(),
            ],
        ),
        ("leaderElection: {leaderElect: false, leaseDuration: 1s}", vec![]),
    ] {
        assert_eq!(fields(given).unwrap(), Config { warnings: expected, ..defaults() }, "{given}");
    }
}

#[test]
fn a_bad_field_is_refused_in_one_line_that_says_what_would_be_right() {
    for (given, expected) in bad_fields::BAD_FIELDS {
        assert_eq!(fields(given).unwrap_err(), format!("config.yaml: {expected}"), "{given}");
    }
}
