//! The admission handler: from the body of a request to the body of its answer.
//!
//! A path stands for what is to be done with one kind, as it does in Kubeflow Trainer. What cannot change
//! what runs is let through before it is even read: an update that leaves the spec as it is, one of an
//! object that is being deleted, and whatever is neither a creation nor an update. (The webhook configurations
//! keep most of that from being asked at all.)

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;
use serde_json::Error;
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
        runtimes,
        train_job::{self, Operation, asks_for_runtime},
    },
    build::{Runtime, UnsupportedRuntime, runtime_key},
    lifecycle::deadline::Clock,
};
use validator::{Validate, ValidationErrors};

use crate::{
    dropped::{self, DEADLINE, TTL},
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
    /// The TTL of jobs that are created without one, in seconds.
    pub default_ttl: Option<i32>,
}

const PATCHES: &str = "runtimePatches";
const RUNTIME_REF: &str = "runtimeRef";
/// Fields of a TrainJob's spec that no rule about any other field depends on.
const LIGHT: [&str; 3] = ["suspend", DEADLINE, TTL];

/// Objects longer than so many bytes may have longer lists than the schema admits, and take long to judge.
const LARGE: usize = 64 * 1024;

/// The rules, and where to look up what they depend on.
pub struct AdmissionHandler {
    rules: Rules,
    lookup: Lookup,
}

/// What is asked of an object whose answer is not plain.
enum Change<'a> {
    Create(&'a Object<'a>),
    Update { old: &'a Object<'a>, new: &'a Object<'a> },
}

impl Change<'_> {
    fn is_large(&self) -> bool {
        match self {
            Self::Create(new) => new.len() > LARGE,
            Self::Update { old, new } => old.len() > LARGE || new.len() > LARGE,
        }
    }

    /// Why a large job is more than the schema admits, unless it was before. Lists that are longer than
    /// that could take long to judge.
    fn beyond_the_schema(
        &self,
        old: Option<&Result<TrainJob, String>>,
        job: &TrainJob,
    ) -> Option<ValidationErrors> {
        if !self.is_large() {
            return None;
        }
        let problem = job.spec.validate().err()?;
        let was_so = matches!(old, Some(Ok(old)) if old.spec.validate().is_err());
        (!was_so).then_some(problem)
    }
}

impl AdmissionHandler {
    /// A handler with these rules.
    #[must_use]
    pub const fn new(rules: Rules, lookup: Lookup) -> Self {
        Self { rules, lookup }
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
            Task::DefaultTrainJob => self.complete(&change, request),
            Task::ValidateTrainJob => self.judge_train_job(&change).await,
            Task::ValidateTrainingRuntime | Task::ValidateClusterTrainingRuntime => {
                judge_runtime(&change, task.kind())
            }
        }
    }

    /// What the job lacks: what an update has dropped, and what is filled in.
    fn complete(&self, change: &Change<'_>, request: &Request<'_>) -> Answer {
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
        let mut completed = self.fill_in(change);
        completed.patch.0.extend(kept.patch.0);
        completed.warnings.extend(kept.warnings);
        completed
    }

    fn fill_in(&self, change: &Change<'_>) -> Answer {
        if self.has_nothing_to_fill_in(change) {
            return Answer::allowed();
        }
        let patch = match train_jobs(change) {
            // The schema, which is asked next, will refuse it.
            Ok((old, job)) if change.beyond_the_schema(old.as_ref(), &job).is_some() => {
                return Answer::allowed();
            }
            Ok((None, job)) => defaults::on_create(&job, self.rules.default_ttl, now()),
            Ok((Some(Ok(old)), job)) => defaults::on_update(&old, &job, now()),
            // What is wrong with it is for the other webhook to say.
            Ok((Some(Err(_)), _)) | Err(DecodeError::NoSpec) => return Answer::allowed(),
            Err(DecodeError::Unreadable(problem)) => return Answer::unreadable(problem),
        };
        Answer { patch, ..Answer::default() }
    }

    /// Whether that can be told from the text alone.
    fn has_nothing_to_fill_in(&self, change: &Change<'_>) -> bool {
        match change {
            Change::Create(new) => {
                let has_ttl = self.rules.default_ttl.is_none() || new.says(TTL).is_some();
                has_ttl && new.says(PATCHES).is_none()
            }
            Change::Update { old, new } => old.says(PATCHES) == new.says(PATCHES),
        }
    }

    async fn judge_train_job(&self, change: &Change<'_>) -> Answer {
        match train_jobs(change) {
            Ok((old, job)) if let Some(problem) = change.beyond_the_schema(old.as_ref(), &job) => {
                Answer::unreadable(format!("request.object.spec: {problem}"))
            }
            Ok((None, job)) => self.validate_create(&job).await,
            Ok((Some(Ok(old)), job)) => self.judge_changed(&old, &job).await,
            Ok((Some(Err(problem)), _)) => not_judged(TRAIN_JOB_KIND, &problem),
            Err(DecodeError::NoSpec) => {
                let nameless = UnsupportedRuntime { kind: String::new(), group: String::new() };
                answer(&Verdict { unsupported: Some(nameless), ..Verdict::default() })
            }
            Err(DecodeError::Unreadable(problem)) => Answer::unreadable(problem),
        }
    }

    async fn validate_create(&self, job: &TrainJob) -> Answer {
        let runtime = match runtime_key(job) {
            Ok(key) => self.lookup.runtime(&key).await,
            // Which the verdict is about then.
            Err(unsupported) => Err(unsupported.to_string()),
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
        }))
    }

    async fn judge_changed(&self, old: &TrainJob, job: &TrainJob) -> Answer {
        let depends = asks_for_runtime(old, job);
        let snapshot = async { if depends { self.lookup.snapshot(old).await } else { None } };
        let active = async {
            if asks_what_runs(old, job) { self.lookup.active(old).await } else { Ok(Vec::new()) }
        };
        let (snapshot, active) = tokio::join!(snapshot, active);
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
            snapshot: snapshot.as_ref(),
            active: active.as_deref().map_err(String::as_str),
            // No update changes which it needs.
            missing_priority_classes: &BTreeMap::new(),
            field_updates: self.rules.field_updates,
            deadline_clock: self.rules.deadline_clock,
        }))
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

/// What is asked; `None` if the answer is yes whatever the object.
fn change<'a>(request: &'a Request<'_>) -> Result<Option<Change<'a>>, String> {
    let needed = |object: &'a Option<Object<'_>>, name: &str| {
        object.as_ref().ok_or_else(|| format!("request.{name}: Required value"))
    };
    match &*request.operation {
        "CREATE" => Ok(Some(Change::Create(needed(&request.object, "object")?))),
        "UPDATE" => {
            let new = needed(&request.object, "object")?;
            let old = needed(&request.old_object, "oldObject")?;
            Ok((!is_let_through(old, new)).then_some(Change::Update { old, new }))
        }
        _ => Ok(None),
    }
}

/// Whether an update is one of an object that is being deleted, or leaves its spec as it is.
fn is_let_through(old: &Object<'_>, new: &Object<'_>) -> bool {
    new.is_going()
        || match (&old.spec, &new.spec) {
            (Some(old), Some(new)) => old.equals(new, &[]),
            (None, None) => true,
            _ => false,
        }
}

/// Why an object is of no use.
enum DecodeError {
    /// It has no spec.
    NoSpec,
    /// It is not of its kind.
    Unreadable(String),
}

/// The object as it is, which may be one that cannot be read, and as it is to be.
type Objects<K> = (Option<Result<K, String>>, K);

fn objects<K>(
    change: &Change<'_>,
    read: impl Fn(&Object<'_>) -> Result<K, DecodeError>,
) -> Result<Objects<K>, DecodeError> {
    let (old, new) = match change {
        Change::Create(new) => (None, *new),
        Change::Update { old, new } => (Some(*old), *new),
    };
    let new = read(new).map_err(|unfit| match unfit {
        DecodeError::NoSpec => DecodeError::NoSpec,
        DecodeError::Unreadable(problem) => {
            DecodeError::Unreadable(format!("request.object: {problem}"))
        }
    })?;
    let old = match old.map(read) {
        // What there was said nothing, so all of it is new.
        None | Some(Err(DecodeError::NoSpec)) => None,
        Some(Ok(old)) => Some(Ok(old)),
        Some(Err(DecodeError::Unreadable(problem))) => Some(Err(problem)),
    };
    Ok((old, new))
}

/// The TrainJobs, without what is the same in both where nothing depends on it.
fn train_jobs(change: &Change<'_>) -> Result<Objects<TrainJob>, DecodeError> {
    let is_about_light_fields = match change {
        Change::Update {
            old: Object { spec: Some(old), .. },
            new: Object { spec: Some(new), .. },
        } => old.equals(new, &LIGHT),
        _ => false,
    };
    let keep = |name: &str| !is_about_light_fields || name == RUNTIME_REF || LIGHT.contains(&name);
    objects(change, |object| {
        let (metadata, spec) = read(object, keep)?;
        Ok(TrainJob { metadata, spec, status: None })
    })
}

/// Metadata and spec of an object.
fn read<S: DeserializeOwned>(
    object: &Object<'_>,
    keep: impl Fn(&str) -> bool,
) -> Result<(ObjectMeta, S), DecodeError> {
    let unreadable =
        |part: &str, problem: Error| DecodeError::Unreadable(format!("{part}: {problem}"));
    let spec = object.spec.as_ref().ok_or(DecodeError::NoSpec)?;
    let spec = spec.read(keep).map_err(|problem| unreadable("spec", problem))?;
    let metadata = match &object.metadata {
        Some(metadata) => metadata.read(|_| true),
        None => Ok(ObjectMeta::default()),
    };
    Ok((metadata.map_err(|problem| unreadable("metadata", problem))?, spec))
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
