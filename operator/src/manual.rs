//! What the manual page of the operator says that is not true of both programs.

use trainjob_process::Manual;

/// The operator's part of `--help`.
pub const MANUAL: Manual = Manual {
    description: "\
Makes a JobSet for each TrainJob, from its runtime, and mirrors in the TrainJob what becomes of it.
Fails a TrainJob whose activeDeadlineSeconds have passed, deletes its JobSet, and keeps at it until
the last Pod is gone. Deletes a finished TrainJob when its ttlSecondsAfterFinished have passed.

It keeps nothing on disk: whatever happens to it, the next start goes on where the cluster is. With
leaderElection in the configuration several replicas may run, of which one acts; without it, one.",
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
