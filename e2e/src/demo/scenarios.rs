//! The scenarios of the demo: the examples that it plays, and what each of them promises.

use anyhow::Result;

use crate::testenv::workspace;

/// An example: one TrainJob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Example {
    /// The name of its TrainJob.
    pub job: &'static str,
    /// The name of its file in `examples`, without `.yaml`.
    pub file: &'static str,
    /// What it shows.
    pub course: Course,
    /// What is to become of it, as a sentence about it.
    pub promise: &'static str,
}

/// The course an example takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Course {
    /// Deadline and time to live are armed, but far away; the demo deletes it in the end.
    Armed,
    /// It completes, and its time to live deletes it.
    Completes,
    /// Its deadline fails it; it is released; its time to live deletes it.
    Exceeds,
    /// It is created suspended; the demo resumes it; it completes and is deleted.
    Resumed,
    /// It is refused while its runtime is not there; the demo brings that and applies it again; it completes and
    /// is deleted.
    Refused,
}

/// All examples, in the order in which they are applied and shown.
pub const EXAMPLES: [Example; 6] = [
    Example {
        job: "my-training",
        file: "kep-2899",
        course: Course::Armed,
        promise: "completed with 2 hours to its deadline and 1 hour to its deletion; deleted by \
                  hand, it left nothing",
    },
    Example {
        job: "completes",
        file: "completes",
        course: Course::Completes,
        promise: "completed, and its time to live deleted it",
    },
    Example {
        job: "deadline",
        file: "deadline",
        course: Course::Exceeds,
        promise: "failed with DeadlineExceeded, its JobSet and Pods were deleted, then its time to \
                  live deleted it",
    },
    Example {
        job: "suspended",
        file: "suspended",
        course: Course::Resumed,
        promise: "held no Pods while suspended; resumed, it completed, and its time to live deleted it",
    },
    Example {
        job: "ttl-zero",
        file: "ttl-zero",
        course: Course::Completes,
        promise: "was seen Complete, and deleted at once",
    },
    Example {
        job: "late-runtime",
        file: "late-runtime",
        course: Course::Refused,
        promise: "was refused while its runtime was missing; applied again with it, it completed, \
                  and its time to live deleted it",
    },
];

impl Example {
    /// Its manifest.
    pub fn manifest(&self) -> Result<String> {
        workspace::read(&format!("examples/{}.yaml", self.file))
    }
}

/// The manifest of a runtime, as it is for nodes that are only played.
pub fn runtime(name: &str) -> Result<String> {
    workspace::read(&format!("examples/demo/{name}.yaml"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testenv::yaml;

    fn only_document(text: &str) -> Value {
        let [document] = <[Value; 1]>::try_from(yaml::documents(text).unwrap()).unwrap();
        document
    }

    #[test]
    fn every_example_is_a_train_job_that_anybody_could_apply() {
        for example in EXAMPLES {
            let manifest = only_document(&example.manifest().unwrap());
            assert_eq!(manifest["kind"], "TrainJob", "{}", example.file);
            assert_eq!(manifest["metadata"], json!({"name": example.job}), "{}", example.file);
            assert!(!manifest.to_string().contains("kwok"), "{}", example.file);
        }
    }

    #[test]
    fn the_demo_runs_the_runtimes_of_the_examples_on_nodes_that_are_only_played() {
        for name in ["torch-distributed", "team-runtime"] {
            let mut played = only_document(&runtime(name).unwrap());
            let clean = workspace::read(&format!("examples/runtimes/{name}.yaml")).unwrap();
            let template = "/spec/template/spec/replicatedJobs/0/template/spec/template";
            let template = played.pointer_mut(template).unwrap().as_object_mut().unwrap();
            assert!(template.remove("metadata").is_some());
            let spec = template["spec"].as_object_mut().unwrap();
            assert!(spec.remove("terminationGracePeriodSeconds").is_some());
            spec["containers"][0].as_object_mut().unwrap().remove("resources");
            assert_eq!(played, only_document(&clean), "{name}");
        }
    }
}
