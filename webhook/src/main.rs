//! The admission server for `TrainJob` and the two runtime kinds.
//!
//! # What it will be
//!
//! A process of its own, separate from the operator, so that admission stays up while the operator
//! restarts (and the other way round). It terminates TLS, reads an `AdmissionReview`, asks the pure
//! functions of `trainjob_core` for defaults and verdicts, and answers. It holds no state but a watch
//! cache of runtimes, needs no leader, and serves from any number of replicas.
//!
//! # What it is in this release
//!
//! Not there yet: the binary says so and ends with exit code 1, so that nobody registers webhooks
//! against it by mistake. The CRD schema (including its CEL rules) is what checks objects until then,
//! and the operator acts safely on whatever the schema admits.

use std::process::ExitCode;

fn main() -> ExitCode {
    let refusal =
        "trainjob-webhook: admission is not part of this release; do not register webhooks for it";
    let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{refusal}\n").as_bytes());
    ExitCode::FAILURE
}
