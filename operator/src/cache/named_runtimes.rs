//! The runtimes that unfinished jobs name, so that a runtime that appears wakes just those, and each job keeps a number in
//! place of a name.

use std::collections::{HashMap, HashSet};

use slab::Slab;
use trainjob_core::{build::RuntimeKey, facts::ObjectKey};

/// Runtimes with the unfinished jobs that name them. One that no job names takes no room, whether it exists or not.
#[derive(Debug, Default)]
pub(super) struct NamedRuntimes {
    numbers: HashMap<RuntimeKey, usize>,
    named: Slab<Named>,
}

#[derive(Debug)]
struct Named {
    runtime: RuntimeKey,
    jobs: HashSet<ObjectKey>,
}

impl NamedRuntimes {
    /// A job names another runtime than before, or none. Returns the number of the one that it names now.
    pub(super) fn name(
        &mut self,
        job: &ObjectKey,
        before: Option<&RuntimeKey>,
        now: Option<&RuntimeKey>,
    ) -> Option<usize> {
        if let Some(before) = before.filter(|before| now != Some(before)) {
            self.forget(job, before);
        }
        let runtime = now?;
        if let Some(number) = self.numbers.get(runtime).copied() {
            self.named.get_mut(number)?.jobs.insert(job.clone());
            return Some(number);
        }
        let jobs = HashSet::from([job.clone()]);
        let number = self.named.insert(Named { runtime: runtime.clone(), jobs });
        self.numbers.insert(runtime.clone(), number);
        Some(number)
    }

    fn forget(&mut self, job: &ObjectKey, runtime: &RuntimeKey) {
        let Some(number) = self.numbers.get(runtime).copied() else { return };
        let Some(named) = self.named.get_mut(number) else { return };
        named.jobs.remove(job);
        if named.jobs.is_empty() {
            self.named.remove(number);
            self.numbers.remove(runtime);
        }
    }

    /// The runtime of a number that a job has.
    pub(super) fn runtime(&self, number: usize) -> Option<&RuntimeKey> {
        self.named.get(number).map(|named| &named.runtime)
    }

    /// The unfinished jobs that name a runtime.
    pub(super) fn jobs(&self, runtime: &RuntimeKey) -> Vec<ObjectKey> {
        let named = self.numbers.get(runtime).and_then(|number| self.named.get(*number));
        named.map(|named| named.jobs.iter().cloned().collect()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(name: &str) -> ObjectKey {
        ObjectKey::new("ns", name)
    }

    fn runtime(name: &str) -> RuntimeKey {
        RuntimeKey::Cluster { name: name.into() }
    }

    #[test]
    fn job_keeps_the_number_of_the_runtime_that_it_named_last() {
        let mut runtimes = NamedRuntimes::default();
        let a = runtimes.name(&job("1"), None, Some(&runtime("a"))).unwrap();
        assert_eq!(runtimes.name(&job("2"), None, Some(&runtime("a"))), Some(a));
        assert_eq!(runtimes.name(&job("2"), Some(&runtime("a")), Some(&runtime("a"))), Some(a));
        let b = runtimes.name(&job("2"), Some(&runtime("a")), Some(&runtime("b"))).unwrap();
        assert_eq!(
            (runtimes.runtime(a), runtimes.runtime(b)),
            (Some(&runtime("a")), Some(&runtime("b")))
        );
        assert_eq!(
            (runtimes.jobs(&runtime("a")), runtimes.jobs(&runtime("b"))),
            (vec![job("1")], vec![job("2")])
        );
        assert_eq!(runtimes.jobs(&runtime("c")), []);
    }

    #[test]
    fn runtime_that_no_job_names_any_more_takes_no_room() {
        let mut runtimes = NamedRuntimes::default();
        for number in 0..100 {
            let (job, runtime) = (job(&number.to_string()), runtime(&number.to_string()));
            runtimes.name(&job, None, Some(&runtime));
            assert_eq!(runtimes.name(&job, Some(&runtime), None), None);
        }
        assert!(runtimes.numbers.is_empty() && runtimes.named.is_empty());
        assert!(runtimes.named.capacity() <= 4, "{}", runtimes.named.capacity());
    }
}
