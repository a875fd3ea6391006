//! The admission handler: from the body of a request to the body of its answer.
//!
//! A path stands for what is to be done with one kind, as it does in Kubeflow Trainer. What cannot change
//! what runs is let through (`change`) before it is even read.

use std::{collections::BTreeMap, sync::Arc};

use trainjob_api::{
    TrainJob,
    time::Timestamp,
    v1alpha1::{GROUP, TRAIN_JOB_KIND, VERSION},
};
use trainjob_core::{
    admission::{
        Verdict, asks_what_runs, defaults,
        dropped_fields::Outcome,
        lifecycle::FieldUpdates,
        limits::{self, ClusterLimits, Limits, NamespaceLimits},
        runtimes,
        train_job::{self, Operation, asks_for_limits, asks_for_runtime},
    },
    build::{Runtime, UnsupportedRuntime, referenced_runtime, runtime_key},
    lifecycle::deadline::Clock,
};

use crate::{
    change::{
        Change, DecodeError, RUNTIME_REF, change, light_train_jobs, objects, read, train_jobs,
    },
    dropped::{self, TTL},
    fields::Object,
    lookup::Lookup,
    review::{Answer, Refusal, Request},
    runtimes::runtime_key_of,
    task::Task,
};

/// What verdicts depend on that whoever runs the server has chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Whether TTL and deadline may change.
    pub field_updates: FieldUpdates,
    /// From when a deadline counts.
    pub deadline_clock: Clock,
    /// Defaults and maxima of TTL and deadline in all namespaces.
    pub limits: ClusterLimits,
}

const PATCHES: &str = "runtimePatches";

/// The rules, and where to look up what they depend on.
pub struct AdmissionHandler {
    rules: Rules,
    lookup: Lookup,
}

impl AdmissionHandler {
    /// A handler with these rules.
    #[must_use]
    pub const fn new(rules: Rules, lookup: Lookup) -> Self {
        Self { rules, lookup }
    }

    /// Whether judging a request takes long, though it is short itself: what it depends on is
    /// [large](Lookup::is_large).
    #[must_use]
    pub fn takes_long(&self, task: Task, request: &Request<'_>) -> bool {
        let is_large = || {
            let reference = request.object.as_ref()?.says(RUNTIME_REF)?;
            let reference = serde_json::from_str(reference).ok()?;
            let key = referenced_runtime(&reference, &request.namespace).ok()?;
            Some(self.lookup.is_large(&key))
        };
        task == Task::ValidateTrainJob
            && is_large().unwrap_or_default()
            && matches!(change(request), Ok(Some(_)))
    }

    /// The answer to a request.
    pub async fn answer(&self, task: Task, request: &Request<'_>) -> Answer {
        let asked = &request.kind;
        if (&*asked.group, &*asked.version, &*asked.kind) != (GROUP, VERSION, task.kind()) {
            return Answer::unreadable(format!(
                "{} of {}/{}, expected {} of {GROUP}/{VERSION} at this path",
                asked.kind.escape_debug(),
                asked.group.escape_debug(),
                asked.version.escape_debug(),
                task.kind()
            ));
        }
        let change = match change(request) {
            Ok(Some(change)) => change,
            Ok(None) => return Answer::allowed(),
            Err(problem) => return Answer::unreadable(problem),
        };
        match task {
            Task::DefaultTrainJob => self.complete(&change, request).await,
            Task::ValidateTrainJob => self.judge_train_job(&change, request).await,
            Task::ValidateTrainingRuntime | Task::ValidateClusterTrainingRuntime => {
                judge_runtime(&change, task.kind())
            }
        }
    }

    /// What the job lacks: what an update has dropped, and what is filled in.
    async fn complete(&self, change: &Change<'_>, request: &Request<'_>) -> Answer {
        let kept = match change {
            Change::Create(_) => Outcome::default(),
            Change::Update { old, new } => {
                let options = request.options.as_ref();
                let manager = options.map_or("", |options| &options.field_manager);
                dropped::keep(old, new, manager, self.rules.field_updates, now())
            }
        };
        let kept = Answer { patch: kept.patch, ..answer(&kept.verdict) };
        if kept.refusal.is_some() {
            return kept;
        }
        let mut completed = match change {
            Change::Create(_) => match self.annotated(request).await {
                Ok(annotated) => self.fill_in(change, &self.limits(request, annotated.as_deref())),
                Err(unknown) => return unknown,
            },
            // An update gets none of what limits give.
            Change::Update { .. } => self.fill_in(change, &Limits::default()),
        };
        completed.patch.0.extend(kept.patch.0);
        completed.warnings.extend(kept.warnings);
        completed
    }

    /// What the annotations of the namespace of a request set; an answer if that cannot be told.
    async fn annotated(
        &self,
        request: &Request<'_>,
    ) -> Result<Option<Arc<NamespaceLimits>>, Answer> {
        let name = &*request.namespace;
        self.lookup.limits(name).await.map_err(|problem| {
            Answer::unavailable(format!(
                "the namespace {name:?} cannot be read, whose annotations limit TTL and deadline; try \
                 again: {problem}"
            ))
        })
    }

    fn limits<'a>(
        &self,
        request: &'a Request<'_>,
        annotated: Option<&'a NamespaceLimits>,
    ) -> Limits<'a> {
        Limits { cluster: self.rules.limits, namespace: &request.namespace, annotated }
    }

    fn fill_in(&self, change: &Change<'_>, limits: &Limits<'_>) -> Answer {
        if has_nothing_to_fill_in(change, limits) {
            return Answer::allowed();
        }
        let patch = match train_jobs(change) {
            // The schema, which is asked next, will refuse it.
            Ok((old, job)) if change.beyond_the_schema(old.as_ref(), &job).is_some() => {
                return Answer::allowed();
            }
            Ok((None, job)) => {
                let managers = || change.requested().managers();
                let filled = limits::fill_in(&job, limits, self.rules.deadline_clock, managers);
                let mut patch = defaults::on_create(&job, now());
                patch.0.extend(filled.patch.0);
                return Answer { patch, warnings: filled.warnings, ..Answer::default() };
            }
            Ok((Some(Ok(old)), job)) => defaults::on_update(&old, &job, now()),
            // What is wrong with it is for the schema to say, with the name of the field, or for the other webhook.
            Ok((Some(Err(_)), _)) | Err(DecodeError::NoSpec | DecodeError::Unreadable(_)) => {
                return Answer::allowed();
            }
        };
        Answer { patch, ..Answer::default() }
    }

    async fn judge_train_job(&self, change: &Change<'_>, request: &Request<'_>) -> Answer {
        match train_jobs(change) {
            Ok((old, job)) if let Some(problem) = change.beyond_the_schema(old.as_ref(), &job) => {
                Answer::unreadable(format!("request.object.spec: {problem}"))
            }
            Ok((None, job)) => self.validate_create(&job, request).await,
            Ok((Some(Ok(old)), job)) => self.judge_changed(&old, &job, request).await,
            // On the heap: the future is large, and hardly ever needed.
            Ok((Some(Err(problem)), _)) => {
                Box::pin(self.judge_light_fields(change, &problem, request)).await
            }
            Err(DecodeError::NoSpec) => {
                let nameless = UnsupportedRuntime { kind: String::new(), group: String::new() };
                answer(&Verdict { unsupported: Some(nameless), ..Verdict::default() })
            }
            Err(DecodeError::Unreadable(problem)) => Answer::unreadable(problem),
        }
    }

    /// Judges what can be read of a stored job that cannot be read as a whole: whatever else changes, no TTL or
    /// deadline gets past the rules.
    async fn judge_light_fields(
        &self,
        change: &Change<'_>,
        problem: &str,
        request: &Request<'_>,
    ) -> Answer {
        let Ok((Some(Ok(old)), job)) = light_train_jobs(change) else {
            return not_judged(TRAIN_JOB_KIND, problem);
        };
        let mut judged = self.judge_changed(&old, &job, request).await;
        judged.warnings.push(format!(
            "the stored {TRAIN_JOB_KIND} cannot be read, so only suspension, deadline and TTL of its update were judged: {problem}"
        ));
        judged
    }

    async fn validate_create(&self, job: &TrainJob, request: &Request<'_>) -> Answer {
        let runtime = async {
            match runtime_key(job) {
                Ok(key) => self.lookup.runtime(&key).await,
                // Which the verdict is about then.
                Err(unsupported) => Err(unsupported.to_string()),
            }
        };
        let (annotated, runtime) = tokio::join!(self.annotated(request), runtime);
        let annotated = match annotated {
            Ok(annotated) => annotated,
            Err(unknown) => return unknown,
        };
        let missing = match &runtime {
            Ok(runtime) => self.lookup.missing_priority_classes(runtime).await,
            Err(_) => BTreeMap::new(),
        };
        answer(&train_job::validate(&train_job::Request {
            operation: Operation::Create,
            job,
            runtime: runtime.as_deref().map_err(String::as_str),
            snapshot: None,
            active: Ok(&[]),
            missing_priority_classes: &missing,
            field_updates: self.rules.field_updates,
            deadline_clock: self.rules.deadline_clock,
            limits: self.limits(request, annotated.as_deref()),
        }))
    }

    async fn judge_changed(&self, old: &TrainJob, job: &TrainJob, request: &Request<'_>) -> Answer {
        let annotated = async {
            let depends = asks_for_limits(old, job, self.rules.field_updates);
            if depends { self.annotated(request).await } else { Ok(None) }
        };
        let depends = asks_for_runtime(old, job);
        // On the heap: the futures are large, and few updates need them.
        let snapshot =
            async { if depends { Box::pin(self.lookup.snapshot(old)).await } else { None } };
        let active = async {
            let depends = asks_what_runs(old, job);
            if depends { Box::pin(self.lookup.active(old)).await } else { Ok(Vec::new()) }
        };
        let (annotated, snapshot, active) = tokio::join!(annotated, snapshot, active);
        let annotated = match annotated {
            Ok(annotated) => annotated,
            Err(unknown) => return unknown,
        };
        let snapshot = match snapshot {
            Some(config_map) => self.lookup.in_snapshot(old, &config_map).await,
            None => None,
        };
        let runtime = match runtime_key(job) {
            Ok(key) if depends && snapshot.is_none() => self.lookup.runtime(&key).await,
            // Whether what it runs on is still there, or deprecated, is not worth a question.
            Ok(key) => self.lookup.known_runtime(&key).ok_or_else(|| format!("{key} is not known")),
            Err(unsupported) => Err(unsupported.to_string()),
        };
        answer(&train_job::validate(&train_job::Request {
            operation: Operation::Update(old),
            job,
            runtime: runtime.as_deref().map_err(String::as_str),
            snapshot: snapshot.as_deref(),
            active: active.as_deref().map_err(String::as_str),
            // No update changes which it needs.
            missing_priority_classes: &BTreeMap::new(),
            field_updates: self.rules.field_updates,
            deadline_clock: self.rules.deadline_clock,
            limits: self.limits(request, annotated.as_deref()),
        }))
    }
}

/// Whether that can be told from the text alone.
fn has_nothing_to_fill_in(change: &Change<'_>, limits: &Limits<'_>) -> bool {
    match change {
        Change::Create(new) => {
            let has_ttl = !limits.concern_ttl() || new.says(TTL).is_some();
            // One that is there may have to be taken back.
            has_ttl && !limits.concern_deadline() && new.says(PATCHES).is_none()
        }
        Change::Update { old, new } => old.says(PATCHES) == new.says(PATCHES),
    }
}

fn judge_runtime(change: &Change<'_>, kind: &str) -> Answer {
    let runtime = |object: &Object<'_>| {
        let (metadata, spec) = read(object, |_| true)?;
        Ok(Runtime { key: runtime_key_of(kind, &metadata), metadata, spec })
    };
    match objects(change, runtime) {
        Ok((None, runtime)) => answer(&runtimes::create(&runtime)),
        Ok((Some(Ok(old)), runtime)) => answer(&runtimes::update(&old, &runtime)),
        Ok((Some(Err(problem)), _)) => not_judged(kind, &problem),
        Err(DecodeError::NoSpec) => Answer::unreadable("request.object.spec: Required value"),
        Err(DecodeError::Unreadable(problem)) => Answer::unreadable(problem),
    }
}

/// What is stored cannot be read, so what changes cannot be told; nor may it stand in the way of somebody
/// who mends it.
fn not_judged(kind: &str, problem: &str) -> Answer {
    let warning =
        format!("the stored {kind} cannot be read, so its update was not judged: {problem}");
    Answer { warnings: vec![warning], ..Answer::default() }
}

fn answer(verdict: &Verdict) -> Answer {
    Answer {
        refusal: verdict.denial().map(Refusal::Denied),
        warnings: verdict.warnings.clone(),
        ..Answer::default()
    }
}

fn now() -> Timestamp {
    std::time::SystemTime::now().into()
}
