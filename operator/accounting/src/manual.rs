//! What the manual pages of the accounting program and of its commands say that is not true of all programs.

use trainjob_process::Manual;

const STOPPING: &str = "readiness starts failing, nothing new is begun, what is under\n\
                        way is finished within 20 seconds, the Lease is released, exit\n\
                        status 0";

/// The accounting program's part of `--help`.
pub const MANUAL: Manual = Manual {
    description: "\
Counts every Pod of a TrainJob once, into a TrainJobRecord that stays when the TrainJob is gone.
The operator marks the Pods that are counted: see accounting.mode in its configuration.

It keeps nothing on disk. Several replicas may run, of which one acts.

trainjob-accounting sweep releases Pods while no replica acts, trainjob-accounting drain releases
all Pods before the program is removed. Each has a page of its own, as in
trainjob-accounting sweep --help.",
    servers: SERVERS,
    files: &[],
    environment: &[("HOSTNAME", "what it calls itself in the Lease, with a random number")],
    stopping: STOPPING,
    failures: &[("", "the Lease could not be renewed in time: start it again")],
};

const SERVERS: trainjob_process::Entries = &[
    ("health", ":8081; /healthz says whether it lives, /readyz whether it can work"),
    ("metrics", "where metrics.bindAddress says; /metrics"),
];

/// The part of `trainjob-accounting sweep`.
pub const SWEEP: Manual = Manual {
    description: "\
Releases Pods that have ended and been deleted, and that wait for an accounting program that does
not act. While its Lease changes, nothing is done. Once the Lease has stood still for a minute, a
Pod is released that has waited for --after. It is not counted; the log has what it used.

One replica is enough. The configuration file is that of the accounting program.",
    servers: SERVERS,
    files: &[],
    environment: &[],
    stopping: "it ends, exit status 0",
    failures: &[],
};

/// The part of `trainjob-accounting drain`.
pub const DRAIN: Manual = Manual {
    description: "\
Releases all Pods that wait to be counted, running ones, too, until it has found none twice. Pods that
have ended are left to an accounting program that acts, for half a minute.

Unfinished JobSets whose Pods are marked would make such Pods again. If there are any, nothing is
released; they are listed, one NAMESPACE/NAME a line, and the exit status is 3. With --abandon their
Pods are released all the same: later ones wait for an accounting program that is not there.",
    servers: &[],
    files: &[],
    environment: &[],
    stopping: "it ends, exit status 1",
    failures: &[
        ("", "after --timeout some Pods are not released,"),
        ("", "the API server refuses a request"),
        ("3", "there are unfinished JobSets with marked Pods"),
    ],
};
