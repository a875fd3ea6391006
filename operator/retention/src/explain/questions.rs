//! Asks what a plan has to know beside facts and policies, as the engine does.

use kube::Client;
use trainjob_core::facts::ObjectKey;
use trainjob_engine::error::RequestError;
use trainjob_retention_core::{
    facts::Facts,
    plan::{Act, Answers, Question},
    policies::{Governed, NamespacePolicies},
};

use super::case::{Case, Judged};
use crate::remover::{owners, release};

/// What policies do about an object: the one that governs it, and those that audit it.
pub(super) async fn judge<'c>(
    client: &Client,
    there: &'c NamespacePolicies,
    case: &'c Case,
) -> (Option<Judged<'c>>, Vec<Judged<'c>>) {
    let Some(facts) = &case.facts else { return (None, Vec::new()) };
    let mut governing = None;
    if let Some(governed) = there.governing(facts) {
        governing = Some(judge_by(client, governed, case).await);
    }
    let mut audited = Vec::new();
    for governed in there.audited(facts) {
        audited.push(judge_by(client, governed, case).await);
    }
    (governing, audited)
}

/// Plans as often as something has to be asked first.
async fn judge_by<'c>(client: &Client, governed: Governed<'c, 'c>, case: &'c Case) -> Judged<'c> {
    let (mut answers, mut unanswered) = (Answers::default(), None);
    loop {
        let plan = governed.plan(&answers, &case.groups, case.now);
        // What is asked only when its time has come may keep the object then.
        let due = plan.due.map_or(case.now, |due| due.at.max(case.now));
        let then = governed.plan(&answers, &case.groups, due);
        let question = match then.act {
            Act::Ask(question) if unanswered.is_none() => question,
            Act::Ask(_) | Act::Nothing | Act::DeletePods | Act::DeleteObject | Act::DeleteOwner => {
                return Judged { governed, plan, unanswered };
            }
        };
        if let Err(error) = ask(client, question, (&case.key, governed.object), &mut answers).await
        {
            unanswered = Some(error.to_string());
        }
    }
}

async fn ask(
    client: &Client,
    question: Question,
    (key, object): (&ObjectKey, &Facts),
    answers: &mut Answers,
) -> Result<(), RequestError> {
    match (question, object.controller()) {
        (Question::Owner, Some(owner)) => {
            answers.owner = Some(owners::ask(client, &key.namespace, owner).await?);
        }
        (Question::Owner, None) => {
            return Err(RequestError::Unbuildable("the object has no owner".into()));
        }
        (Question::Release, _) => {
            answers.release = Some(release::ask(client, key, &object.uid).await?);
        }
    }
    Ok(())
}
