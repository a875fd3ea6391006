//! `trainjob-operator runtimes`: creates the predefined runtimes in the same installation as their definition, and removes them
//! with the release.
//!
//! Helm looks up the kind of every object of a release before it creates the first one, so a release that brings the
//! definition of runtimes cannot have runtimes. A Job of the chart runs this command once everything else is there. What it
//! creates carries the metadata by which Helm knows its own, so the next upgrade takes it into the release. A release that
//! was never upgraded does not have it, so another Job removes it before the release goes.
//!
//! A runtime of the same name that belongs to somebody else is neither changed nor deleted.

use std::{
    fs, io,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DeleteParams, DynamicObject, PostParams, Preconditions},
};
use thiserror::Error;
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};
use trainjob_api::ClusterTrainingRuntime;
use trainjob_engine::{answer::timed, error::RequestError};
use trainjob_process::{
    OwnFlag,
    client::Clients,
    config::{ConfigError, Flags, Problem, Settings},
};

/// The name of the command.
pub const COMMAND: &str = "runtimes";
/// The flags that only it takes.
pub const FLAGS: &[OwnFlag] = &[
    OwnFlag {
        name: FROM.0,
        value: Some("FOLDER"),
        help: "The folder with the runtimes, a file NAME.json for each",
    },
    OwnFlag { name: REMOVE, value: None, help: "Whether the runtimes are deleted and not created" },
    OwnFlag { name: TIMEOUT.0, value: Some("DURATION"), help: "How long it tries [default: 2m]" },
];

const FROM: (&str, &str) = ("from", "--from");
const REMOVE: &str = "remove";
const TIMEOUT: (&str, &str) = ("timeout", "--timeout");
const DEFAULT: Duration = Duration::from_mins(2);
const BOUNDS: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(1);
/// The ending of a runtime's file.
const ENDING: &str = "json";
/// How long it waits before it tries again: until the API server serves the definition, or the webhook answers.
const BETWEEN: Duration = Duration::from_secs(1);
/// By which Helm knows the release of an object.
const OWNER: [&str; 2] = ["meta.helm.sh/release-name", "meta.helm.sh/release-namespace"];

/// What the command uses.
#[derive(Debug, Clone, PartialEq)]
pub struct RuntimesConfig {
    runtimes: Vec<DynamicObject>,
    remove: bool,
    timeout: Duration,
}

impl Settings for RuntimesConfig {
    fn load(flags: &Flags) -> Result<Self, ConfigError> {
        let invalid = |message: &str| ConfigError::InvalidFlag {
            flag: FROM.1,
            problem: Problem::new("", message),
        };
        let folder = flags.own.get(FROM.0);
        let folder =
            folder.ok_or_else(|| invalid("missing, expected the folder with the runtimes"))?;
        let timeout = flags.duration(TIMEOUT, DEFAULT, &BOUNDS)?;
        let runtimes = read(Path::new(folder))?;
        if runtimes.is_empty() {
            return Err(invalid(&format!(
                "{folder} has no file *.{ENDING}, expected one at least"
            )));
        }
        Ok(Self { runtimes, remove: flags.own.contains_key(REMOVE), timeout })
    }

    fn warnings(&self) -> &[String] {
        &[]
    }

    fn clock_jump_pause(&self) -> Duration {
        Duration::ZERO
    }
}

/// The runtimes of a folder, in the order of their files.
fn read(folder: &Path) -> Result<Vec<DynamicObject>, ConfigError> {
    let unreadable = |source| ConfigError::Unreadable { path: folder.to_owned(), source };
    let files = fs::read_dir(folder).map_err(unreadable)?;
    let paths: io::Result<Vec<_>> = files.map(|file| Ok(file?.path())).collect();
    let mut paths = paths.map_err(unreadable)?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == ENDING));
    paths.sort_unstable();
    paths.into_iter().map(read_one).collect()
}

fn read_one(path: PathBuf) -> Result<DynamicObject, ConfigError> {
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(source) => return Err(ConfigError::Unreadable { path, source }),
    };
    let runtime: Result<DynamicObject, _> = serde_json::from_slice(&text);
    let problem = match runtime {
        Ok(runtime) => match problem_of(&runtime) {
            None => return Ok(runtime),
            Some(problem) => problem,
        },
        Err(error) => Problem::new("", error.to_string()),
    };
    Err(ConfigError::Invalid { path, problem })
}

/// What keeps an object from being a runtime of a release.
fn problem_of(runtime: &DynamicObject) -> Option<Problem> {
    let kind = runtime.types.as_ref().map_or("", |types| &*types.kind);
    if kind != ApiResource::erase::<ClusterTrainingRuntime>(&()).kind {
        return Some(Problem::new("kind", format!("{kind:?}, expected ClusterTrainingRuntime")));
    }
    if runtime.metadata.name.is_none() {
        return Some(Problem::new("metadata.name", "missing, expected the name of the runtime"));
    }
    let missing = OWNER.into_iter().find(|name| !runtime.annotations().contains_key(*name))?;
    let field = format!("metadata.annotations[{missing}]");
    Some(Problem::new(field, "missing, expected what Helm has there, so that it knows the runtime"))
}

/// Why not all runtimes are there, or gone.
#[derive(Debug, Error)]
pub enum RuntimesError {
    /// Somebody else has a runtime of this name.
    #[error(
        "the ClusterTrainingRuntime {0} exists and does not belong to this release: delete it, or disable it in the chart's values (runtimes)"
    )]
    Foreign(String),
    /// The time is over.
    #[error("the ClusterTrainingRuntime {name}: {error} (tried for {timeout:?})")]
    TimedOut {
        /// The name of the runtime.
        name: String,
        /// What was said last.
        error: RequestError,
        /// How long it was tried.
        timeout: Duration,
    },
    /// It was asked to stop.
    #[error("stopped before all runtimes were done")]
    Stopped,
}

/// Creates or removes the runtimes.
///
/// # Errors
///
/// See [`RuntimesError`].
pub async fn run(
    config: RuntimesConfig,
    clients: Clients,
    mut stop: watch::Receiver<bool>,
) -> Result<ExitCode, RuntimesError> {
    tokio::select! {
        done = all(&config, &clients.work) => done.map(|()| ExitCode::SUCCESS),
        _ = stop.wait_for(|stop| *stop) => Err(RuntimesError::Stopped),
    }
}

async fn all(config: &RuntimesConfig, client: &Client) -> Result<(), RuntimesError> {
    let kind = ApiResource::erase::<ClusterTrainingRuntime>(&());
    let stored: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    let until = Instant::now() + config.timeout;
    for runtime in &config.runtimes {
        let name = runtime.name_any();
        let done = loop {
            let tried = if config.remove {
                remove(&stored, runtime).await
            } else {
                create(&stored, runtime).await
            };
            match tried {
                Ok(done) => break done,
                Err(error) if Instant::now() >= until => {
                    return Err(RuntimesError::TimedOut { name, error, timeout: config.timeout });
                }
                Err(error) => tracing::debug!(runtime = name, %error, "tried in vain"),
            }
            sleep(BETWEEN).await;
        };
        tracing::info!(runtime = name, ?done, "done");
        if done == Done::IsForeign && !config.remove {
            return Err(RuntimesError::Foreign(name));
        }
    }
    Ok(())
}

/// What became of a runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Done {
    Created,
    WasThere,
    Deleted,
    WasAbsent,
    /// Somebody else has one of its name.
    IsForeign,
}

async fn create(
    stored: &Api<DynamicObject>,
    runtime: &DynamicObject,
) -> Result<Done, RequestError> {
    // As whom Helm goes on with it.
    let params = PostParams { field_manager: Some("helm".to_owned()), ..PostParams::default() };
    match timed(stored.create(&params, runtime)).await {
        Ok(_) => Ok(Done::Created),
        Err(RequestError::Refused(status)) if status.is_already_exists() => {
            let there = timed(stored.get(&runtime.name_any())).await?;
            let is_ours = is_of_same_release(&there.metadata, &runtime.metadata);
            Ok(if is_ours { Done::WasThere } else { Done::IsForeign })
        }
        Err(error) => Err(error),
    }
}

async fn remove(
    stored: &Api<DynamicObject>,
    runtime: &DynamicObject,
) -> Result<Done, RequestError> {
    let name = runtime.name_any();
    let Some(there) = timed(stored.get_opt(&name)).await? else { return Ok(Done::WasAbsent) };
    if !is_of_same_release(&there.metadata, &runtime.metadata) {
        return Ok(Done::IsForeign);
    }
    let preconditions =
        Preconditions { uid: there.uid(), resource_version: there.resource_version() };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    match timed(stored.delete(&name, &params)).await {
        Ok(_) => Ok(Done::Deleted),
        Err(error) if error.says_absent() => Ok(Done::WasAbsent),
        Err(error) => Err(error),
    }
}

fn is_of_same_release(one: &ObjectMeta, other: &ObjectMeta) -> bool {
    let owner = |of: &ObjectMeta| {
        OWNER.map(|name| of.annotations.as_ref().and_then(|all| all.get(name).cloned()))
    };
    owner(one) == owner(other)
}

#[cfg(test)]
mod tests;
