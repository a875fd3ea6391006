//! What the manual page of the accounting program says that is not true of all programs.

use trainjob_process::Manual;

/// The accounting program's part of `--help`.
pub const MANUAL: Manual = Manual {
    description: "\
Counts every Pod of a TrainJob once, into a TrainJobRecord that stays when the TrainJob is gone.
Which Pods are counted is for the operator to say, which marks them.

It keeps nothing on disk. Several replicas may run, of which one acts.",
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
