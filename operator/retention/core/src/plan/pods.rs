//! Which Pods of an object go before it (`docs/retention.md`, R22).
//!
//! The plan of the object says when. Each Pod is then asked for its own hold, and whether it belongs to the object at all.

use trainjob_api::time::Timestamp;

use super::{
    due::{Due, Source},
    hold,
};
use crate::{
    metadata::Metadata, pod_label::PodLabelValue, policy::PodsStage, seconds::Seconds, uid::Uid,
    wish::Wishes,
};

/// The Pods of an object that go before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PodsBefore {
    /// Which, and how they are found.
    pub stage: PodsStage,
    /// When they are due if nothing holds the object.
    pub unheld: Timestamp,
    /// How far a hold of a Pod reaches beyond that.
    pub maximum_hold: Seconds,
}

/// What is done with a Pod that was found by its label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodAct {
    /// Nothing: it is another object's, or is being deleted.
    Leave,
    /// Nothing before this instant, because of its own hold.
    Hold(Timestamp),
    /// It is deleted.
    Delete,
}

impl PodsBefore {
    /// What is done at `now` with a Pod that has the label, of the object with this UID.
    ///
    /// A label with a UID proves that the Pod is the object's; one with a name is a hint, and the controller owner tells.
    #[must_use]
    pub fn act(&self, pod: &Metadata, object: &Uid, now: Timestamp) -> PodAct {
        let is_proved = match self.stage.label.value() {
            PodLabelValue::Uid | PodLabelValue::JobSetUid => true,
            PodLabelValue::Name => is_controlled_by(pod, object),
        };
        if !is_proved || pod.deletion_timestamp.is_some() {
            return PodAct::Leave;
        }
        let due = Due { at: self.unheld, source: Source::Policy, delay: None };
        let wish = Wishes::read(&pod.annotations).hold;
        match hold::applied(due, wish, self.maximum_hold).at {
            end if end > now => PodAct::Hold(end),
            _ => PodAct::Delete,
        }
    }
}

fn is_controlled_by(pod: &Metadata, object: &Uid) -> bool {
    let mut controllers = pod.owner_references.iter().filter(|it| it.controller == Some(true));
    controllers.any(|owner| Uid::from(owner.uid.as_str()) == *object)
}
