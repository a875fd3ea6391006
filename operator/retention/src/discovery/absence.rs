//! Why a kind cannot be read, in words for whoever has configured it.

use super::kind::Kind;

/// What the API server has of the group of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Group {
    /// There is no such group.
    Missing,
    /// It is there in no version that is known; these are.
    Unknown(&'static [&'static str]),
    /// It has these resources, each with the name of its kind.
    Of(Vec<(String, String)>),
}

/// Why a kind cannot be read of a group.
pub(super) fn absence(kind: Kind<'_>, group: &Group) -> String {
    let Kind { group: name, kind, resource } = kind;
    let shown = if name.is_empty() { "the core group" } else { name };
    let none = format!("the API server serves no resource {resource} of {shown}");
    let resources = match group {
        Group::Missing => return format!("{none}: it has no such group"),
        Group::Unknown(known) => {
            let known = known.join(", ");
            return format!("{none} in a version that is known, which are {known}");
        }
        Group::Of(resources) => resources,
    };
    if let Some((_, other)) = resources.iter().find(|(name, _)| name == resource) {
        return format!(
            "the API server serves {resource} of {shown} as the kind {other}, not as {kind}; correct retention.targets"
        );
    }
    match resources.iter().find(|(name, its_kind)| its_kind == kind && !name.contains('/')) {
        Some((name, _)) => {
            format!("{none}: it serves the kind {kind} as {name}; correct retention.targets")
        }
        None => format!("{none}, nor the kind {kind}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_configured_is_named_and_what_is_served_instead() {
        let resources = [("jobs", "Job"), ("jobs/status", "Job"), ("cronjobs", "CronJob")];
        let resources = resources.map(|(name, kind)| (name.to_owned(), kind.to_owned()));
        let of = Group::Of(resources.into());
        let status_first = Group::Of(vec![
            ("pods/log".to_owned(), "Pod".to_owned()),
            ("pods".to_owned(), "Pod".to_owned()),
        ]);
        for (group, kind, resource, found, expected) in [
            (
                "batch",
                "Job",
                "job",
                &of,
                "the API server serves no resource job of batch: it serves the kind Job as jobs; correct retention.targets",
            ),
            (
                "batch",
                "Jobs",
                "jobs",
                &of,
                "the API server serves jobs of batch as the kind Job, not as Jobs; correct retention.targets",
            ),
            (
                "batch",
                "Task",
                "tasks",
                &of,
                "the API server serves no resource tasks of batch, nor the kind Task",
            ),
            (
                "",
                "Pod",
                "pod",
                &status_first,
                "the API server serves no resource pod of the core group: it serves the kind Pod as pods; correct retention.targets",
            ),
            (
                "a.example",
                "Job",
                "jobs",
                &Group::Missing,
                "the API server serves no resource jobs of a.example: it has no such group",
            ),
            (
                "kueue.x-k8s.io",
                "Workload",
                "workloads",
                &Group::Unknown(&["v1beta1", "v1beta2"]),
                "the API server serves no resource workloads of kueue.x-k8s.io in a version that is known, which are v1beta1, v1beta2",
            ),
        ] {
            assert_eq!(absence(Kind { group, kind, resource }, found), expected);
        }
    }
}
