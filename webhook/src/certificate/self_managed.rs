//! The serving certificate without anybody else: carries out what [`super::rotation`] decides.
//!
//! One loop, which looks at everything each time: at the Secret, at both webhook configurations and at the clock.
//! It runs when one of the three objects has changed, when something is due, and twice a minute anyway,
//! because a watch can be silent and a machine can have slept.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use kube::Client;
use thiserror::Error;
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};
use trainjob_api::time::Timestamp;
use trainjob_engine::jitter;

use super::{
    authority::{Authority, AuthorityError, Leaf},
    changes::{LOOK, watch},
    request::RequestError,
    rotation::{Reason, Standing, State, Step, after, bundle, is_due, plan},
    secret::{self, Content},
    serving::Serving,
    settings::Settings,
    trouble::Trouble,
    webhook_configurations::{self, WebhookConfigurations},
    x509::to_pem,
};
use crate::metrics::Metrics;

/// The shortest; what changes within it is seen together.
const PAUSE: Duration = Duration::from_millis(100);
/// First and longest wait after a failure.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), LOOK);
/// How often in a row somebody else may be faster before it is worth a word.
const CONFLICTS: u32 = 5;
/// How often a minute the bundle may be repaired before somebody else is suspected to keep changing it.
const REPAIRS: usize = 20;

/// A serving certificate signed by a CA of our own.
pub struct SelfManaged {
    /// How to reach the API server.
    pub client: Client,
    /// What for.
    pub settings: Settings,
    /// Gets the certificate.
    pub serving: Serving,
    /// Count it.
    pub metrics: Arc<Metrics>,
}

/// Why there is no new certificate, or why the CA could not be looked after.
#[derive(Debug, Error)]
enum Problem {
    #[error("cannot read the webhook configurations: {0}")]
    ReadWebhookConfigurations(#[source] RequestError),
    #[error("cannot write the CA bundle into the webhook configurations: {0}")]
    WriteWebhookConfigurations(#[source] RequestError),
    #[error("cannot read the Secret of the CA: {0}")]
    ReadSecret(#[source] RequestError),
    #[error("cannot write the Secret of the CA: {0}")]
    WriteSecret(#[source] RequestError),
    #[error("cannot make a CA: {0}")]
    Create(#[source] AuthorityError),
    #[error("cannot make a serving certificate: {0}")]
    Sign(#[source] AuthorityError),
    #[error("something else keeps changing the CA bundle of the webhook configurations")]
    Contested,
}

impl Problem {
    fn is_conflict(&self) -> bool {
        match self {
            Self::WriteWebhookConfigurations(error) | Self::WriteSecret(error) => {
                error.is_conflict()
            }
            _ => false,
        }
    }
}

impl SelfManaged {
    /// Keeps the CA, the webhook configurations and the serving certificate as they should be; never ends.
    pub async fn run(self) {
        let changed = Notify::new();
        let watches = watch(self.client.clone(), self.settings.clone(), &changed);
        let keeper = Keeper {
            secret: secret::Store::new(self.client.clone(), &self.settings),
            webhook_configurations: webhook_configurations::Store::new(self.client),
            settings: self.settings,
            serving: self.serving,
            metrics: self.metrics,
            standing: Standing::default(),
            signing: Standing::default(),
            leaf: None,
            repairs: Repairs::default(),
            missing: Trouble::default(),
        };
        tokio::join!(watches, keeper.run(&changed));
    }
}

struct Keeper {
    secret: secret::Store,
    webhook_configurations: webhook_configurations::Store,
    settings: Settings,
    serving: Serving,
    metrics: Arc<Metrics>,
    /// That of the next CA.
    standing: Standing,
    /// That of the CA that signs.
    signing: Standing,
    leaf: Option<Leaf>,
    repairs: Repairs,
    missing: Trouble,
}

impl Keeper {
    async fn run(mut self, changed: &Notify) {
        let mut trouble = Trouble::default();
        let mut failures = 0;
        loop {
            match self.pass().await {
                Ok(wait) => {
                    if trouble.over() {
                        tracing::info!("the CA and the serving certificate are looked after again");
                    }
                    failures = 0;
                    // Either way it is time for another look.
                    let _ = timeout(wait.min(LOOK), changed.notified()).await;
                    sleep(PAUSE).await;
                }
                Err(problem) => {
                    failures += 1;
                    let conflict = problem.is_conflict() && failures < CONFLICTS;
                    if !conflict && trouble.is_new(problem.to_string()) {
                        if matches!(problem, Problem::Sign(_)) {
                            self.metrics.certificate_refused();
                        }
                        tracing::error!(error = %problem, "serving certificate");
                    }
                    sleep(backoff(failures, conflict)).await;
                }
            }
        }
    }

    /// Looks at everything and does what is to be done; for how long there is nothing more to do.
    async fn pass(&mut self) -> Result<Duration, Problem> {
        // The webhook configurations before the Secret: a bundle is written only onto what was there before its
        // Secret was read, so it never takes back what a newer Secret brought.
        let mut webhook_configurations =
            self.webhook_configurations.read().await.map_err(Problem::ReadWebhookConfigurations)?;
        let mut content = self.secret.read().await.map_err(Problem::ReadSecret)?;
        let now = SystemTime::now();
        let leaf = self.leaf.as_ref();
        let remembered = leaf.is_some_and(|leaf| content.state.remember(&leaf.authority, now));
        self.say_missing(&webhook_configurations);

        let bundled = self.write_bundle(&mut webhook_configurations, &content.state, now).await;
        let next = content.state.next.valid(now).filter(|next| webhook_configurations.hold(next));
        let stood = self.standing.observe(next, Instant::now());
        let served = self.serve(&content, &webhook_configurations, now);

        let step = plan(&content.state, stood, &self.settings, now);
        let step = if remembered { step.with_remembered() } else { step };
        let wait = self.carry_out(step, &content, now).await?;
        bundled?;
        Ok(wait.min(served?))
    }

    fn say_missing(&mut self, webhook_configurations: &WebhookConfigurations) {
        match webhook_configurations.missing() {
            Some(missing) if self.missing.is_new(missing.clone()) => {
                tracing::warn!(missing, "waiting for webhook configurations");
            }
            None if self.missing.over() => tracing::info!("all webhook configurations are there"),
            _ => {}
        }
    }

    /// Without a CA that signs there is nothing to trust yet, and what is there stays.
    async fn write_bundle(
        &mut self,
        webhook_configurations: &mut WebhookConfigurations,
        state: &State,
        now: SystemTime,
    ) -> Result<(), Problem> {
        if state.signer.valid(now).is_none() {
            return Ok(());
        }
        let bundle = to_pem(bundle(state, now));
        let written = self.webhook_configurations.write(webhook_configurations, &bundle).await;
        if written.map_err(Problem::WriteWebhookConfigurations)?
            && self.repairs.too_many(Instant::now())
        {
            return Err(Problem::Contested);
        }
        Ok(())
    }

    /// Takes a certificate into use, once whoever calls can trust it; for how long it is good. One that is
    /// good yet is exchanged only when the CA of the other has stood for as long as any new one.
    fn serve(
        &mut self,
        content: &Content,
        webhook_configurations: &WebhookConfigurations,
        now: SystemTime,
    ) -> Result<Duration, Problem> {
        let Some(signer) = content.signer.as_ref().filter(|signer| {
            let ca = signer.certificate();
            !ca.is_expired(now) && webhook_configurations.hold(ca)
        }) else {
            return Ok(LOOK);
        };
        let stood = self.signing.observe(Some(signer.certificate()), Instant::now());
        let rest = self.settings.bundle_lead.saturating_sub(stood.unwrap_or_default());
        if !rest.is_zero() && self.has_another(signer, webhook_configurations, now) {
            return Ok(rest);
        }
        let renew_before = self.settings.renew_before;
        let (ca, leaf) = (signer.certificate(), self.leaf.as_ref());
        let due =
            |leaf: &Leaf| leaf.authority != *ca || is_due(&leaf.certificate, ca, renew_before, now);
        if leaf.is_none_or(due) {
            let names = self.settings.all_names();
            let leaf = signer.sign(&names, now, self.settings.lifetime).map_err(Problem::Sign)?;
            let expiry = leaf.certificate.not_after;
            self.serving.set(Arc::clone(&leaf.key), expiry);
            self.metrics.certificate_loaded(expiry);
            tracing::info!(expiry = %Timestamp::from(expiry), "serving certificate signed");
            self.leaf = Some(leaf);
        }
        let renewal = self.leaf.as_ref().map(|leaf| leaf.certificate.renewal(renew_before));
        let wait = renewal.and_then(|renewal| renewal.duration_since(now).ok());
        Ok(wait.unwrap_or(LOOK))
    }

    /// Whether there is a certificate in use that is good yet, of another CA than this.
    fn has_another(
        &self,
        signer: &Authority,
        webhook_configurations: &WebhookConfigurations,
        now: SystemTime,
    ) -> bool {
        self.leaf.as_ref().is_some_and(|leaf| {
            leaf.authority != *signer.certificate()
                && !leaf.certificate.is_expired(now)
                && webhook_configurations.hold(&leaf.authority)
        })
    }

    /// Changes the Secret; for how long there is nothing more to change.
    async fn carry_out(
        &self,
        step: Step,
        content: &Content,
        now: SystemTime,
    ) -> Result<Duration, Problem> {
        if let Step::Wait(wait) = step {
            return Ok(wait);
        }
        let new = match step {
            Step::Create | Step::AddNext => {
                let lifetime = self.settings.authority_lifetime;
                Some(Authority::create(now, lifetime).map_err(Problem::Create)?)
            }
            Step::Promote(_) | Step::DropPrevious | Step::Remember | Step::Wait(_) => None,
        };
        let certificate = new.as_ref().map(|new| new.certificate().clone());
        let state = after(&content.state, step, certificate, &self.settings, now);
        let written = self.secret.write(content, step, new.as_ref(), &state).await;
        written.map_err(Problem::WriteSecret)?;
        say(step, content);
        Ok(Duration::ZERO)
    }
}

fn say(step: Step, content: &Content) {
    match step {
        Step::Create => {
            let unusable = content.unusable.as_deref();
            tracing::info!(unusable, "made a CA");
        }
        Step::AddNext => tracing::info!("made the next CA, which signs later"),
        Step::Promote(Reason::Stood) => tracing::info!("the next CA signs from now on"),
        Step::Promote(Reason::LastMoment | Reason::NoSigner) => {
            tracing::warn!("the next CA signs early, because there is no other");
        }
        Step::DropPrevious => tracing::info!("forgot CAs that are not in use any more"),
        Step::Remember => tracing::info!("wrote down a CA that signed before"),
        Step::Wait(_) => {}
    }
}

/// When the bundle was written within the last minute.
#[derive(Debug, Default)]
struct Repairs(Vec<Instant>);

impl Repairs {
    /// Counts one more.
    fn too_many(&mut self, now: Instant) -> bool {
        self.0.retain(|at| now.saturating_duration_since(*at) < Duration::from_mins(1));
        self.0.push(now);
        self.0.len() > REPAIRS
    }
}

/// How long to wait after so many failures in a row; not long if somebody else was only faster. Spread,
/// so that replicas do not meet again.
fn backoff(failures: u32, conflict: bool) -> Duration {
    let (first, longest) = BACKOFF;
    let first = if conflict { PAUSE } else { first };
    jitter(first.saturating_mul(1 << failures.saturating_sub(1).min(8)).min(longest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_half_a_minute_and_are_short_while_others_are_only_faster() {
        for (failures, conflict, full) in [
            (1, false, 1_000),
            (2, false, 2_000),
            (6, false, 30_000),
            (u32::MAX, false, 30_000),
            (1, true, 100),
            (4, true, 800),
        ] {
            for _ in 0..100 {
                let wait = backoff(failures, conflict).as_millis();
                assert!((full / 2..=full).contains(&wait), "{failures} {conflict}: {wait}");
            }
        }
    }

    #[test]
    fn a_bundle_may_be_repaired_now_and_then() {
        let mut repairs = Repairs::default();
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let too_many: Vec<_> = (0..=20).map(|second| repairs.too_many(at(second))).collect();
        assert_eq!(too_many.iter().position(|too_many| *too_many), Some(REPAIRS));
        assert!(!repairs.too_many(at(75)));
    }
}
