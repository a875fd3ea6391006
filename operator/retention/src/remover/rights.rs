//! Asks the API server what the engine may do (`docs/retention.md`, R34 and R51).

use std::convert::Infallible;

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::{Api, Client, api::PostParams};
use tokio::time::sleep_until;
use trainjob_engine::{answer::timed, error::RequestError};
use trainjob_process::server_time::boot_time;
use trainjob_retention_core::facts::Controller;

use super::{Remover, owners, served::Served};
use crate::{
    cluster_state::{Deletion, Resource, Right, RightChange, Verb},
    key::Key,
    second::next_second,
};

impl Remover {
    /// Asks about rights while this process leads, for ever.
    pub async fn ask_rights(&self) -> Infallible {
        loop {
            sleep_until(next_second()).await;
            if !self.leader.holds() {
                continue;
            }
            let rights = self.state().rights_to_ask(boot_time());
            for right in rights {
                let answer = is_allowed(&self.client, &right).await;
                if let Err(error) = &answer {
                    tracing::debug!(%error, "cannot ask about a right");
                }
                let (change, effects) =
                    self.state().right_answered(&right, answer.ok().flatten(), boot_time());
                self.apply(effects);
                log(&right, change);
            }
        }
    }

    /// The DELETE of an object, or of its owner instead, was refused with 403.
    pub(super) async fn doubt_right_to_delete(
        &self,
        key: &Key,
        served: &Served,
        deletion: &Deletion,
    ) {
        let rights = if let Some(owner) = &deletion.owner {
            // It was read first, and either may have been refused.
            self.rights_about(owner, &[Verb::Get, Verb::Delete]).await
        } else {
            let target = &served.target;
            let group = target.api_group.as_str().into();
            let resource = Resource { group, name: target.resource.as_str().into() };
            vec![Right { resource, verb: Verb::Delete }]
        };
        self.state().refused(key, rights, boot_time());
    }

    /// The rights that these requests about an owner need; none if its resource cannot be found out, or is in no namespace.
    pub(super) async fn rights_about(&self, owner: &Controller, verbs: &[Verb]) -> Vec<Right> {
        let resource = owners::resource(&self.client, owner).await.unwrap_or_else(|error| {
            tracing::debug!(kind = %owner.kind, %error, "cannot ask for the resource of a kind");
            None
        });
        let right = |verb: &Verb| Some(Right { resource: resource.clone()?, verb: *verb });
        verbs.iter().filter_map(right).collect()
    }
}

/// Whether the engine has a right; `None` if the answer does not say it.
async fn is_allowed(client: &Client, right: &Right) -> Result<Option<bool>, RequestError> {
    let Right { resource, verb } = right;
    let attributes = ResourceAttributes {
        group: Some(resource.group.to_string()),
        resource: Some(resource.name.to_string()),
        verb: Some(verb.as_str().to_owned()),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec {
        resource_attributes: Some(attributes),
        ..SelfSubjectAccessReviewSpec::default()
    };
    let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
    let (reviews, params) = (Api::all(client.clone()), PostParams::default());
    let review = timed(reviews.create(&params, &review)).await?;
    Ok(review.status.map(|status| status.allowed))
}

fn log(right: &Right, change: RightChange) {
    let Right { resource, verb } = right;
    let (group, resource, verb) = (&*resource.group, &*resource.name, verb.as_str());
    match change {
        RightChange::None => {}
        RightChange::Lost => {
            tracing::warn!(
                group,
                resource,
                verb,
                "a right is missing; policies that need it pause"
            );
        }
        RightChange::Given => {
            tracing::info!(group, resource, verb, "a right is given; policies that need it go on");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use http::Response;
    use kube::client::Body;
    use serde_json::{Value, json};
    use tower::service_fn;

    use super::*;
    use crate::remover::requests::is_forbidden;

    /// The answer to a question about a right where the API server replies so, or whether it was forbidden to ask; and
    /// what was asked for.
    async fn asked(right: &Right, status: u16, body: Value) -> (Result<Option<bool>, bool>, Value) {
        let sent = Arc::new(Mutex::new(Value::Null));
        let log = Arc::clone(&sent);
        let service = service_fn(move |request: http::Request<Body>| {
            let (log, body) = (Arc::clone(&log), body.to_string());
            async move {
                let path = request.uri().path().to_owned();
                assert_eq!(path, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews");
                let bytes = request.into_body().collect_bytes().await.unwrap();
                let review: Value = serde_json::from_slice(&bytes).unwrap();
                *log.lock().unwrap() = review["spec"]["resourceAttributes"].clone();
                let body = Body::from(body.into_bytes());
                Ok::<_, Infallible>(Response::builder().status(status).body(body).unwrap())
            }
        });
        let answer = is_allowed(&Client::new(service, "default"), right).await;
        let answer = answer.map_err(|error| is_forbidden(&error));
        let sent = sent.lock().unwrap().clone();
        (answer, sent)
    }

    #[tokio::test]
    async fn a_right_is_asked_about_in_all_namespaces() {
        let right = |group: &str, name: &str, verb| {
            let resource = Resource { group: group.into(), name: name.into() };
            Right { resource, verb }
        };
        let review = |status: Value| json!({"metadata": {}, "spec": {}, "status": status});
        for (right, attributes, status, body, expected) in [
            (
                right("batch", "jobs", Verb::Delete),
                json!({"group": "batch", "resource": "jobs", "verb": "delete"}),
                201,
                review(json!({"allowed": true})),
                Ok(Some(true)),
            ),
            (
                right("", "pods", Verb::List),
                json!({"group": "", "resource": "pods", "verb": "list"}),
                201,
                review(json!({"allowed": false, "reason": "no"})),
                Ok(Some(false)),
            ),
            (
                right("", "pods", Verb::Watch),
                json!({"group": "", "resource": "pods", "verb": "watch"}),
                201,
                json!({"metadata": {}, "spec": {}}),
                Ok(None),
            ),
            (
                right("", "pods", Verb::Get),
                json!({"group": "", "resource": "pods", "verb": "get"}),
                403,
                json!({"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden"}),
                Err(true),
            ),
        ] {
            assert_eq!(asked(&right, status, body).await, (expected, attributes));
        }
    }
}
