//! Admission, rule by rule, through a real API server and the real webhook: what is refused and in which
//! words, what is warned of, what is filled in (`docs/semantics.md`, 10).
//!
//! The rules are tables, one function for each group of them; what a row is, and the ways in which
//! clients send it, is in `row.rs` and `place.rs`. All tests share one box, in which nothing runs but what
//! admission needs; only those of a webhook with another configuration, or that is down, have another one.

#![expect(
    clippy::indexing_slicing,
    reason = "what is not in a JSON value is null, which no test expects"
)]
#![expect(clippy::needless_pass_by_value, reason = "tables read better without references")]

mod change;
mod configured;
mod filled_in;
mod frameworks;
mod job;
mod later_webhook;
mod limits;
mod parts;
mod patches;
mod place;
mod removal;
mod row;
mod runtimes;
mod schema;
mod snapshot;
mod writers;

use std::sync::Arc;

use anyhow::Result;
use e2e::cluster::{Cluster, Options};
use e2e::fixtures::shared::Shared;
use e2e::webhook::{Webhook, WebhookOptions};
use serde_json::Value;

use self::place::Place;
use self::row::Row;

/// A box with the webhook in it.
struct Site {
    cluster: Cluster,
    webhook: Webhook,
}

impl Site {
    /// With JobSet, whose objects say what runs, and without anything that acts on jobs.
    async fn start(config_yaml: &str) -> Result<Self> {
        let options = Options { jobset: true, crds: true, ..Options::bare() };
        let cluster = Cluster::start(options).await?;
        let options =
            WebhookOptions { config_yaml: config_yaml.to_owned(), ..WebhookOptions::default() };
        let webhook = Webhook::start(&cluster, options).await?;
        webhook.wait_ready().await?;
        webhook.wait_asked(&cluster.client().await?).await?;
        Ok(Self { cluster, webhook })
    }

    /// A namespace of this box.
    async fn place(self: Arc<Self>, prefix: &str) -> Result<Place> {
        Ok(Place::of(&self.cluster, prefix).await?.keeping(self))
    }

    /// A namespace of this box with these annotations.
    async fn annotated_place(self: Arc<Self>, prefix: &str, annotations: &Value) -> Result<Place> {
        Ok(Place::annotated(&self.cluster, prefix, annotations).await?.keeping(self))
    }
}

/// The configuration of the other box: nothing in it is a default.
const CONFIGURATION: &str = "
lifecycle:
  fieldUpdates: Mutable
  deadlineClock: LastResume
  defaultTTLSecondsAfterFinished: 3600
";

/// Whether TTL and deadline may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Immutable,
    Mutable,
}

impl Mode {
    const ALL: [Self; 2] = [Self::Immutable, Self::Mutable];

    /// The box that all tests of this mode share.
    async fn site(self) -> Result<Arc<Site>> {
        static IMMUTABLE: Shared<Site> = Shared::new();
        static MUTABLE: Shared<Site> = Shared::new();
        let (site, configuration) = match self {
            Self::Immutable => (&IMMUTABLE, ""),
            Self::Mutable => (&MUTABLE, CONFIGURATION),
        };
        site.get(async || Site::start(configuration).await).await
    }
}

/// A namespace of the box that most share.
async fn place(prefix: &str) -> Result<Place> {
    Mode::Immutable.site().await?.place(prefix).await
}

/// Sends each row in all ways; tells of all that are not as expected.
async fn check(prefix: &str, rows: Vec<Row>) -> Result<()> {
    let place = place(prefix).await?;
    place.check(rows).await
}
