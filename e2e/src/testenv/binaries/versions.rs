//! Which releases a cluster is made of, as its options or the environment say.

use std::env;
use std::fmt;

use anyhow::{Result, bail};

/// Names the Kubernetes of every cluster: `oldest` or `newest`.
const KUBERNETES: &str = "E2E_KUBERNETES";
/// Names the JobSet of every cluster: `oldest` or `newest`.
const JOBSET: &str = "E2E_JOBSET";

const OLDEST: &str = "oldest";
const NEWEST: &str = "newest";

/// The Kubernetes that a cluster consists of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Kubernetes {
    /// 1.31, the oldest release that the operator is shown with.
    Oldest,
    /// 1.36, whose API types everything here is compiled with.
    #[default]
    Newest,
}

/// The JobSet that a cluster runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum JobSet {
    /// 0.10, the oldest release that the operator is shown with.
    Oldest,
    /// 0.12, whose API the operator is written for.
    #[default]
    Newest,
}

/// Which releases a cluster is made of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Versions {
    /// That of the API server, the controller manager, the scheduler and kubectl.
    pub kubernetes: Kubernetes,
    /// That of the JobSet controller and its definitions.
    pub jobset: JobSet,
}

impl Kubernetes {
    /// The release that `e2e/programs` pins.
    #[must_use]
    pub const fn release(self) -> &'static str {
        match self {
            Self::Oldest => "1.31.0",
            Self::Newest => "1.36.3",
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Oldest => OLDEST,
            Self::Newest => NEWEST,
        }
    }
}

impl JobSet {
    /// The release that `e2e/programs` pins.
    #[must_use]
    pub const fn release(self) -> &'static str {
        match self {
            Self::Oldest => "0.10.1",
            Self::Newest => "0.12.0",
        }
    }

    /// Whether it makes the volumes of `volumeClaimPolicies`. Without, its definition drops the field.
    #[must_use]
    pub const fn makes_volumes(self) -> bool {
        matches!(self, Self::Newest)
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Oldest => OLDEST,
            Self::Newest => NEWEST,
        }
    }
}

impl Versions {
    /// All pairs of the oldest and the newest release, the newest first.
    pub const ALL: [Self; 4] = [
        Self { kubernetes: Kubernetes::Newest, jobset: JobSet::Newest },
        Self { kubernetes: Kubernetes::Newest, jobset: JobSet::Oldest },
        Self { kubernetes: Kubernetes::Oldest, jobset: JobSet::Newest },
        Self { kubernetes: Kubernetes::Oldest, jobset: JobSet::Oldest },
    ];

    /// Whether that JobSet can be installed on that Kubernetes. API servers of 1.31 refuse the definition of JobSet
    /// 0.12, because one of its rules is about a field that they do not show to rules.
    #[must_use]
    pub const fn fit(self) -> bool {
        !matches!(self, Self { kubernetes: Kubernetes::Oldest, jobset: JobSet::Newest })
    }

    /// The environment that gives a test, the demo or a part of the acceptance clusters of these versions.
    #[must_use]
    pub const fn environment(self) -> [(&'static str, &'static str); 2] {
        [(KUBERNETES, self.kubernetes.word()), (JOBSET, self.jobset.word())]
    }

    /// These, but for what the environment asks for.
    pub(crate) fn or_as_asked(self) -> Result<Self> {
        self.asked(|name| env::var(name).ok())
    }

    fn asked(self, variable: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let oldest = |name: &str| match variable(name).as_deref() {
            None | Some("") => Ok(None),
            Some(OLDEST) => Ok(Some(true)),
            Some(NEWEST) => Ok(Some(false)),
            Some(other) => bail!("{name} is {other:?}, expected {OLDEST} or {NEWEST}"),
        };
        let kubernetes = match oldest(KUBERNETES)? {
            None => self.kubernetes,
            Some(true) => Kubernetes::Oldest,
            Some(false) => Kubernetes::Newest,
        };
        let jobset = match oldest(JOBSET)? {
            None => self.jobset,
            Some(true) => JobSet::Oldest,
            Some(false) => JobSet::Newest,
        };
        Ok(Self { kubernetes, jobset })
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kubernetes {}, JobSet {}", self.kubernetes.release(), self.jobset.release())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_chooses_and_says_what_it_does_not_know() {
        for versions in Versions::ALL {
            let environment = versions.environment();
            let value = |name: &str| {
                let found = environment.iter().find(|(variable, _)| *variable == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(Versions::default().asked(value).unwrap(), versions);
            assert_eq!(versions.asked(|_| None).unwrap(), versions);
        }
        let error = Versions::default().asked(|_| Some("1.31".into())).unwrap_err();
        assert_eq!(error.to_string(), "E2E_KUBERNETES is \"1.31\", expected oldest or newest");
    }
}
