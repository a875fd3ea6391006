//! Lists of the Pods of many TrainJobs, as few as possible.
//!
//! The Pods of every TrainJob are listed when it has ended (`docs/accounting.md`, AG11), and an API server looks at every
//! Pod of the namespace to answer: where jobs of 8 Pods end by the thousand, that took most of its time. So at most
//! [`AT_ONCE`] lists of a namespace are under way, and the next one is about all TrainJobs that have been asked for meanwhile.
//! It begins after each of them was, so what it shows is as good as a list of its own.
//!
//! Who asks has no place among the requests while it waits: there would never be more of them than places.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use k8s_openapi::api::core::v1::Pod as StoredPod;
use kube::{Api, Client, ResourceExt as _, api::ListParams};
use tokio::sync::{Semaphore, oneshot};
use trainjob_accounting_core::{keeper::Answer, pod::Pod};
use trainjob_api::lifecycle::v1alpha1::TRAIN_JOB_UID_LABEL;
use trainjob_engine::{answer::timed, error::RequestError, versions};
use trainjob_process::client::REQUEST_TIMEOUT;

use crate::{
    key::JobKey,
    requests::{PAGE, versioned},
};

/// Lists of one namespace that are under way: one that hangs holds up nobody.
const AT_ONCE: usize = 2;
/// Lists of all namespaces that are under way.
const OF_ALL: usize = 8;
/// TrainJobs that one list is about: their UIDs are to fit into a URL.
const TOGETHER: usize = 50;
/// A TrainJob of which more Pods are known has a list of its own, for which nobody else is to wait.
pub(crate) const FEW: usize = 100;

/// The Pods of one TrainJob, or why they could not be listed, which may be so for others, too.
type Listed = Result<Answer, Arc<RequestError>>;

/// Asks for the Pods of TrainJobs.
pub struct Lists {
    client: Client,
    under_way: Semaphore,
    lines: Mutex<Lines<Asked>>,
}

/// A TrainJob whose Pods are asked for.
struct Asked {
    uid: Arc<str>,
    tell: oneshot::Sender<Listed>,
}

impl Lists {
    /// Nothing has been asked for.
    #[must_use]
    pub fn new(client: Client) -> Arc<Self> {
        Arc::new(Self { client, under_way: Semaphore::new(OF_ALL), lines: Mutex::default() })
    }

    /// The most recent Pods of a TrainJob, of which there are few, or many.
    pub async fn pods(self: &Arc<Self>, job: &JobKey, are_few: bool) -> Listed {
        let (tell, told) = oneshot::channel();
        let asked = Asked { uid: Arc::clone(&job.uid), tell };
        let namespace = Arc::clone(&job.namespace);
        if self.lines().ask(&namespace, asked, are_few) {
            tokio::spawn(Arc::clone(self).answer(namespace));
        }
        // Whoever lists tells everybody, unless the process ends.
        told.await.unwrap_or_else(|_| Err(Arc::new(RequestError::TimedOut(REQUEST_TIMEOUT))))
    }

    /// Lists as long as anybody asks.
    async fn answer(self: Arc<Self>, namespace: Arc<str>) {
        loop {
            // It is never closed.
            let _under_way = self.under_way.acquire().await;
            let asked = self.lines().next(&namespace);
            if asked.is_empty() {
                return;
            }
            let uids: Vec<_> = asked.iter().map(|it| &*it.uid).collect();
            let mut listed = self.list(&namespace, &uids).await.map_err(Arc::new);
            for Asked { uid, tell } in asked {
                let answer = match &mut listed {
                    Ok((version, found)) => {
                        let pods = found.remove(&*uid).unwrap_or_default();
                        Ok(Answer::Pods { version: *version, pods })
                    }
                    Err(error) => Err(Arc::clone(error)),
                };
                // Whoever has asked may have gone.
                let _ = tell.send(answer);
            }
        }
    }

    /// The version of the list, and the Pods by the UID of their TrainJob.
    async fn list(
        &self,
        namespace: &str,
        uids: &[&str],
    ) -> Result<(u64, HashMap<String, Vec<(u64, Pod)>>), RequestError> {
        let pods: Api<StoredPod> = Api::namespaced(self.client.clone(), namespace);
        let labels = format!("{TRAIN_JOB_UID_LABEL} in ({})", uids.join(","));
        let mut params = ListParams::default().labels(&labels).limit(PAGE);
        let mut found: HashMap<String, Vec<_>> = HashMap::new();
        loop {
            let page = timed(pods.list(&params)).await?;
            for pod in &page.items {
                let uid = pod.labels().get(TRAIN_JOB_UID_LABEL).cloned();
                if let (Some(uid), Some(pod)) = (uid, versioned(pod)) {
                    found.entry(uid).or_default().push(pod);
                }
            }
            params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if params.continue_token.is_none() {
                let version = page.metadata.resource_version.unwrap_or_default();
                return Ok((versions::parse(&version), found));
            }
        }
    }

    fn lines(&self) -> MutexGuard<'_, Lines<Asked>> {
        // Every change under the lock is complete in itself, so a poisoned state is still a good one.
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What has been asked for, by namespace.
#[derive(Debug)]
struct Lines<T>(HashMap<Arc<str>, Line<T>>);

/// What has been asked for in one namespace and is not under way, of jobs with few Pods and with many, and how many lists
/// are under way.
#[derive(Debug)]
struct Line<T> {
    few: VecDeque<T>,
    many: VecDeque<T>,
    under_way: usize,
}

impl<T> Default for Lines<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T> Lines<T> {
    /// Takes in what is asked for. True if one more may list: it is under way from now on.
    fn ask(&mut self, namespace: &Arc<str>, asked: T, are_few: bool) -> bool {
        let none = || Line { few: VecDeque::new(), many: VecDeque::new(), under_way: 0 };
        let line = self.0.entry(Arc::clone(namespace)).or_insert_with(none);
        if are_few {
            line.few.push_back(asked);
        } else {
            line.many.push_back(asked);
        }
        let may_begin = line.under_way < AT_ONCE;
        line.under_way += usize::from(may_begin);
        may_begin
    }

    /// What the next list is about; if that is nothing, one less is under way.
    fn next(&mut self, namespace: &Arc<str>) -> Vec<T> {
        let Some(line) = self.0.get_mut(namespace) else { return Vec::new() };
        let mut next: Vec<_> = line.few.drain(..line.few.len().min(TOGETHER)).collect();
        if next.is_empty() {
            next.extend(line.many.pop_front());
        }
        if next.is_empty() {
            line.under_way = line.under_way.saturating_sub(1);
            if line.under_way == 0 {
                self.0.remove(namespace);
            }
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_while_enough_is_under_way_goes_together_and_in_its_order() {
        let (mut lines, team, other) = (Lines::default(), Arc::from("team"), Arc::from("other"));
        let begins: Vec<_> = (0..5).map(|number| lines.ask(&team, number, true)).collect();
        assert_eq!(begins, [true, true, false, false, false]);
        assert!(lines.ask(&other, 100, true), "another namespace");
        assert_eq!(lines.next(&team), [0, 1, 2, 3, 4]);
        for number in 5..60 {
            assert!(!lines.ask(&team, number, true), "two are under way");
        }
        assert_eq!(lines.next(&team), (5..55).collect::<Vec<_>>());
        assert_eq!(lines.next(&team), (55..60).collect::<Vec<_>>());
        assert_eq!(lines.next(&team), Vec::<i32>::new());
        assert!(lines.ask(&team, 60, true), "one is under way");
        assert_eq!(lines.next(&team), [60]);
        for _ in 0..AT_ONCE {
            assert_eq!(lines.next(&team), Vec::<i32>::new());
        }
        assert_eq!(lines.0.keys().collect::<Vec<_>>(), [&other], "nothing is left of it");
    }

    #[test]
    fn nobody_waits_for_a_list_of_many_pods() {
        let (mut lines, team) = (Lines::default(), Arc::from("team"));
        for (number, are_few) in [(0, false), (1, true), (2, false), (3, true)] {
            lines.ask(&team, number, are_few);
        }
        let order: Vec<_> = (0..4).map(|_| lines.next(&team)).collect();
        assert_eq!(order, [vec![1, 3], vec![0], vec![2], vec![]]);
    }
}
