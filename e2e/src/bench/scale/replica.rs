//! One of several operators, with leader election as the chart has it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kube::{Client, Config};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use super::super::rig::Rig;
use super::super::usage::{self, Usage};
use crate::testenv::fixtures::SYSTEM;
use crate::testenv::operator::{Operator, OperatorOptions, SERVICE_ACCOUNT};

const ELECTION: &str = "leaderElection: {leaderElect: true}";
/// How many lines of its log an error shows.
const SHOWN_LINES: usize = 10;
/// Between two looks whether an operator is ready.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How long one look may take.
const LOOK_WITHIN: Duration = Duration::from_secs(1);
/// How long it may take.
const READY_WITHIN: Duration = Duration::from_mins(10);

/// One of several operators. Dropped, it is asked to stop, and killed if it does not.
pub(super) struct Replica {
    pub(super) operator: Operator,
    /// The id of its token, which is on every request of it that is noted.
    pub(super) token: String,
    launched: Instant,
}

impl Replica {
    /// Starts one and does not wait until it is ready.
    pub(super) async fn launch(rig: &Rig, name: &str) -> Result<Self> {
        let shared = rig.cluster.service_account_kubeconfig(SYSTEM, SERVICE_ACCOUNT).await?;
        // The next one gets a token of its own in that file.
        let own = rig.cluster.folder().join(format!("{name}.kubeconfig"));
        fs::copy(&shared, &own)?;
        let token = id_of_token(&own)?;
        let env = [("HOSTNAME", name), ("POD_NAMESPACE", SYSTEM)];
        let options = OperatorOptions {
            config_yaml: ELECTION.to_owned(),
            env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            kubeconfig: Some(own),
            ..OperatorOptions::default()
        };
        let launched = Instant::now();
        Ok(Self { operator: Operator::start(&rig.cluster, options).await?, token, launched })
    }

    /// Waits until it says that it is ready. Returns how long that took since its launch, in milliseconds.
    pub(super) async fn ready(&self) -> Result<f64> {
        let client = Client::try_from(Config::new(self.operator.health_url().parse()?))?;
        loop {
            let request = http::Request::get("/readyz").body(Vec::new())?;
            let answer = timeout(LOOK_WITHIN, client.request_text(request)).await;
            if answer.is_ok_and(|answer| answer.is_ok()) {
                return Ok(self.launched.elapsed().as_secs_f64() * 1e3);
            }
            self.still_runs()?;
            ensure!(self.launched.elapsed() < READY_WITHIN, "the operator is not ready");
            sleep(LOOK_EVERY).await;
        }
    }

    /// What it has used so far.
    pub(super) fn usage(&self) -> Result<Usage> {
        self.still_runs()?;
        usage::of(self.operator.process().id())
    }

    /// What each of its threads has taken so far.
    pub(super) fn threads(&self) -> Result<HashMap<OsString, Duration>> {
        usage::of_threads(self.operator.process().id())
    }

    /// Fails with the end of its log if it has ended.
    fn still_runs(&self) -> Result<()> {
        let Some(status) = self.operator.process().ended() else { return Ok(()) };
        let log = self.operator.log()?;
        let last: Vec<&str> = log.lines().rev().take(SHOWN_LINES).collect();
        bail!("the operator ended ({status}); the last it said, newest first:\n{}", last.join("\n"))
    }
}

/// The id of the token in a kubeconfig.
fn id_of_token(kubeconfig: &Path) -> Result<String> {
    let text = fs::read_to_string(kubeconfig)?;
    let token = text.lines().find_map(|line| line.trim().strip_prefix("token: "));
    id_in(token.context("a kubeconfig without a token")?)
}

/// The id in a token, whose second part says what it is.
fn id_in(token: &str) -> Result<String> {
    let claims = token.split('.').nth(1).context("a token of other than three parts")?;
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims)?)?;
    let id = claims.get("jti").and_then(Value::as_str);
    id.map(str::to_owned).context("a token without an id")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_of_a_token_is_in_its_claims() {
        let claims = URL_SAFE_NO_PAD.encode(r#"{"jti":"7a-1","sub":"x"}"#);
        assert_eq!(id_in(&format!("head.{claims}.signature")).unwrap(), "7a-1");
        assert!(id_in("opaque").is_err());
    }
}
