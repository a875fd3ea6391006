//! Which part of a bench is measured alone.

use std::sync::LazyLock;

use clap::ValueEnum;
use clap::builder::PossibleValue;

use super::scale::case::Case as ScaleCase;
use super::tenant::case::Case as TenantCase;

/// A part of a bench that has parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// Of [`super::Bench::Tenant`].
    Tenant(TenantCase),
    /// Of [`super::Bench::Scale`].
    Scale(ScaleCase),
}

static ALL: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let tenant = TenantCase::value_variants().iter().copied().map(Case::Tenant);
    tenant.chain(ScaleCase::value_variants().iter().copied().map(Case::Scale)).collect()
});

impl ValueEnum for Case {
    fn value_variants<'a>() -> &'a [Self] {
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::Tenant(case) => case.to_possible_value(),
            Self::Scale(case) => case.to_possible_value(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn cases_have_different_names() {
        let names = Case::value_variants().iter().filter_map(Case::to_possible_value);
        let names: Vec<_> = names.map(|value| value.get_name().to_owned()).collect();
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
        assert_eq!(Case::from_str("hostile", false), Ok(Case::Scale(ScaleCase::Hostile)));
    }
}
