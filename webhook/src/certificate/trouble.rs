//! What is wrong at the moment, said once.

/// A problem that is looked at again and again, and logged when it changes.
#[derive(Debug, Default)]
pub(super) struct Trouble(Option<String>);

impl Trouble {
    /// Whether this problem is another one than before.
    pub(super) fn is_new(&mut self, problem: String) -> bool {
        let is_new = self.0.as_ref() != Some(&problem);
        self.0 = Some(problem);
        is_new
    }

    /// Nothing is wrong any more; whether something was.
    pub(super) fn over(&mut self) -> bool {
        self.0.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_new_until_it_was_said_and_again_after_it_was_over() {
        let mut trouble = Trouble::default();
        assert!(!trouble.over());
        for (problem, is_new) in [("a", true), ("a", false), ("b", true), ("a", true)] {
            assert_eq!(trouble.is_new(problem.to_owned()), is_new, "{problem}");
        }
        assert!(trouble.over());
        assert!(trouble.is_new("a".to_owned()));
    }
}
