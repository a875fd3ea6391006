//! A history, arranged by object.

use std::{
    cell::OnceCell,
    collections::{HashMap, HashSet},
};

use trainjob_api::time::Timestamp;

use crate::{
    history::{Change, Clock, Condition, History, Hold, Job, Millis, Object, Request, State},
    violation::{Rule, Violation},
};

/// A history, arranged by object.
pub(crate) struct Index<'a> {
    pub(crate) history: &'a History,
    /// Every object, in the order in which they appeared.
    pub(crate) lives: Vec<Life<'a>>,
    by_uid: HashMap<&'a str, usize>,
    children: HashMap<&'a str, Vec<usize>>,
    /// By namespace and name; made when it is first needed, which is rarely.
    by_name: OnceCell<HashMap<&'a str, HashMap<&'a str, Vec<usize>>>>,
    /// Which revisions writes of operators made, as far as their answers tell.
    own: HashMap<u64, &'a Request>,
    /// When each process sent its first request.
    starts: HashMap<u32, Millis>,
}

/// One object from its first version to its end.
pub(crate) struct Life<'a> {
    /// In the order in which they were stored; at least one.
    pub(crate) versions: Vec<&'a Change>,
}

/// How a job finished.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Finish<'a> {
    pub(crate) condition: &'a Condition,
    /// The first version that says so.
    pub(crate) change: &'a Change,
}

impl<'a> Index<'a> {
    pub(crate) fn of(history: &'a History) -> Self {
        let mut index = Self {
            history,
            lives: Vec::new(),
            by_uid: HashMap::new(),
            children: HashMap::new(),
            by_name: OnceCell::new(),
            own: HashMap::new(),
            starts: HashMap::new(),
        };
        for change in &history.changes {
            index.add(change);
        }
        for life in &mut index.lives {
            life.versions.sort_by_key(|change| change.revision);
        }
        for request in &history.requests {
            let start = index.starts.entry(request.process).or_insert(request.sent);
            *start = request.sent.min(*start);
            if let (Some(version), true) = (request.answer.version, changes_something(request)) {
                index.own.insert(version, request);
            }
        }
        index
    }

    fn add(&mut self, change: &'a Change) {
        let uid = change.object.uid.as_str();
        if let Some(life) = self.by_uid.get(uid).and_then(|at| self.lives.get_mut(*at)) {
            return life.versions.push(change);
        }
        self.by_uid.insert(uid, self.lives.len());
        if let Some(owner) = &change.object.owner {
            self.children.entry(owner).or_default().push(self.lives.len());
        }
        self.lives.push(Life { versions: vec![change] });
    }

    /// The object with this UID.
    pub(crate) fn life(&self, uid: &str) -> Option<&Life<'a>> {
        self.by_uid.get(uid).and_then(|at| self.lives.get(*at))
    }

    /// What belongs to the object with this UID.
    pub(crate) fn children(&self, uid: &str) -> impl Iterator<Item = &Life<'a>> {
        let all = self.children.get(uid).into_iter().flatten();
        all.filter_map(|at| self.lives.get(*at))
    }

    /// The UID of the TrainJob that a request is about, or whose child it is about, as far as it says so.
    pub(crate) fn job_of(&self, request: &'a Request) -> Option<&'a str> {
        let of_child = || {
            let object = &self.life(request.uid.as_deref()?)?.first().object;
            Some(object.owner.as_deref().unwrap_or(&object.uid))
        };
        request.owner.as_deref().or_else(of_child)
    }

    /// Every object of the namespace and name of this one, it included.
    pub(crate) fn namesakes(&self, object: &Object) -> impl Iterator<Item = &Life<'a>> {
        self.named(&object.namespace, &object.name)
    }

    fn named<'s>(
        &'s self,
        namespace: &str,
        name: &str,
    ) -> impl Iterator<Item = &'s Life<'a>> + use<'s, 'a> {
        let by_name = self.by_name.get_or_init(|| {
            let mut by_name: HashMap<_, HashMap<_, Vec<usize>>> = HashMap::new();
            for (at, life) in self.lives.iter().enumerate() {
                let Object { namespace, name, .. } = &life.first().object;
                let namespace = by_name.entry(namespace.as_str()).or_default();
                namespace.entry(name.as_str()).or_default().push(at);
            }
            by_name
        });
        let all = by_name.get(namespace).and_then(|names| names.get(name)).into_iter().flatten();
        all.filter_map(|at| self.lives.get(*at))
    }

    /// What this creation made; `None` if it made nothing, or that is not known.
    pub(crate) fn made(&self, request: &Request) -> Option<&'a Object> {
        if !request.took_effect() {
            return None;
        }
        let mut those = self.named(&request.namespace, &request.name).filter(|life| {
            life.first().object.state.plural() == request.resource
                && life.first().at >= request.sent
        });
        let made = match request.answer.version {
            Some(version) => those.find(|life| life.first().revision == version),
            None => those.next(),
        };
        made.map(|life| &life.first().object)
    }

    /// The JobSets that belong to the TrainJob with this UID.
    pub(crate) fn job_sets(&self, uid: &str) -> impl Iterator<Item = &Life<'a>> {
        self.children(uid).filter(|life| matches!(life.last().object.state, State::JobSet(_)))
    }

    /// Every TrainJob.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = &Life<'a>> {
        self.lives.iter().filter(|life| life.last().object.job().is_some())
    }

    /// The request that is known to have made this change.
    pub(crate) fn cause(&self, change: &Change) -> Option<&'a Request> {
        self.own.get(&change.revision).copied()
    }

    /// When the decision that led to this change was made, as closely as it is known.
    pub(crate) fn decided(&self, change: &Change) -> Millis {
        self.cause(change).map_or(change.at, |request| request.sent)
    }

    /// Whether the process that sent `request` can be held to know of `change`: it was told of it by
    /// an answer, it has started since, or time enough has passed for any watch.
    pub(crate) fn knew(&self, request: &Request, change: &Change) -> bool {
        let told = self.cause(change).is_some_and(|cause| {
            let answered = cause.answer.code.is_some_and(|code| code < 300);
            cause.process == request.process && answered && cause.ended <= request.sent
        });
        let started = self.starts.get(&request.process).is_some_and(|at| *at > change.at);
        told || started || request.sent > change.at + self.history.terms.staleness
    }

    /// When each process started.
    pub(crate) fn starts(&self) -> impl Iterator<Item = Millis> {
        self.starts.values().copied()
    }

    /// Whether the TTL of this job is the operator's to apply.
    pub(crate) const fn ttl_applies(&self, job: &Job) -> bool {
        let ours = !job.managed_elsewhere || self.history.terms.ttl_for_managed_elsewhere;
        ours && !job.remote_copy
    }

    /// When a job is due to be deleted, if it is a finished one with a TTL: when that has passed, or a hold has ended
    /// that is later.
    pub(crate) fn ttl_due(&self, object: &Object) -> Option<Timestamp> {
        let job = object.job()?;
        let passed = object.terminal()?.since.plus(job.ttl.filter(|ttl| *ttl >= 0)?);
        let latest = passed.plus(self.history.terms.maximum_hold);
        Some(match job.hold {
            None => passed,
            Some(Hold::Until(at)) => at.min(latest).max(passed),
            Some(Hold::Unreadable) => latest,
        })
    }

    /// When the deadline of an unfinished job fires, if it does.
    pub(crate) fn deadline(&self, object: &Object) -> Option<Timestamp> {
        let job = object.job()?;
        let seconds = job.deadline.filter(|seconds| *seconds >= 1)?;
        let start = match self.history.terms.clock {
            Clock::Creation => object.created,
            Clock::LastResume if job.suspend => return None,
            Clock::LastResume => match job.conditions.iter().find(|it| it.kind == "Suspended") {
                None => object.created,
                Some(suspended) if suspended.holds => return None,
                Some(resumed) => resumed.since,
            },
        };
        Some(start.plus(seconds)).filter(|due| due.0 < i64::MAX)
    }

    /// The violation of `rule` by what became of `object`.
    pub(crate) fn broken(rule: Rule, object: &Object, at: Millis, what: String) -> Violation {
        let Object { namespace, name, state, .. } = object;
        Violation { rule, object: format!("{} {namespace}/{name}", state.plural()), at, what }
    }

    /// UIDs of the TrainJobs that somebody else manages.
    pub(crate) fn foreign_jobs(&self) -> HashSet<&'a str> {
        let foreign = self
            .jobs()
            .filter(|life| life.last().object.job().is_some_and(|it| it.managed_elsewhere));
        foreign.map(|life| life.last().object.uid.as_str()).collect()
    }
}

/// Whether the version in the answer to this request is one that it made.
fn changes_something(request: &Request) -> bool {
    request.is_write() && request.took_effect() && request.answer.version != request.version
}

impl<'a> Life<'a> {
    /// The first version.
    pub(crate) fn first(&self) -> &'a Change {
        // An object enters the index with its first version.
        self.versions.first().copied().unwrap_or(&EMPTY)
    }

    /// The last version.
    pub(crate) fn last(&self) -> &'a Change {
        self.versions.last().copied().unwrap_or(&EMPTY)
    }

    /// The end of the object, if it is gone.
    pub(crate) fn end(&self) -> Option<&'a Change> {
        Some(self.last()).filter(|last| last.gone)
    }

    /// The version with exactly this revision.
    pub(crate) fn version(&self, revision: u64) -> Option<&'a Change> {
        let at = self.versions.binary_search_by_key(&revision, |change| change.revision).ok()?;
        self.versions.get(at).copied()
    }

    /// The version that was stored immediately before this revision.
    pub(crate) fn before(&self, revision: u64) -> Option<&'a Change> {
        let at = self.versions.partition_point(|change| change.revision < revision);
        self.versions.get(at.checked_sub(1)?).copied()
    }

    /// The version that was stored last at this instant, if it is there then.
    pub(crate) fn at(&self, instant: Millis) -> Option<&'a Change> {
        let stored = self.versions.iter().rev().copied().find(|change| change.at <= instant);
        stored.filter(|change| !change.gone)
    }

    /// The change with which its deletion began, or by which it was gone.
    pub(crate) fn deletion(&self) -> Option<&'a Change> {
        self.versions.iter().copied().find(|it| it.gone || it.object.deleting.is_some())
    }

    /// How it finished, if it is a TrainJob that did.
    pub(crate) fn finish(&self) -> Option<Finish<'a>> {
        self.versions
            .iter()
            .find_map(|change| Some(Finish { condition: change.object.terminal()?, change }))
    }

    /// Since when `what` has been as it is in the version with this revision.
    pub(crate) fn since<T: PartialEq>(&self, revision: u64, what: impl Fn(&Object) -> T) -> Millis {
        let Some(version) = self.version(revision) else { return 0 };
        let wanted = what(&version.object);
        let until = self.versions.iter().rev().skip_while(|it| it.revision > revision);
        let same = until.take_while(|it| what(&it.object) == wanted);
        same.last().map_or(0, |change| change.at)
    }
}

static EMPTY: Change = Change {
    revision: 0,
    at: 0,
    object: Object {
        namespace: String::new(),
        name: String::new(),
        uid: String::new(),
        created: Timestamp(0),
        deleting: None,
        generation: 0,
        finalizers: Vec::new(),
        owner: None,
        state: State::ConfigMap,
    },
    gone: false,
};

impl Object {
    /// What it says as a TrainJob, if it is one.
    pub(crate) const fn job(&self) -> Option<&Job> {
        match &self.state {
            State::TrainJob(job) => Some(job),
            _ => None,
        }
    }

    /// The terminal condition of a finished TrainJob; of two, the one that came first.
    pub(crate) fn terminal(&self) -> Option<&Condition> {
        let conditions = self.job()?.conditions.iter();
        conditions.filter(|it| it.is_terminal()).min_by_key(|it| it.since)
    }

    /// The end of a JobSet that has ended.
    pub(crate) fn job_set_end(&self) -> Option<&Condition> {
        let State::JobSet(job_set) = &self.state else { return None };
        let ends = |it: &&Condition| it.holds && matches!(&*it.kind, "Completed" | "Failed");
        job_set.conditions.iter().find(ends)
    }

    /// Whether somebody other than Kubernetes' own garbage collector keeps it from going.
    pub(crate) fn is_held(&self) -> bool {
        self.finalizers.iter().any(|it| !matches!(&**it, "foregroundDeletion" | "orphan"))
    }
}

impl Condition {
    pub(crate) fn is_terminal(&self) -> bool {
        self.holds && matches!(&*self.kind, "Complete" | "Failed")
    }

    pub(crate) fn is_deadline(&self) -> bool {
        self.is_terminal() && self.reason == "DeadlineExceeded"
    }
}

/// The first millisecond of this second.
pub(crate) const fn millis(at: Timestamp) -> Millis {
    at.0.saturating_mul(1_000)
}
