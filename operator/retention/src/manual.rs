//! What the manual page of the retention engine says that is not true of all programs.

use trainjob_process::Manual;

/// The retention engine's part of `--help`.
pub const MANUAL: Manual = Manual {
    description: "\
Deletes finished objects when a RetentionPolicy or a ClusterRetentionPolicy says so. Shows in the
status of a policy what it finds, and what it would delete.

It keeps nothing on disk. With leaderElection in the configuration several replicas may run, of
which one acts; without it, one.

trainjob-retention explain KIND NAME --namespace NAMESPACE says why one object is, or is not,
deleted, and when. It has a page of its own: trainjob-retention explain --help.",
    servers: &[
        ("health", ":8081; /healthz says whether it lives, /readyz whether it can work"),
        ("metrics", "where metrics.bindAddress says; /metrics"),
    ],
    files: &[],
    environment: &[("HOSTNAME", "what it calls itself in the Lease, with a random number")],
    stopping: "readiness starts failing, nothing new is begun, what is under\n\
               way is finished within 20 seconds, the Lease is released, exit\n\
               status 0",
    failures: &[("", "the Lease could not be renewed in time: start it again")],
};
