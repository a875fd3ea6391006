//! The runtimes that unfinished jobs name, by numbers, so that a job keeps a number in place of a name.

use std::collections::HashMap;

use slab::Slab;
use trainjob_core::build::RuntimeKey;

/// Runtimes that unfinished jobs name. One that none names takes no room, whether it exists or not.
#[derive(Debug, Default)]
pub(super) struct NamedRuntimes {
    numbers: HashMap<RuntimeKey, usize>,
    named: Slab<Named>,
}

#[derive(Debug)]
struct Named {
    runtime: RuntimeKey,
    /// How many jobs name it.
    jobs: usize,
}

impl NamedRuntimes {
    /// A job names this runtime now, in place of what it named before. Returns the number of the one that it names.
    pub(super) fn name(
        &mut self,
        before: Option<&RuntimeKey>,
        now: Option<&RuntimeKey>,
    ) -> Option<usize> {
        // The new one first: if it is the same, it keeps its number.
        let number = now.map(|now| self.count(now));
        if let Some(before) = before {
            self.discount(before);
        }
        number
    }

    fn count(&mut self, runtime: &RuntimeKey) -> usize {
        if let Some(number) = self.numbers.get(runtime).copied()
            && let Some(named) = self.named.get_mut(number)
        {
            named.jobs += 1;
            return number;
        }
        let number = self.named.insert(Named { runtime: runtime.clone(), jobs: 1 });
        self.numbers.insert(runtime.clone(), number);
        number
    }

    fn discount(&mut self, runtime: &RuntimeKey) {
        let Some(number) = self.numbers.get(runtime).copied() else { return };
        let Some(named) = self.named.get_mut(number) else { return };
        named.jobs -= 1;
        if named.jobs == 0 {
            self.named.remove(number);
            self.numbers.remove(runtime);
        }
    }

    /// The number of a runtime, if any job names it.
    pub(super) fn number(&self, runtime: &RuntimeKey) -> Option<usize> {
        self.numbers.get(runtime).copied()
    }

    /// The runtime of a number that a job has.
    pub(super) fn runtime(&self, number: usize) -> Option<&RuntimeKey> {
        self.named.get(number).map(|named| &named.runtime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runtime(name: &str) -> RuntimeKey {
        RuntimeKey::Cluster { name: name.into() }
    }

    #[test]
    fn runtime_keeps_its_number_while_any_job_names_it() {
        let (a, b) = (runtime("a"), runtime("b"));
        let mut runtimes = NamedRuntimes::default();
        let of_a = runtimes.name(None, Some(&a)).unwrap();
        assert_eq!(runtimes.name(None, Some(&a)), Some(of_a), "another job");
        assert_eq!(runtimes.name(Some(&a), Some(&a)), Some(of_a), "the same again");
        let of_b = runtimes.name(Some(&a), Some(&b)).unwrap();
        assert_eq!((runtimes.runtime(of_a), runtimes.runtime(of_b)), (Some(&a), Some(&b)));
        assert_eq!((runtimes.number(&a), runtimes.number(&b)), (Some(of_a), Some(of_b)));
        assert_eq!(runtimes.name(Some(&a), None), None);
        assert_eq!((runtimes.number(&a), runtimes.runtime(of_a)), (None, None));
        assert_eq!(runtimes.number(&b), Some(of_b));
    }

    #[test]
    fn runtime_that_no_job_names_any_more_takes_no_room() {
        let mut runtimes = NamedRuntimes::default();
        for number in 0..100 {
            let runtime = runtime(&number.to_string());
            runtimes.name(None, Some(&runtime));
            runtimes.name(Some(&runtime), None);
        }
        assert!(runtimes.numbers.is_empty() && runtimes.named.is_empty());
        assert!(runtimes.named.capacity() <= 4, "{}", runtimes.named.capacity());
    }
}
