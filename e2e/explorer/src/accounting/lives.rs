//! The TrainJob and its JobSets.

use trainjob_accounting_core::job::{Finish, FinishedHow, Job, Suspension};

use super::world::World;

impl World {
    /// Whether its JobSet is suspended.
    pub(super) fn is_suspended(&self) -> bool {
        matches!(self.job(), Job::Running { suspension: Suspension::Asked })
    }

    /// Something happens to it.
    pub(super) fn live(&mut self) {
        match self.random.below(10) {
            0..3 => self.suspend(),
            3..9 => self.go_on(),
            _ if self.random.percent(15) => {
                let hows = [FinishedHow::Failed, FinishedHow::DeadlineExceeded];
                match self.random.pick(&hows).filter(|_| self.random.percent(60)) {
                    Some(how) => self.finish(how),
                    None => self.go(),
                }
            }
            _ => {}
        }
    }

    /// Somebody suspends it: its JobSet deletes the Pods, then its condition tells.
    fn suspend(&mut self) {
        if self.job().is_over() || self.is_suspended() {
            return;
        }
        self.report.suspensions += 1;
        self.job_becomes(Job::Running { suspension: Suspension::Asked });
        self.rules.suspends(self.seconds);
        for pod in 0..self.pods.len() {
            let there = self.pods.get(pod).and_then(|it| it.newest());
            if let Some(pod) = there.filter(|pod| pod.deletion.is_none() && !pod.is_terminal()) {
                self.rules.suspended(pod, self.seconds);
            }
            self.delete(pod);
        }
    }

    /// Its condition follows its spec, which may have changed.
    fn go_on(&mut self) {
        if self.is_suspended() {
            self.rules.suspends(self.seconds);
            self.job_becomes(Job::Running { suspension: Suspension::ChangedAt(self.instant()) });
        }
    }

    /// Its JobSet is deleted and made anew.
    pub(super) fn remake(&mut self) {
        if !self.job().is_over() && self.job_set == "s" {
            self.say(|| "the JobSet is made anew".into());
            self.job_set = "t";
            (0..self.pods.len()).for_each(|pod| self.delete(pod));
        }
    }

    pub(super) fn finish(&mut self, how: FinishedHow) {
        let Job::Running { suspension } = self.job() else { return };
        self.job_becomes(Job::Finished(Finish {
            how,
            at: self.instant(),
            reason: String::new(),
            message: String::new(),
            suspension,
        }));
    }

    /// It is deleted.
    pub(super) fn go(&mut self) {
        if let Job::Gone { .. } = self.job() {
            return;
        }
        let suspension = self.job().suspension();
        self.job_becomes(Job::Gone { suspension });
        (0..self.pods.len()).for_each(|pod| self.delete(pod));
    }
}
