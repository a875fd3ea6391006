//! A list of the running Pods of all JobSets, as far as it was received.
//!
//! After a start, one list answers for all jobs at once. It may be long, and work does not wait for all of it. The API
//! server lists Pods in the order of their keys, `namespace/name`. So of everything before the last Pod that was
//! received it is known whether it is there. The names of a job's Pods begin with its own.

use std::collections::HashSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use trainjob_api::constants::JOBSET_NAME_LABEL;

use crate::facts::ObjectKey;

/// What was received of the list.
#[derive(Debug, Default)]
pub struct PodList {
    running: HashSet<ObjectKey>,
    covered: Covered,
}

/// How far the list goes.
#[derive(Debug)]
enum Covered {
    /// Up to the Pod with this key, as `namespace/name`.
    To(String),
    /// To the end.
    All,
    /// It is not in order, so that nothing is known of Pods that were not received.
    Unordered,
}

impl Default for Covered {
    fn default() -> Self {
        Self::To(String::new())
    }
}

impl PodList {
    /// Takes in the next Pod.
    pub fn received(&mut self, pod: &ObjectMeta) {
        let (namespace, name) = (pod.namespace.as_deref(), pod.name.as_deref());
        let (namespace, name) = (namespace.unwrap_or_default(), name.unwrap_or_default());
        let key = format!("{namespace}/{name}");
        if let Covered::To(last) = &self.covered {
            let in_order = *last < key;
            self.covered = if in_order { Covered::To(key) } else { Covered::Unordered };
        }
        let labels = pod.labels.as_ref();
        if let Some(job_set) = labels.and_then(|labels| labels.get(JOBSET_NAME_LABEL)) {
            self.running.insert(ObjectKey::new(namespace, job_set.as_str()));
        }
    }

    /// Takes in that there are no more.
    pub fn ended(&mut self) {
        self.covered = Covered::All;
    }

    /// Whether Pods run that have the label of the JobSet with this key; `None` if that is not known.
    #[must_use]
    pub fn runs(&self, job_set: &ObjectKey) -> Option<bool> {
        if self.running.contains(job_set) {
            return Some(true);
        }
        let covered = match &self.covered {
            Covered::All => true,
            Covered::Unordered => false,
            // It is past all keys that begin so.
            Covered::To(last) => {
                let pods = format!("{job_set}-");
                last.bytes().take(pods.len()).gt(pods.bytes())
            }
        };
        covered.then_some(false)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(key: &str) -> ObjectKey {
        let (namespace, name) = key.split_once('/').unwrap();
        ObjectKey::new(namespace, name)
    }

    /// A list that has received these Pods, given as the keys of their JobSets and what follows in their names.
    fn received(pods: &[(&str, &str)]) -> PodList {
        let mut list = PodList::default();
        for (job_set, rest) in pods {
            let job_set = key(job_set);
            let (namespace, name) = (&*job_set.namespace, &*job_set.name);
            let labels = json!({"jobset.sigs.k8s.io/jobset-name": name});
            let pod = json!({
                "namespace": **namespace, "name": format!("{name}{rest}"), "labels": labels,
            });
            list.received(&serde_json::from_value(pod).unwrap());
        }
        list
    }

    #[test]
    fn everything_before_the_last_pod_is_known_and_nothing_after_it() {
        let list = received(&[("b/a", "-node-0"), ("b/m", "-node-0"), ("b/m", "-node-1")]);
        for (job, known) in [
            ("b/a", Some(true)),
            ("b/m", Some(true)),
            ("a/z", Some(false)),
            ("b/l", Some(false)),
            // Its Pods might be `m-node-…`, of which not all were received.
            ("b/m-node", None),
            // Its Pods come before those of `m`: `m-a-…`.
            ("b/m-a", Some(false)),
            ("b/n", None),
            ("c/a", None),
            // The key `b-a/…` comes before `b/…`.
            ("b-a/z", Some(false)),
        ] {
            assert_eq!(list.runs(&key(job)), known, "{job}");
        }
    }

    #[test]
    fn complete_list_knows_everything_and_an_empty_one_nothing() {
        let mut list = received(&[]);
        assert_eq!(list.runs(&key("a/a")), None);
        list.ended();
        assert_eq!(list.runs(&key("a/a")), Some(false));
        let mut list = received(&[("b/b", "-node-0"), ("a/a", "-node-0")]);
        list.ended();
        let known = ["a/a", "b/b", "c/c"].map(|job| list.runs(&key(job)));
        assert_eq!(known, [Some(true), Some(true), Some(false)]);
    }

    #[test]
    fn list_that_is_not_in_order_knows_only_what_it_shows() {
        for second in ["a/a", "b/b"] {
            let list = received(&[("b/b", "-node-0"), (second, "-node-0"), ("z/z", "-node-0")]);
            let known = [second, "b/b", "z/z", "a/b"].map(|job| list.runs(&key(job)));
            assert_eq!(known, [Some(true), Some(true), Some(true), None], "{second}");
        }
    }
}
