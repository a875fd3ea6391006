//! Which versions of policies this process has written.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use trainjob_engine::versions;

use crate::cluster_state::PolicyKey;

/// The version of each policy that was made by storing the record of its breaker.
///
/// The watch shows it as any other, and there is nothing in it that is not known: a write is refused if the policy was written
/// by somebody else meanwhile (`docs/retention.md`, R40). To read it again would be half of what a write costs, and at rest
/// these are most of the writes.
#[derive(Debug, Default)]
pub struct OwnWrites(Mutex<BTreeMap<PolicyKey, String>>);

impl OwnWrites {
    /// A write has made this version.
    pub fn note(&self, policy: &PolicyKey, version: &str) {
        self.versions().insert(policy.clone(), version.to_owned());
    }

    /// Whether this version was made so, or replaced: the answer to a write can come before the watch tells of the version
    /// that it went on from.
    #[must_use]
    pub fn cover(&self, policy: &PolicyKey, version: &str) -> bool {
        let is_covered =
            |made: &str| made == version || versions::parse(version) < versions::parse(made);
        self.versions().get(policy).is_some_and(|made| is_covered(made))
    }

    /// The policy is gone, or a list has shown it: it may be older than what was written, and the watch that follows tells of
    /// that.
    pub fn forget(&self, policy: &PolicyKey) {
        self.versions().remove(policy);
    }

    fn versions(&self) -> MutexGuard<'_, BTreeMap<PolicyKey, String>> {
        // An insertion or a removal is complete in itself.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use trainjob_retention_core::stored::PolicyKind;

    use super::*;

    #[test]
    fn nothing_is_new_up_to_the_version_that_was_written_last_until_the_policy_is_gone() {
        let [mine, other] = ["mine", "other"].map(|name| PolicyKey {
            kind: PolicyKind::Namespaced,
            namespace: "team".into(),
            name: name.into(),
        });
        let writes = OwnWrites::default();
        writes.note(&mine, "7");
        writes.note(&mine, "9");
        for (policy, version, expected) in
            [(&mine, "9", true), (&mine, "8", true), (&mine, "10", false), (&other, "9", false)]
        {
            assert_eq!(writes.cover(policy, version), expected, "{} at {version}", policy.name);
        }
        writes.forget(&mine);
        assert!(!writes.cover(&mine, "9"), "another policy of the name may come to that version");
    }
}
