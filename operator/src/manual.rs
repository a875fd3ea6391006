//! What the manual pages of the operator and of its command say that is not true of all programs.

use trainjob_process::Manual;

/// The operator's part of `--help`.
pub const MANUAL: Manual = Manual {
    description: "\
Makes a JobSet for each TrainJob, from its runtime, and mirrors in the TrainJob what becomes of it.
Fails a TrainJob whose activeDeadlineSeconds have passed, deletes its JobSet, and keeps at it until
the last Pod is gone. Deletes a finished TrainJob when its ttlSecondsAfterFinished have passed.

It keeps nothing on disk: whatever happens to it, the next start goes on where the cluster is. With
leaderElection in the configuration several replicas may run, of which one acts; without it, one.

trainjob-operator runtimes creates the predefined runtimes of a Helm release, or removes them. It
has a page of its own: trainjob-operator runtimes --help.",
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

/// The part of `trainjob-operator runtimes`.
pub const RUNTIMES: Manual = Manual {
    description: "\
Creates the ClusterTrainingRuntimes in the folder --from, or, with --remove, deletes them. The Jobs
of the Helm chart run it: a release that brings the definition of runtimes cannot have runtimes
itself before its next upgrade.

Each file NAME.json is a runtime as Helm would create it. One that is there already stays as it is.
It has to belong to the same release: one of somebody else is an error, or, with --remove, is left
alone.",
    servers: &[],
    files: &[],
    environment: &[],
    stopping: "it ends, exit status 1",
    failures: &[
        ("", "a runtime belongs to somebody else,"),
        ("", "after --timeout the API server still refuses a request"),
    ],
};
