//! Names that JobSet makes, and whether they fit.
//!
//! JobSet names a Job `<JobSet>-<job>-<index>` and a Pod of an Indexed Job
//! `<JobSet>-<job>-<index>-<index>-<five letters>`, and refuses a JobSet whose longest name exceeds 63
//! characters. The API admits TrainJob names of up to 63, so a valid name may be one that can never
//! run: 48 characters are the most with the usual job `node`, 33 with a `dataset-initializer`. Said
//! here, it is said once and with a remedy.

use trainjob_api::{JobSet, jobset::ReplicatedJob};

/// The longest name that DNS, and so JobSet, allows.
const LONGEST: usize = 63;

/// What is wrong with the names that JobSet would make, if something is.
#[must_use]
pub fn name_problem(job_set: &JobSet) -> Option<String> {
    let name = job_set.metadata.name.as_deref().unwrap_or_default();
    let replicated_jobs = job_set.spec.replicated_jobs.iter().flatten();
    let (replicated_job, longest) = replicated_jobs
        .map(|replicated_job| (replicated_job, longest_name(name, replicated_job)))
        .max_by_key(|(_, longest)| longest.len())
        .filter(|(_, longest)| longest.len() > LONGEST)?;

    let replicated_job = &replicated_job.name;
    let length = longest.len();
    let room = (LONGEST + name.len()).saturating_sub(length);
    let remedy = if room == 0 {
        format!("shorten the name of replicated job {replicated_job:?} in the runtime")
    } else {
        format!(
            "use a name of at most {room} characters, \
             or a runtime with a shorter name for its replicated job {replicated_job:?}"
        )
    };
    Some(format!(
        "metadata.name is too long: JobSet would have to make {longest:?}, \
         which has {length} characters where {LONGEST} are allowed; {remedy}"
    ))
}

/// The longest name JobSet makes for a replicated job: that of its last Pod, or of its last Job if Pods have no
/// index.
fn longest_name(job_set: &str, replicated_job: &ReplicatedJob) -> String {
    let last = |count: Option<i32>| i64::from(count.unwrap_or(1)) - 1;
    let job = format!("{job_set}-{}-{}", replicated_job.name, last(replicated_job.replicas));
    let spec = replicated_job.template.spec.as_ref();
    // Indexed is what JobSet makes of an absent mode.
    match spec.and_then(|spec| spec.completion_mode.as_deref()).unwrap_or("Indexed") {
        "Indexed" => {
            let pod = last(spec.and_then(|spec| spec.completions));
            format!("{job}-{pod}-abcde")
        }
        _ => job,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::batch::v1::{JobSpec, JobTemplateSpec};
    use trainjob_api::jobset::JobSetSpec;

    use super::*;

    fn job_set(length: usize, replicated_job: &str, replicas: i32, job: JobSpec) -> JobSet {
        let replicated_job = ReplicatedJob {
            name: replicated_job.into(),
            replicas: Some(replicas),
            template: JobTemplateSpec { spec: Some(job), ..Default::default() },
            ..Default::default()
        };
        let spec = JobSetSpec { replicated_jobs: Some(vec![replicated_job]), ..Default::default() };
        JobSet::new(&"x".repeat(length), spec)
    }

    fn pods(count: i32) -> JobSpec {
        JobSpec { completions: Some(count), ..Default::default() }
    }

    #[test]
    fn a_name_may_be_as_long_as_the_longest_pod_name_allows() {
        for (replicated_job, replicas, count, most) in [
            ("node", 1, 1, 48),
            ("node", 1, 10, 48),
            ("node", 1, 11, 47),
            ("node", 1, 100, 47),
            ("node", 11, 1, 47),
            ("launcher", 1, 1, 44),
            ("dataset-initializer", 1, 1, 33),
        ] {
            let problem =
                |length| name_problem(&job_set(length, replicated_job, replicas, pods(count)));
            assert_eq!(problem(most), None, "{replicated_job} {replicas} {count}");
            let message = problem(most + 1).unwrap();
            assert!(message.contains(&format!("at most {most} characters")), "{message}");
        }
    }

    #[test]
    fn pods_without_index_do_not_count() {
        let job = JobSpec { completion_mode: Some("NonIndexed".into()), ..pods(1000) };
        assert_eq!(name_problem(&job_set(56, "node", 1, job.clone())), None);
        assert!(name_problem(&job_set(57, "node", 1, job)).is_some());
    }

    #[test]
    fn too_long_replicated_job_name_is_for_the_runtime_to_change() {
        let message = name_problem(&job_set(1, &"s".repeat(60), 1, pods(1))).unwrap();
        assert!(message.contains("in the runtime"), "{message}");
        assert!(!message.contains("at most"), "{message}");
    }

    #[test]
    fn a_job_set_without_jobs_has_no_names() {
        assert_eq!(name_problem(&JobSet::default()), None);
    }
}
