//! The watches, which tell the [state](crate::cluster_state) what there is.
//!
//! Policies of both kinds and namespaces are watched always; a target kind as long as a policy is about it, in the version
//! that [discovery](crate::discovery) finds.

use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};

use kube::Client;
use serde::Deserialize;
use tokio::{
    sync::{mpsc, watch},
    time::sleep,
};
use trainjob_core::facts::ObjectKey;
use trainjob_engine::{jitter, watch::Span};
use trainjob_process::server_time::boot_time;
use trainjob_retention_core::{
    breaker::Record,
    finished::Definitions,
    metadata::Metadata,
    selection::Selection,
    stored::{self, PolicyKind},
};

use crate::{
    cluster_state::{PolicyKey, Source},
    discovery::{Answer, Change, Discovery, Served, ask, kind::Kind},
    key::TargetId,
    remover::{Remover, collection},
    status::{OwnWrites, SeenPolicy},
    watch::{self as stream, Ended, Named, News},
};

/// How long it is until a path is tried again that was not served.
const NOT_SERVED: Duration = Duration::from_secs(5);
/// How long it is until a path is tried again that was not allowed (R51).
const FORBIDDEN: Duration = Duration::from_secs(30);
/// The group and the version of policies.
const POLICIES: (&str, &str) = ("lifecycle.trainjob.dev", "v1alpha1");

/// Metadata of an object.
#[derive(Deserialize)]
struct Bare {
    metadata: Metadata,
}

/// A policy was seen, or is gone, which is `None`.
pub type PolicySeen = (PolicyKey, Option<Box<SeenPolicy>>);

/// What the watches need.
pub struct Feed {
    /// Whom they tell.
    pub remover: Arc<Remover>,
    /// The client for lists and watches, which have time limits of their own.
    pub client: Client,
    /// Who else is told of policies: what writes their status.
    pub policies: mpsc::UnboundedSender<PolicySeen>,
    /// Versions of policies that need not be read.
    pub own_writes: Arc<OwnWrites>,
    /// Becomes true when policies and namespaces have been listed.
    pub listed: watch::Sender<u8>,
}

/// How many lists there are before work begins: two kinds of policies, and namespaces.
pub const LISTS: u8 = 3;

impl Feed {
    /// Watches the policies of a kind, for ever.
    pub async fn policies(self: Arc<Self>, kind: PolicyKind) -> Infallible {
        let (group, version) = POLICIES;
        let (name, plural) = match kind {
            PolicyKind::Namespaced => ("RetentionPolicy", "retentionpolicies"),
            PolicyKind::Cluster => ("ClusterRetentionPolicy", "clusterretentionpolicies"),
        };
        let restarts = self.remover.metrics().restarts(name);
        let path = collection(group, version, plural).to_string();
        let (client, selection) = (self.client.clone(), Selection::default());
        // So that a policy that stops deletions is seen soon, and it is seen soon that nothing passes any more (R34).
        let span = Span::Short;
        let source =
            stream::Source { client, path, selection, metadata_only: false, span, restarts };
        let (mut definitions, mut is_listed) = (Definitions::default(), false);
        loop {
            let ended = stream::follow(&source, |news| {
                is_listed = self.tell(Source::Policies(kind), &news, is_listed);
                match news {
                    News::Listed(text) => {
                        if let Ok(named) = Named::read(text) {
                            self.own_writes.forget(&policy_key(kind, &named));
                            self.policy(kind, &named, text, &mut definitions);
                        }
                    }
                    News::Changed(_, named)
                        if self
                            .own_writes
                            .cover(&policy_key(kind, &named), &named.resource_version) => {}
                    News::Changed(text, named) => {
                        self.policy(kind, &named, text, &mut definitions);
                        definitions.forget_unused();
                    }
                    News::Deleted(named) => {
                        let key = policy_key(kind, &named);
                        self.own_writes.forget(&key);
                        let effects = self.remover.state().policy_gone(&key, boot_time());
                        self.remover.apply(effects);
                        // Whoever writes statuses has ended only when the process ends.
                        let _ = self.policies.send((key, None));
                    }
                    News::ListBegins | News::ListEnds | News::Alive => {}
                }
            })
            .await;
            pause(plural, ended).await;
        }
    }

    fn policy(
        &self,
        kind: PolicyKind,
        named: &Named<'_>,
        text: &str,
        definitions: &mut Definitions,
    ) {
        let key = policy_key(kind, named);
        let stored = stored::read(kind, text, definitions);
        if let Err(not_understood) = &stored {
            tracing::warn!(
                namespace = %named.namespace, policy = %named.name, error = %not_understood.error,
                "a policy is not understood; what it might select is kept"
            );
        }
        let seen = Box::new(SeenPolicy::read(text));
        let record = Record::read(&seen.status);
        let effects = self.remover.state().policy(key.clone(), stored, record, boot_time());
        self.remover.apply(effects);
        // As above.
        let _ = self.policies.send((key, Some(seen)));
    }

    /// Watches the namespaces, for ever.
    pub async fn namespaces(self: Arc<Self>) -> Infallible {
        let source = stream::Source {
            client: self.client.clone(),
            path: "/api/v1/namespaces".to_owned(),
            selection: Selection::default(),
            metadata_only: true,
            span: Span::Long,
            restarts: self.remover.metrics().restarts("Namespace"),
        };
        let mut is_listed = false;
        loop {
            let ended = stream::follow(&source, |news| {
                is_listed = self.tell(Source::Namespaces, &news, is_listed);
                let effects = match news {
                    News::Listed(text) | News::Changed(text, _) => {
                        let Ok(Bare { metadata }) = serde_json::from_str(text) else { return };
                        self.remover.state().namespace(metadata)
                    }
                    News::Deleted(named) => self.remover.state().namespace_gone(&named.name),
                    News::ListBegins | News::ListEnds | News::Alive => return,
                };
                self.remover.apply(effects);
            })
            .await;
            pause("namespaces", ended).await;
        }
    }

    /// Watches the objects of a target kind while policies are about it, for ever.
    pub async fn target(self: Arc<Self>, target: TargetId) -> Infallible {
        let mut discovery = Discovery::default();
        let mut watches = self.remover.watches();
        loop {
            watches.mark_unchanged();
            let Some(epoch) = self.remover.state().wanted(target) else {
                // It cannot fail while the remover is here.
                let _ = watches.changed().await;
                continue;
            };
            self.discover(target, &mut discovery).await;
            let Served::At(version) = discovery.served().clone() else {
                sleep(discovery.next()).await;
                continue;
            };
            let Some((described, _)) = self.remover.served(target) else {
                return std::future::pending().await;
            };
            let path = collection(&described.api_group, &version, &described.resource).to_string();
            let (client, selection) = (self.client.clone(), self.remover.state().selection(target));
            let metrics = self.remover.metrics();
            let restarts = metrics.restarts(&metrics.kinds.shown(&described.kind));
            let span = Span::Long;
            let source =
                stream::Source { client, path, selection, metadata_only: false, span, restarts };
            let mut follow = pin!(stream::follow(&source, |news| self.object(target, news)));
            loop {
                tokio::select! {
                    ended = &mut follow => {
                        if ended == Ended::Forbidden {
                            self.remover.state().watch_refused(target, boot_time());
                        }
                        pause(&described.resource, ended).await;
                        break;
                    }
                    _ = watches.changed() => {
                        if self.remover.state().wanted(target) != Some(epoch) {
                            break;
                        }
                    }
                    () = sleep(discovery.next()) => {
                        if self.discover(target, &mut discovery).await != Change::None {
                            break;
                        }
                    }
                }
            }
        }
    }

    /// Asks which version of a kind is served, and forgets its objects if that changes.
    async fn discover(&self, target: TargetId, discovery: &mut Discovery) -> Change {
        let Some((described, _)) = self.remover.served(target) else { return Change::None };
        let kind = Kind {
            group: &described.api_group,
            kind: &described.kind,
            resource: &described.resource,
        };
        let answer = match ask::ask(&self.client, kind).await {
            Ok(answer) => answer,
            Err(error) => {
                tracing::debug!(kind = described.kind, %error, "cannot ask for its version");
                return Change::None;
            }
        };
        let absence = match &answer {
            Answer::Served(_) => None,
            Answer::Absent(absence) => Some(Arc::clone(absence)),
        };
        self.remover.note_absence(target, absence);
        let change = discovery.told(&answer, boot_time());
        let version = match discovery.served() {
            Served::At(version) => Some(Arc::clone(version)),
            Served::Unknown | Served::Not => None,
        };
        match change {
            Change::None => return change,
            Change::Version => {
                tracing::info!(kind = described.kind, ?version, "found");
            }
            Change::Gone => tracing::warn!(kind = described.kind, "not served any more"),
        }
        self.remover.serve(target, version);
        self.remover.state().kind_gone(target);
        change
    }

    fn object(&self, target: TargetId, news: News<'_>) {
        let source = Source::Target(target);
        self.tell(source, &news, true);
        let now = self.remover.clock().now();
        let effects = match news {
            News::Listed(text) => self.remover.state().object(target, text, None, now),
            News::Changed(text, named) => {
                self.remover.state().object(target, text, Some(&object_key(&named)), now)
            }
            News::Deleted(named) => self.remover.state().object_gone(target, &object_key(&named)),
            News::ListBegins | News::ListEnds | News::Alive => return,
        };
        self.remover.apply(effects);
    }

    /// Tells what all watches have in common. Returns whether this was listed.
    fn tell(&self, source: Source, news: &News<'_>, was_listed: bool) -> bool {
        match news {
            News::ListBegins => self.remover.state().list_begins(source),
            News::ListEnds => {
                let effects = self.remover.state().list_ends(source, boot_time());
                self.remover.apply(effects);
                if !was_listed {
                    self.listed.send_modify(|listed| *listed = listed.saturating_add(1));
                }
                return true;
            }
            News::Alive => self.remover.state().heard(source, boot_time()),
            News::Listed(_) | News::Changed(..) | News::Deleted(_) => {}
        }
        was_listed
    }
}

/// Waits until a watch that was given up is tried again.
async fn pause(what: &str, ended: Ended) {
    let wait = match ended {
        Ended::NotServed => {
            tracing::warn!("the API server does not serve {what}; asking again");
            NOT_SERVED
        }
        // The watch has said so.
        Ended::Forbidden => FORBIDDEN,
    };
    sleep(jitter(wait)).await;
}

fn policy_key(kind: PolicyKind, named: &Named<'_>) -> PolicyKey {
    PolicyKey { kind, namespace: named.namespace.as_ref().into(), name: named.name.as_ref().into() }
}

fn object_key(named: &Named<'_>) -> ObjectKey {
    ObjectKey::new(named.namespace.as_ref(), named.name.as_ref())
}
