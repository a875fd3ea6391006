//! Pods, their kubelets, and people.

use trainjob_accounting_core::{
    amounts::Amounts,
    pod::{Container, ContainerEnd, Deletion, Generations, Phase, Pod, State},
};

use super::{MOST_PODS, World};
use crate::process::History;

impl World {
    pub(super) fn create(&mut self) {
        if self.job.is_over() || self.pods.len() >= MOST_PODS {
            return;
        }
        let (version, now) = (self.next_version(), self.instant());
        let uid = format!("p{}", self.pods.len());
        let node = (!self.random.percent(15)).then(|| "n".to_owned());
        let pod = Pod {
            name: uid.clone(),
            uid,
            job_name: "llm".into(),
            job_uid: "j".into(),
            replicated_job: ["node", "launcher"][self.random.below(2)].into(),
            job_set: "s".into(),
            restart: self.random.below(3) as u64,
            created_at: now,
            deletion: None,
            phase: Phase::Open,
            reason: String::new(),
            message: String::new(),
            bound_at: node.is_some().then_some(now),
            node,
            unready_since: None,
            disruption: None,
            generations: Some(Generations { current: 1, observed: 1 }),
            containers: Vec::new(),
            amounts: Amounts::from([("nvidia.com/gpu".into(), 1)]),
            finalizer: !(self.plot.observes && self.random.percent(40)),
            accounted: false,
        };
        self.rules.pod_created(&pod);
        self.pods.push(History(vec![(version, Some(pod))]));
    }

    /// The kubelet reports the end of a Pod.
    pub(super) fn end(&mut self, pod: usize) {
        let (at, exit_code) = (self.instant(), [0, 1, 143][self.random.below(3)]);
        self.change(pod, "ends", |pod| {
            if pod.is_terminal() || pod.node.is_none() {
                return;
            }
            let end = ContainerEnd { exit_code, reason: String::new(), message: String::new(), at };
            let state = State::Ended(end);
            pod.containers =
                vec![Container { name: "n".into(), restarts: 0, state, last_end: None }];
            pod.phase = if exit_code == 0 { Phase::Succeeded } else { Phase::Failed };
            let current = pod.generations.map_or(1, |it| it.current);
            pod.generations = Some(Generations { current, observed: current });
        });
    }

    pub(super) fn delete(&mut self, pod: usize) {
        let at = self.instant();
        self.change(pod, "is deleted", |pod| {
            if pod.deletion.is_none() {
                pod.deletion = Some(Deletion { at, grace: 30 });
                if let Some(generations) = &mut pod.generations {
                    generations.current += 1;
                }
            }
        });
    }

    pub(super) fn people(&mut self, pod: usize) {
        match self.random.below(3) {
            0 => self.change(pod, "loses its finalizer", |pod| pod.finalizer = false),
            1 => self.change(pod, "gets it back", |pod| {
                pod.finalizer |= pod.deletion.is_none();
            }),
            _ => {
                let version = self.next_version();
                if let Some((current, _)) = &mut self.record {
                    *current = version;
                }
            }
        }
    }

    /// Changes a Pod that is there. It goes when it has ended, is deleted and nothing holds it.
    pub(super) fn change(&mut self, pod: usize, what: &str, change: impl FnOnce(&mut Pod)) {
        let Some(before) = self.pods.get(pod).and_then(|it| it.newest()) else { return };
        let (mut after, before) = (before.clone(), before.clone());
        change(&mut after);
        if before == after {
            return;
        }
        let has_ended = after.is_terminal() || after.node.is_none();
        let goes = after.deletion.is_some() && has_ended && !after.finalizer;
        self.rules.pod_changed(&before, &after, goes);
        let version = self.next_version();
        self.say(format!("p{pod} {what}{}", if goes { " and goes" } else { "" }));
        let history = &mut self.pods[pod].0;
        if goes {
            // What a DELETED event shows is the version before.
            history.push((version, None));
        } else {
            history.push((version, Some(after)));
        }
    }
}
