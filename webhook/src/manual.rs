//! What the manual page of the admission server says that is not true of both programs.

use trainjob_process::Manual;

/// The admission server's part of `--help`.
pub const MANUAL: Manual = Manual {
    description: "\
Answers the API server, which asks it before it stores a TrainJob, TrainingRuntime or
ClusterTrainingRuntime. It is not asked about deletions, nor about what leaves a spec as it is.
Any number of replicas may run; all of them answer.

Unless certManagement.enable is false, it makes its certificate itself: the replicas share an
authority in a Secret, and write it into the webhook configurations.",
    servers: &[
        ("admission", ":9443, over TLS"),
        ("health", ":8081; /healthz says whether it lives, /readyz whether it can work"),
        ("metrics", "where metrics.bindAddress says; /metrics"),
    ],
    files: &[(
        "/tmp/k8s-webhook-server/serving-certs/tls.crt, tls.key",
        "its certificate, where certManagement.enable is false; looked at\n\
         every five seconds",
    )],
    environment: &[],
    stopping: "readiness starts failing, new connections are served for five\n\
               seconds more, what is under way is finished within ten, exit\n\
               status 0",
    failures: &[],
};
