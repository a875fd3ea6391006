//! People, who change what they like.

use super::{history::History, world::World};

impl World {
    pub(super) fn people(&mut self, pod: usize) {
        match self.random.below(4) {
            0 => self.change(pod, "loses its finalizer", |pod| pod.finalizer = false),
            1 => self.change(pod, "gets it back", |pod| {
                pod.finalizer |= pod.deletion.is_none();
            }),
            2 => self.take_labels(pod),
            _ => {
                let version = self.next_version();
                if let Some(record) = &mut self.record {
                    record.version = version;
                }
                self.say(|| "somebody writes to the record".into());
            }
        }
    }

    /// Somebody takes our labels from a Pod, so it leaves the watch.
    fn take_labels(&mut self, index: usize) {
        let version = self.next_version();
        let Some(history) = self.pods.get_mut(index) else { return };
        if history.is_there && history.is_labelled {
            history.is_labelled = false;
            history.events.push((version, None));
            self.rules.loses_labels(&history.last.uid);
            self.say(|| format!("p{index} loses its labels"));
        }
    }

    /// The program looks for Pods with our finalizer and without our labels, and lets them go (AH7).
    pub(super) fn search_unlabelled(&mut self) {
        for index in 0..self.pods.len() {
            let held = self.pods.get(index).filter(|pod| !pod.is_labelled);
            if held.and_then(History::newest).is_some_and(|pod| pod.finalizer) {
                self.change(index, "is found without labels", |pod| pod.finalizer = false);
            }
        }
    }

    /// Somebody deletes the record; somebody else may take its name.
    pub(super) fn delete_record(&mut self) {
        let Some(record) = self.record.take() else { return };
        self.report.deleted_records += 1;
        self.rules.record_deleted();
        let is_taken = self.random.percent(30);
        self.name_taken |= is_taken && !record.long_name;
        self.say(|| format!("record {} is deleted; name taken: {is_taken}", record.uid));
        self.gone_records.push(record.uid);
    }
}
