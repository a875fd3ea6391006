//! What `leaderElection` means: which of several replicas works.

use trainjob_core::lease::Times;

use super::{error::Problem, file};

/// How a leader is elected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaderElection {
    /// How long a leader is believed and believes; 15 s, 10 s and 2 s by default.
    pub times: Times,
    /// The name of the Lease; `trainer.kubeflow.org` by default.
    pub name: String,
    /// The namespace of the Lease; `None`, the default: that of the process.
    pub namespace: Option<String>,
}

/// The election that the file asks for, if it does.
pub(super) fn resolve(election: &file::LeaderElection) -> Option<LeaderElection> {
    election.leader_elect.then(|| LeaderElection {
        times: times(election),
        name: election.resource_name.clone(),
        namespace: Some(election.resource_namespace.clone()).filter(|name| !name.is_empty()),
    })
}

/// What an election says counts only where one is asked for.
pub(super) fn check(election: &file::LeaderElection) -> Result<(), Problem> {
    if election.leader_elect { check_times(times(election)) } else { Ok(()) }
}

/// The three times must leave a leader the chance to renew, as client-go has it too.
///
/// # Errors
///
/// Which of the three is too long; its path is that in a section `leaderElection`.
pub fn check_times(times: Times) -> Result<(), Problem> {
    let Times { lease_duration: lease, renew_deadline: renew, retry_period: retry } = times;
    if renew >= lease {
        let message = format!("{renew:?} is too long, expected less than leaseDuration, {lease:?}");
        return Err(Problem::new("leaderElection.renewDeadline", message));
    }
    // A period varies by up to a fifth of itself.
    if retry.is_zero() || retry.saturating_mul(6) >= renew.saturating_mul(5) {
        let message = format!(
            "{retry:?}, expected more than 0 and less than 5/6 of renewDeadline, {renew:?}"
        );
        return Err(Problem::new("leaderElection.retryPeriod", message));
    }
    Ok(())
}

const fn times(election: &file::LeaderElection) -> Times {
    Times {
        lease_duration: election.lease_duration.0,
        renew_deadline: election.renew_deadline.0,
        retry_period: election.retry_period.0,
    }
}
