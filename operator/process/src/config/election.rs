//! What `leaderElection` means: which of several replicas works.

use trainjob_core::lease::Times;

use super::{error::Problem, file, value::GoDuration};

/// The Lease of Kubeflow Trainer, so that the two never act at the same time.
const TRAINERS_LEASE: &str = "trainer.kubeflow.org";

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
pub(super) fn resolve(file: Option<&file::LeaderElection>) -> Option<LeaderElection> {
    let election = file.filter(|election| election.leader_elect == Some(true))?;
    let given = |name: &Option<String>| name.clone().filter(|name| !name.is_empty());
    Some(LeaderElection {
        times: times(election),
        name: given(&election.resource_name).unwrap_or_else(|| TRAINERS_LEASE.to_owned()),
        namespace: given(&election.resource_namespace),
    })
}

/// The three times must leave a leader the chance to renew, as client-go has it too.
pub(super) fn check(election: &file::LeaderElection) -> Result<(), Problem> {
    if election.leader_elect != Some(true) {
        return Ok(());
    }
    let Times { lease_duration: lease, renew_deadline: renew, retry_period: retry } =
        times(election);
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

fn times(election: &file::LeaderElection) -> Times {
    let default = Times::default();
    let given = |field: Option<GoDuration>, default| field.map_or(default, |given| given.0);
    Times {
        lease_duration: given(election.lease_duration, default.lease_duration),
        renew_deadline: given(election.renew_deadline, default.renew_deadline),
        retry_period: given(election.retry_period, default.retry_period),
    }
}
