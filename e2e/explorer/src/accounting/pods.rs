//! Pods and their kubelets.

use std::sync::Arc;

use trainjob_accounting_core::{
    amounts::Amounts,
    pod::{Container, ContainerEnd, Deletion, Generations, Phase, Pod, State, Template},
};

use super::{history::History, world::World};

/// For how long a kubelet may still report a Pod without grace (AE1).
const FORCED_SECONDS: i64 = 10;
/// How many Pods there are at most.
pub(super) const MOST_PODS: usize = 12;

impl World {
    pub(super) fn create(&mut self) {
        if self.job().is_over() || self.is_suspended() || self.pods.len() >= MOST_PODS {
            return;
        }
        let (version, now) = (self.next_version(), self.instant());
        let uid = format!("p{}", self.pods.len());
        let node = (!self.random.percent(15)).then(|| "n".into());
        let replicated_job = self.random.pick(&["node", "launcher"]).unwrap_or_default();
        let restart = self.random.below(3).try_into().unwrap_or_default();
        let template = Template {
            replicated_job: replicated_job.into(),
            job_set: self.job_set.into(),
            job_name: "llm".into(),
            job_uid: "j".into(),
            container_names: ["n".into()].into(),
            amounts: Amounts::from([("nvidia.com/gpu".into(), 1)]),
        };
        let pod = Pod {
            name: uid.as_str().into(),
            uid: uid.into(),
            template: Arc::new(template),
            restart,
            created_at: now,
            grace_period: 30,
            deletion: None,
            phase: Phase::Open,
            reason: Box::default(),
            message: Box::default(),
            bound_at: node.is_some().then_some(now),
            node,
            unready_since: None,
            disruption: None,
            generations: Some(Generations { current: 1, observed: 1 }),
            containers: Box::default(),
            finalizer: !(self.plot.observes && self.random.percent(40)),
            accounted: false,
        };
        self.say(|| format!("{} is created, of {} {}", pod.uid, pod.template.job_set, pod.restart));
        self.rules.pod_created(&pod);
        self.pods.push(History::new(version, pod));
    }

    /// The kubelet reports the end of a Pod.
    pub(super) fn end(&mut self, pod: usize) {
        let at = self.instant();
        let exit_code = self.random.pick(&[0, 1, 143]).unwrap_or_default();
        self.change(pod, "ends", |pod| {
            if pod.is_terminal() || pod.node.is_none() {
                return;
            }
            let (reason, message) = (Box::default(), Box::default());
            let end = ContainerEnd { exit_code, reason, message, began: None, at };
            let state = State::Ended(Box::new(end));
            pod.containers =
                [Container { name: "n".into(), restarts: 0, state, last_end: None }].into();
            pod.phase = if exit_code == 0 { Phase::Succeeded } else { Phase::Failed };
            let current = pod.generations.map_or(1, |it| it.current);
            pod.generations = Some(Generations { current, observed: current });
        });
    }

    /// Somebody deletes a Pod. One that no kubelet has, or that has ended, gets no grace, so nothing moves its deletion later.
    pub(super) fn delete(&mut self, pod: usize) {
        let at = self.instant();
        self.change(pod, "is deleted", |pod| {
            if pod.deletion.is_none() {
                let grace = if pod.node.is_none() || pod.is_terminal() { 0 } else { 30 };
                pod.deletion = Some(Deletion { at, grace });
                if let Some(generations) = &mut pod.generations {
                    generations.current += 1;
                }
            }
        });
    }

    /// Somebody deletes a Pod without grace. A kubelet may report its end later, or never.
    pub(super) fn force(&mut self, pod: usize) {
        let at = self.instant();
        let Some(before) = self.pods.get(pod).and_then(History::newest) else { return };
        if before.deletion.is_some_and(|deletion| deletion.grace == 0) {
            return;
        }
        if !before.is_terminal() && before.node.is_some() {
            self.rules.forced(&before.uid.clone());
        }
        self.report.forced += 1;
        self.change(pod, "is deleted by force", |pod| {
            if let (None, Some(generations)) = (pod.deletion, &mut pod.generations) {
                generations.current += 1;
            }
            pod.deletion = Some(Deletion { at, grace: 0 });
        });
    }

    /// Changes a Pod that is there. It goes when it has ended, is deleted and nothing holds it.
    pub(super) fn change(&mut self, index: usize, what: &str, change: impl FnOnce(&mut Pod)) {
        let Some(before) = self.pods.get(index).and_then(History::newest).cloned() else { return };
        let mut after = before.clone();
        change(&mut after);
        if before == after {
            return;
        }
        let has_ended = after.is_terminal() || after.node.is_none();
        let goes = !after.finalizer
            && after.deletion.is_some_and(|deletion| has_ended || deletion.grace == 0);
        self.rules.pod_changed(&before, &after, goes);
        let is_forced = after.deletion.is_some_and(|deletion| deletion.grace == 0);
        if after.is_terminal() || after.node.is_none() && after.deletion.is_some() {
            self.rules.ends(&after.uid, self.seconds);
        } else if is_forced {
            self.rules.ends(&after.uid, self.seconds + FORCED_SECONDS);
        }
        let version = self.next_version();
        self.say(|| format!("p{index} {what}{}", if goes { " and goes" } else { "" }));
        let Some(history) = self.pods.get_mut(index) else { return };
        if goes {
            // What a DELETED event shows is the version before.
            history.is_there = false;
        } else {
            history.last = after.clone();
        }
        if history.is_labelled {
            history.events.push((version, (!goes).then_some(after)));
        }
    }
}
