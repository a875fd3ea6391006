//! Flags, and the file that they name.

use std::fs;

use trainjob_process::{
    Manual, Program,
    config::{Flags, FlagsError, load},
    logging::{Format, Options},
};

use super::HEADER;

const PROGRAM: Program = Program {
    name: "trainjob-operator",
    about: "The controller of TrainJobs.",
    metrics: "trainjob_operator",
    kinds: &[],
    threads: None,
    flags: &[],
    manual: MANUAL,
};
const MANUAL: Manual = Manual {
    description: "It works.",
    servers: &[],
    files: &[],
    environment: &[],
    stopping: "",
    failures: &[],
};

fn flags(args: &[&str]) -> Result<Flags, String> {
    Flags::read(PROGRAM, [PROGRAM.name].iter().chain(args)).map_err(|error| match error {
        FlagsError::Answer(answer) => format!("answer: {answer}"),
        FlagsError::Invalid(message) => message,
    })
}

#[test]
fn the_feature_gate_of_the_flag_is_applied_after_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.yaml");
    let refused = "TrainJobStatus: the status server is not part of this release, expected false";
    for (in_file, flag, expected) in [
        ("{}", "", Ok(())),
        ("{TrainJobStatus: false}", "AllBeta=true", Ok(())),
        ("{TrainJobStatus: true}", "TrainJobStatus=false", Ok(())),
        ("{AllAlpha: true}", "AllAlpha=false", Ok(())),
        ("{AllAlpha: true}", "TrainJobStatus=false", Ok(())),
        ("{TrainJobStatus: false}", "AllAlpha=true", Ok(())),
        ("{TrainJobStatus: false}", "TrainJobStatus=true", Err(refused.to_owned())),
        ("{}", "AllAlpha=T", Err(refused.replace("TrainJobStatus", "AllAlpha"))),
    ] {
        fs::write(&path, format!("{HEADER}featureGates: {in_file}\n")).unwrap();
        let config = format!("--config={}", path.display());
        let flags = flags(&[&config, &format!("--feature-gates={flag}")]).unwrap();
        let loaded = load(&flags).map(drop).map_err(|error| error.to_string());
        let expected = expected.map_err(|error| format!("--feature-gates: {error}"));
        assert_eq!(loaded, expected, "{in_file} {flag}");
    }
}

#[test]
fn paths_may_be_given_and_left_empty() {
    let given = flags(&["--config", "a.yaml", "--kubeconfig=b"]).unwrap();
    assert_eq!((given.config, given.kubeconfig), (Some("a.yaml".into()), Some("b".into())));
    for args in [&[][..], &["--config=", "--kubeconfig="], &["--config=a", "--config", ""]] {
        let none = flags(args).unwrap();
        assert_eq!((none.config, none.kubeconfig), (None, None), "{args:?}");
    }
}

#[test]
fn logging_flags_are_trainers_and_the_operators_own_go_first() {
    use tracing::level_filters::LevelFilter;
    for (args, format, level) in [
        (&[][..], Format::Json, LevelFilter::INFO),
        (&["--log-format=text", "--log-level=warn"], Format::Text, LevelFilter::WARN),
        (&["--log-level", "error", "--log-level", "trace"], Format::Json, LevelFilter::TRACE),
        (&["--zap-devel"], Format::Text, LevelFilter::DEBUG),
        (&["--zap-devel=true", "--zap-encoder=json"], Format::Json, LevelFilter::DEBUG),
        (&["--zap-devel=0"], Format::Json, LevelFilter::INFO),
        (&["--zap-encoder=console"], Format::Text, LevelFilter::INFO),
        (&["--zap-encoder=console", "--log-format=json"], Format::Json, LevelFilter::INFO),
        (&["--zap-log-level=0"], Format::Json, LevelFilter::INFO),
        (&["--zap-log-level=2"], Format::Json, LevelFilter::DEBUG),
        (&["--zap-log-level=4"], Format::Json, LevelFilter::DEBUG),
        (&["--zap-log-level", "5"], Format::Json, LevelFilter::TRACE),
        (&["--zap-log-level=error"], Format::Json, LevelFilter::ERROR),
        (&["--zap-log-level=panic", "--log-level=info"], Format::Json, LevelFilter::INFO),
        (
            &["--zap-stacktrace-level=error", "--zap-time-encoding=epoch"],
            Format::Json,
            LevelFilter::INFO,
        ),
    ] {
        assert_eq!(flags(args).unwrap().logging, Options { format, level }, "{args:?}");
    }
}

#[test]
fn a_bad_flag_is_refused_in_one_line() {
    for (args, expected) in [
        (&["--confg=x"][..], "unexpected argument '--confg' found, expected perhaps '--config'"),
        (&["file"], "unexpected argument 'file' found"),
        (&["--config"], "a value is required for '--config <FILE>' but none was supplied"),
        (
            &["--log-format=xml"],
            "invalid value 'xml' for '--log-format <FORMAT>' [possible values: json, text]",
        ),
        (
            &["--zap-log-level=-1"],
            "invalid value '-1' for '--zap-log-level <LEVEL>': expected debug, info, warn, error, \
             panic or a number from 0",
        ),
        (
            &["--zap-devel=maybe"],
            "invalid value 'maybe' for '--zap-devel[=<BOOLEAN>]': unknown value \"maybe\", expected \
             true or false",
        ),
        (
            &["--feature-gates=AllAlpha"],
            "invalid value 'AllAlpha' for '--feature-gates <GATES>': no value for `AllAlpha`, expected \
             AllAlpha=true or false",
        ),
        (
            &["--feature-gates", "AllBeta=true,Other=true"],
            "invalid value 'AllBeta=true,Other=true' for '--feature-gates <GATES>': unknown feature \
             gate `Other`, expected one of `TrainJobStatus`, `AllAlpha`, `AllBeta`",
        ),
    ] {
        assert_eq!(flags(args).unwrap_err(), expected, "{args:?}");
    }
}

#[test]
fn help_and_version_are_answers() {
    assert!(flags(&["--help"]).unwrap_err().starts_with("answer: The controller of TrainJobs"));
    let version = format!("answer: trainjob-operator {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(flags(&["--version"]).unwrap_err(), version);
}
